//! The rules of the service that no front end changes.

mod approval;
