//! A lenient JSON parser that accepts common errors of models and records each repair. Limited in depth; a syntax error
//! with two possible meanings is an error.

use serde_json::{Map, Number, Value};

use crate::repair::{Repair, Repairs};

/// Maximum nesting of lists and objects.
pub const JSON_DEPTH_MAX: usize = 64;

/// A parsed value.
pub(super) struct Parsed {
    pub(super) value: Value,
    /// The position after it.
    pub(super) end: usize,
    pub(super) repairs: Repairs,
    /// Whether the text ended inside of the value.
    pub(super) truncated: bool,
}

/// There is no value at this position.
struct Unreadable;

/// A value, and whether it is complete.
enum Read {
    Whole(Value),
    /// The text ended inside of the value; this is the complete part.
    Part(Value),
    /// The text ended, and no part of the value is complete.
    Nothing,
}

type Outcome = Result<Read, Unreadable>;

/// Parses the object or list at `at`. The error is the position at which parsing failed.
pub(super) fn parse(text: &str, at: usize) -> Result<Parsed, usize> {
    let mut reader = Reader { text, at, repairs: Repairs::default(), lost: false };
    let read = reader.value(0).map_err(|Unreadable| reader.at)?;
    let (value, truncated) = match read {
        Read::Whole(value) => (value, false),
        // A bracket followed by nothing is not JSON that was cut off.
        Read::Part(value) if value.as_object().is_some_and(Map::is_empty) => return Err(reader.at),
        Read::Part(value) if value.as_array().is_some_and(Vec::is_empty) => return Err(reader.at),
        Read::Part(value) => (value, true),
        Read::Nothing => return Err(reader.at),
    };
    if truncated {
        reader.repairs.note(if reader.lost { Repair::Truncated } else { Repair::Unclosed });
    }
    Ok(Parsed { value, end: reader.at, repairs: reader.repairs, truncated })
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    repairs: Repairs,
    /// Whether content is missing, or may be missing, at the end of the text.
    lost: bool,
}

