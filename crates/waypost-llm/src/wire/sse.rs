//! Parses server-sent events, as far as model servers use them: the data of each event, however the bytes are split.

/// Takes bytes as they arrive and returns the data of complete events.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The unfinished line.
    line: Vec<u8>,
    /// The data lines of the unfinished event.
    data: Option<String>,
    /// Whether the last line ended with a carriage return, so that a line feed after it is part of the same line end.
    after_return: bool,
    begun: bool,
}

impl Events {
    /// Returns the data of the events that these bytes complete.
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

    /// Returns the data of an event that was not completed before the stream was closed.
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
        // Comments have an empty field name. The names of events add nothing to their data.
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
