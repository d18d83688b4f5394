//! Tools, called by a client that speaks the protocol.

mod approval;
mod line;
mod native;
mod places;
mod reading;
mod session;