/// What follows an element.
enum Between {
    Next,
    Closed,
    Ended,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    /// Skips spaces and comments.
    fn skip(&mut self) {
        loop {
            let space = self.rest().len() - self.rest().trim_start().len();
            self.at += space;
            let rest = self.rest();
            let comment = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find('\n').unwrap_or(rest.len())
            } else if let Some(inside) = rest.strip_prefix("/*") {
                inside.find("*/").map_or(rest.len(), |end| end + 4)
            } else {
                return;
            };
            self.at += comment;
            self.repairs.note(Repair::Comment);
        }
    }

    fn value(&mut self, depth: usize) -> Outcome {
        if depth > JSON_DEPTH_MAX {
            return Err(Unreadable);
        }
        self.skip();
        match self.peek() {
            None => Ok(Read::Nothing),
            Some('{') => self.object(depth),
            Some('[') => self.list(depth),
            Some('"' | '\'' | '“' | '”') => {
                Ok(self.string()?.map_or(Read::Nothing, |text| Read::Whole(Value::String(text))))
            }
            Some('-' | '0'..='9') => self.number(),
            Some(_) => self.keyword(),
        }
    }

    /// The complete part of a value whose rest is missing.
    fn lose(&mut self, value: Value) -> Read {
        self.lost = true;
        Read::Part(value)
    }

    fn object(&mut self, depth: usize) -> Outcome {
        self.take('{');
        let mut map = Map::new();
        self.skip();
        if self.take('}') {
            return Ok(Read::Whole(Value::Object(map)));
        }
        loop {
            self.skip();
            if self.peek().is_none() {
                return Ok(self.lose(Value::Object(map)));
            }
            if !matches!(self.peek(), Some('"' | '\'' | '“' | '”')) {
                return Err(Unreadable);
            }
            let Some(name) = self.string()? else { return Ok(self.lose(Value::Object(map))) };
            self.skip();
            if self.peek().is_none() {
                return Ok(self.lose(Value::Object(map)));
            }
            if !self.take(':') {
                return Err(Unreadable);
            }
            match self.value(depth + 1)? {
                Read::Whole(value) => map.insert(name, value),
                Read::Part(value) => {
                    map.insert(name, value);
                    return Ok(Read::Part(Value::Object(map)));
                }
                Read::Nothing => return Ok(self.lose(Value::Object(map))),
            };
            match self.between('}')? {
                Between::Next => {}
                Between::Closed => return Ok(Read::Whole(Value::Object(map))),
                Between::Ended => return Ok(Read::Part(Value::Object(map))),
            }
        }
    }

    fn list(&mut self, depth: usize) -> Outcome {
        self.take('[');
        let mut list = Vec::new();
        self.skip();
        if self.take(']') {
            return Ok(Read::Whole(Value::Array(list)));
        }
        loop {
            match self.value(depth + 1)? {
                Read::Whole(value) => list.push(value),
                // An incomplete element is dropped: half a task is not a task.
                Read::Part(_) | Read::Nothing => return Ok(self.lose(Value::Array(list))),
            }
            match self.between(']')? {
                Between::Next => {}
                Between::Closed => return Ok(Read::Whole(Value::Array(list))),
                Between::Ended => return Ok(self.lose(Value::Array(list))),
            }
        }
    }

    fn between(&mut self, close: char) -> Result<Between, Unreadable> {
        self.skip();
        if self.take(close) {
            return Ok(Between::Closed);
        }
        if self.take(',') {
            self.skip();
            if self.take(close) {
                self.repairs.note(Repair::TrailingComma);
                return Ok(Between::Closed);
            }
            let ended = self.peek().is_none();
            self.lost |= ended;
            return Ok(if ended { Between::Ended } else { Between::Next });
        }
        match self.peek() {
            None => Ok(Between::Ended),
            // A fence that closes in place of brackets: the model forgot the brackets.
            Some('`' | '~') if self.rest().starts_with("```") || self.rest().starts_with("~~~") => {
                Ok(Between::Ended)
            }
            // Two adjacent elements can only mean a missing comma.
            Some('"' | '{') => {
                self.repairs.note(Repair::MissingComma);
                Ok(Between::Next)
            }
            Some(_) => Err(Unreadable),
        }
    }

    /// Parses a string in any kind of quotes; `None` if the text ends inside of it.
    fn string(&mut self) -> Result<Option<String>, Unreadable> {
        let open = self.peek().ok_or(Unreadable)?;
        self.at += open.len_utf8();
        let close: &[char] = match open {
            '"' => &['"'],
            '\'' => {
                self.repairs.note(Repair::SingleQuotes);
                &['\'']
            }
            _ => {
                self.repairs.note(Repair::SmartQuotes);
                &['”', '“']
            }
        };
        let mut text = String::new();
        loop {
            let Some(character) = self.peek() else { return Ok(None) };
            self.at += character.len_utf8();
            match character {
                '\\' => match self.escape()? {
                    Some(character) => text.push(character),
                    None => return Ok(None),
                },
                _ if close.contains(&character) => return Ok(Some(text)),
                _ => {
                    if character.is_control() {
                        self.repairs.note(Repair::RawControl);
                    }
                    text.push(character);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<Option<char>, Unreadable> {
        let Some(character) = self.peek() else { return Ok(None) };
        self.at += character.len_utf8();
        Ok(Some(match character {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            '"' | '\\' | '/' => character,
            'u' => return self.unicode(),
            other => {
                self.repairs.note(Repair::BadEscape);
                other
            }
        }))
    }

    fn unicode(&mut self) -> Result<Option<char>, Unreadable> {
        let Some(first) = self.hex()? else { return Ok(None) };
        if !(0xD800..0xDC00).contains(&first) {
            return Ok(Some(self.character(first)));
        }
        if self.rest().is_empty() {
            return Ok(None);
        }
        let before = self.at;
        if self.rest().starts_with("\\u") {
            self.at += 2;
            let Some(second) = self.hex()? else { return Ok(None) };
            if (0xDC00..0xE000).contains(&second) {
                let point = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                return Ok(Some(self.character(point)));
            }
            self.at = before;
        }
        Ok(Some(self.character(first)))
    }

    /// The character of a code point; half of a surrogate pair becomes the replacement character.
    fn character(&mut self, point: u32) -> char {
        char::from_u32(point).unwrap_or_else(|| {
            self.repairs.note(Repair::BadEscape);
            char::REPLACEMENT_CHARACTER
        })
    }

    fn hex(&mut self) -> Result<Option<u32>, Unreadable> {
        let Some(digits) = self.rest().get(..4) else {
            let all_hex = self.rest().bytes().all(|byte| byte.is_ascii_hexdigit());
            self.at = if all_hex { self.text.len() } else { self.at };
            return if all_hex { Ok(None) } else { Err(Unreadable) };
        };
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Unreadable);
        }
        let number = u32::from_str_radix(digits, 16).map_err(|_| Unreadable)?;
        self.at += 4;
        Ok(Some(number))
    }

    fn number(&mut self) -> Outcome {
        let rest = self.rest();
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        let length = rest.bytes().take_while(is_part).count();
        let ends_here = length == rest.len();
        let number: Result<Number, _> = serde_json::from_str(&rest[..length]);
        self.at += length;
        match number {
            // More digits might have followed.
            _ if ends_here => Ok(Read::Nothing),
            Ok(number) => Ok(Read::Whole(Value::Number(number))),
            Err(_) => Err(Unreadable),
        }
    }

    fn keyword(&mut self) -> Outcome {
        const WORDS: [(&str, Value, bool); 6] = [
            ("true", Value::Bool(true), false),
            ("false", Value::Bool(false), false),
            ("null", Value::Null, false),
            ("True", Value::Bool(true), true),
            ("False", Value::Bool(false), true),
            ("None", Value::Null, true),
        ];
        let length = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let keyword = &self.rest()[..length];
        let ends_here = length == self.rest().len();
        if let Some((_, value, python)) = WORDS.into_iter().find(|(known, _, _)| *known == keyword) {
            self.at += length;
            if python {
                self.repairs.note(Repair::PythonWords);
            }
            return Ok(Read::Whole(value));
        }
        let begun = length > 0 && ends_here && WORDS.iter().any(|(known, _, _)| known.starts_with(keyword));
        if begun {
            self.at = self.text.len();
        }
        if begun { Ok(Read::Nothing) } else { Err(Unreadable) }
    }
}
