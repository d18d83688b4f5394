//! Server-sent events, as far as answers of models need them: the data of each event, however the bytes are cut.

/// Takes bytes as they come, and gives the data of whole events.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// A line that has no end yet.
    line: Vec<u8>,
    /// The lines of data of the event that has no end yet.
    data: Option<String>,
    /// Whether the last line ended in a carriage return, so that a line feed after it ends nothing.
    after_return: bool,
    begun: bool,
}

impl Events {
    /// The data of the events that are whole with these bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_return = std::mem::take(&mut self.after_return);
            match byte {
                b'\n' if after_return => {}
                b'\n' => events.extend(self.end_line()),
                b'\r' => {
                    self.after_return = true;
                    events.extend(self.end_line());
                }
                byte => self.line.push(byte),
            }
        }
        events
    }

    /// The data of an event that nobody ended before the stream was closed.
    pub(super) fn end(mut self) -> Option<String> {
        let whole = if self.line.is_empty() { None } else { self.end_line() };
        whole.or(self.data)
    }

    fn end_line(&mut self) -> Option<String> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let line = if self.begun { &*text } else { text.trim_start_matches('\u{feff}') };
        self.begun = true;
        if line.is_empty() {
            return self.data.take();
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        // Comments have no name. Names of events say nothing that the data does not say as well.
        if field == "data" {
            let value = value.strip_prefix(' ').unwrap_or(value);
            match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            }
        }
        None
    }
}
