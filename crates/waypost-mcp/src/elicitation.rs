//! Asking the person at a client (elicitation): the question and what its answer means, and the two ways in which the protocol
//! carries it.

pub(crate) mod input_required;
pub(crate) mod push;
pub(crate) mod question;
