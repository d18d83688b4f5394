//! For agents that hand work to machines: submit a run, look how it stands, stop it.

use crate::tool::Tool;

pub(crate) fn tools() -> Vec<Tool> {
    Vec::new()
}
