//! Reads a plan from a text in any format, sent by a model or read from a file. Writes nothing.

use waypost_formats::{Dialect, Reading};
use waypost_service::{ImportDraft, ServiceError, only_plan};

use crate::tool_error::ToolError;

/// Reads the single plan of a text, and notes for its author that are not errors.
pub(crate) fn read(
    text: &str,
    file: Option<&str>,
    format: Option<Dialect>,
) -> Result<(ImportDraft, Vec<String>), ToolError> {
    let name = file.unwrap_or("the text").to_owned();
    let reading = match waypost_formats::read(text, format, file) {
        Ok(reading) => reading,
        Err(error) => return Err(ServiceError::Unreadable { name, error }.into()),
    };
    let problems = reading.all_problems();
    if !problems.is_empty() {
        return Err(ToolError::invalid(&problems));
    }
    let Reading { dialect, drafts, assigned_ids, notes, .. } = reading;
    let (draft, file_name) = (only_plan(&name, drafts)?, file.map(str::to_owned));
    Ok((ImportDraft { draft, assigned_ids, dialect, file_name }, notes))
}
