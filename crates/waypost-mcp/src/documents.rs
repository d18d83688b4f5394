//! Plan documents: a text, a version, and the author's free words for where it stands.

use crate::tool::Tool;

pub(crate) fn tools() -> Vec<Tool> {
    Vec::new()
}
