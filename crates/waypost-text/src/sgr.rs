//! Colours of program output: the safe subset of ANSI escape sequences. Weights, underlines and eight hues stay; everything
//! else that begins with an escape character is removed, and the rest is sanitized. The dashboard follows the same rules
//! (`web/src/lib/sgr.ts`); both pass the same cases. Does not know the terminal: each front end picks its own colours.

use crate::sanitize::sanitize_line;

/// A colour of the text or of its background. Others become the nearest of these, which every theme can show legibly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, strum::IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub enum Hue {
    /// Black.
    Black,
    /// Red.
    Red,
    /// Green.
    Green,
    /// Yellow.
    Yellow,
    /// Blue.
    Blue,
    /// Magenta.
    Magenta,
    /// Cyan.
    Cyan,
    /// White.
    White,
    /// Grey: bright black.
    Gray,
}

const HUES: [Hue; 8] =
    [Hue::Black, Hue::Red, Hue::Green, Hue::Yellow, Hue::Blue, Hue::Magenta, Hue::Cyan, Hue::White];

/// The style of a run of characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TextStyle {
    /// Bold.
    pub bold: bool,
    /// Faint.
    pub dim: bool,
    /// Italic.
    pub italic: bool,
    /// Underlined.
    pub underline: bool,
    /// Struck through.
    pub strike: bool,
    /// With text and background exchanged.
    pub inverse: bool,
    /// The colour of the text.
    pub foreground: Option<Hue>,
    /// The colour of the background.
    pub background: Option<Hue>,
}

/// A run of characters of one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StyledText {
    /// The sanitized text.
    pub text: String,
    /// Its style.
    pub style: TextStyle,
}

impl TextStyle {
    /// Returns the escape sequence that sets this style in a terminal. Text in the colour of its background would be hidden,
    /// and has the colours of the terminal instead.
    pub fn escape_sequence(self) -> String {
        let marks = [
            (self.bold, 1),
            (self.dim, 2),
            (self.italic, 3),
            (self.underline, 4),
            (self.inverse, 7),
            (self.strike, 9),
        ];
        let mut codes = vec![0];
        codes.extend(marks.into_iter().filter(|(is_set, _)| *is_set).map(|(_, code)| code));
        let foreground = self.foreground.filter(|hue| self.background != Some(*hue));
        codes.extend(foreground.map(|hue| hue.code(30, 90)));
        let background = self.background.filter(|hue| self.foreground != Some(*hue));
        codes.extend(background.map(|hue| hue.code(40, 100)));
        let codes: Vec<String> = codes.iter().map(u8::to_string).collect();
        format!("\u{1b}[{}m", codes.join(";"))
    }

    fn apply(&mut self, parameters: &str) {
        // Private parameters belong to another function of the terminal.
        if parameters.contains(['<', '=', '>', '?']) {
            return;
        }
        let codes: Vec<u32> =
            parameters.split([';', ':']).map(|code| code.parse().unwrap_or_default()).collect();
        let mut at = 0;
        while let Some(&code) = codes.get(at) {
            match code {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                7 => self.inverse = true,
                9 => self.strike = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                27 => self.inverse = false,
                29 => self.strike = false,
                30..=37 => self.foreground = Some(HUES[(code - 30) as usize]),
                39 => self.foreground = None,
                40..=47 => self.background = Some(HUES[(code - 40) as usize]),
                49 => self.background = None,
                90..=97 => self.foreground = Some(bright(code - 90)),
                100..=107 => self.background = Some(bright(code - 100)),
                38 | 48 => {
                    let level = |place: usize| codes.get(at + place).copied().unwrap_or_default().min(255);
                    let (hue, used) = match codes.get(at + 1) {
                        Some(5) => (palette(level(2)), 2),
                        Some(2) => (nearest(level(2), level(3), level(4)), 4),
                        // It is unknown where such a colour ends.
                        Some(_) | None => return,
                    };
                    if code == 38 {
                        self.foreground = Some(hue);
                    } else {
                        self.background = Some(hue);
                    }
                    at += used;
                }
                _ => {}
            }
            at += 1;
        }
    }
}

impl Hue {
    fn code(self, base: u8, bright: u8) -> u8 {
        HUES.iter().position(|hue| *hue == self).map_or(bright, |place| base + place as u8)
    }

