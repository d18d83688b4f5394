//! Reads a plan from a text in any format, sent by a model or read from a file. Writes nothing.

use waypost_core::Draft;
use waypost_formats::Dialect;
use waypost_service::ServiceError;

use crate::tool_error::ToolError;

/// Reads the single plan of a text, and notes for its author that are not errors.
pub(crate) fn read(
    text: &str,
    file: Option<&str>,
    format: Option<Dialect>,
) -> Result<(Draft, Vec<String>), ToolError> {
    let name = file.unwrap_or("the text").to_owned();
    let reading = match waypost_formats::read(text, format, file) {
        Ok(reading) => reading,
        Err(error) => return Err(ServiceError::Unreadable { name, error }.into()),
    };
    let problems = reading.all_problems();
    if !problems.is_empty() {
        return Err(ToolError::invalid(&problems));
    }
    let count = reading.drafts.len();
    let mut drafts = reading.drafts.into_iter();
    match (drafts.next(), drafts.next()) {
        (Some(draft), None) => Ok((draft, reading.notes)),
        _ => Err(ServiceError::NotOnePlan { name, count }.into()),
    }
}
