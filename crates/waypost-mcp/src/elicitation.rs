//! Elicitation: the question to the person at a client, the meaning of the answer, and the two ways in which the protocol
//! carries it.

pub(crate) mod input_required;
pub(crate) mod push;
pub(crate) mod question;