    /// Returns the name of the hue.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

fn bright(index: u32) -> Hue {
    if index == 0 { Hue::Gray } else { HUES[index as usize] }
}

fn palette(index: u32) -> Hue {
    match index {
        0..8 => HUES[index as usize],
        8..16 => bright(index - 8),
        16..232 => {
            let level = |step: u32| if step == 0 { 0 } else { 55 + 40 * step };
            let cube = index - 16;
            nearest(level(cube / 36), level(cube / 6 % 6), level(cube % 6))
        }
        _ => {
            let gray = 8 + 10 * (index.min(255) - 232);
            nearest(gray, gray, gray)
        }
    }
}

/// Returns the hue next to a colour. A free choice of colours could not be read on every background.
fn nearest(red: u32, green: u32, blue: u32) -> Hue {
    let (most, least) = (red.max(green).max(blue), red.min(green).min(blue));
    if most - least < 40 {
        return match most {
            0..64 => Hue::Black,
            64..176 => Hue::Gray,
            _ => Hue::White,
        };
    }
    let is_high = |level: u32| usize::from(level * 2 > most + least);
    HUES[is_high(red) + 2 * is_high(green) + 4 * is_high(blue)]
}

/// Reads program output line by line. A style lasts until it is changed, also over line ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct SgrReader {
    style: TextStyle,
}

impl SgrReader {
    /// Splits one line into runs of one style.
    pub fn line(&mut self, line: &str) -> Vec<StyledText> {
        let mut runs: Vec<StyledText> = Vec::new();
        let mut plain = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(is_escape) {
            plain.push_str(&rest[..at]);
            let (sequence, after) = split_sequence(&rest[at..]);
            if let Some(parameters) = sequence {
                push(&mut runs, &plain, self.style);
                plain.clear();
                self.style.apply(parameters);
            }
            rest = after;
        }
        plain.push_str(rest);
        push(&mut runs, &plain, self.style);
        runs
    }
}

fn push(runs: &mut Vec<StyledText>, text: &str, style: TextStyle) {
    if text.is_empty() {
        return;
    }
    let text = sanitize_tabs(text);
    match runs.last_mut().filter(|last| last.style == style) {
        Some(last) => last.text.push_str(&text),
        None => runs.push(StyledText { text, style }),
    }
}

/// Sanitizes a line and keeps its tabs.
fn sanitize_tabs(text: &str) -> String {
    text.split('\t').map(sanitize_line).collect::<Vec<_>>().join("\t")
}

/// ESC, and the 8-bit forms of CSI and of the beginnings of strings.
fn is_escape(character: char) -> bool {
    matches!(character, '\u{1b}' | '\u{9b}' | '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}')
}

/// Splits an escape sequence off. Returns the parameters if it sets a style.
fn split_sequence(text: &str) -> (Option<&str>, &str) {
    let mut characters = text.chars();
    let first = characters.next();
    let after = characters.as_str();
    let (kind, body) = match first {
        Some('\u{9b}') => (Some('['), after),
        Some('\u{1b}') => (characters.next(), characters.as_str()),
        _ => (Some(']'), after),
    };
    match kind {
        Some('[') => {
            let parameters = body.find(|character| !matches!(character, '0'..='?')).unwrap_or(body.len());
            let last = body[parameters..].find(|character| !matches!(character, ' '..='/'));
            let end = last.map(|last| parameters + last);
            match end.and_then(|end| Some((end, body[end..].chars().next()?))) {
                Some((end, 'm')) if end == parameters => (Some(&body[..parameters]), &body[end + 1..]),
                Some((end, last @ '@'..='~')) => (None, &body[end + last.len_utf8()..]),
                // It was cut off: the parameters are nothing to read.
                Some((end, _)) => (None, &body[end..]),
                None => (None, ""),
            }
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            let end = body.find(['\u{7}', '\u{1b}', '\u{9c}']);
            let Some(end) = end else { return (None, "") };
            let rest = &body[end..];
            let ends = rest.strip_prefix("\u{1b}\\").or_else(|| rest.strip_prefix(['\u{7}', '\u{9c}']));
            (None, ends.unwrap_or(rest))
        }
        Some(' '..='/') => {
            let end = body.find(|character| !matches!(character, ' '..='/'));
            let Some(end) = end else { return (None, "") };
            (None, body[end..].strip_prefix(|last| matches!(last, '0'..='~')).unwrap_or(&body[end..]))
        }
        Some('0'..='~') => (None, body),
        Some(_) | None => (None, after),
    }
}

/// Returns program output for a terminal: with its colours as sequences of our own, or without any.
pub fn terminal_text(text: &str, has_colours: bool) -> String {
    let (mut reader, mut shown) = (SgrReader::default(), String::with_capacity(text.len()));
    for line in text.split_inclusive('\n') {
        let (line, end) = match line.strip_suffix('\n') {
            Some(line) => (line.strip_suffix('\r').unwrap_or(line), "\n"),
            None => (line, ""),
        };
        let mut is_styled = false;
        for run in reader.line(line) {
            let has_style = run.style != TextStyle::default();
            if has_colours && (has_style || is_styled) {
                shown.push_str(&run.style.escape_sequence());
                is_styled = has_style;
            }
            shown.push_str(&run.text);
        }
        if is_styled {
            shown.push_str("\u{1b}[0m");
        }
        shown.push_str(end);
    }
    shown
}
