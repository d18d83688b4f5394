//! The log of a task as styled text: its colours, and its errors as places to go to. Reads no file.

use ratatui::style::{Color, Modifier, Style};
use waypost_core::Timestamp;
use waypost_text::{Hue, LogLineKind, SgrReader, TextStyle, is_protocol_line};

use crate::styled_text::{StyledLine, StyledText};
use crate::theme::Theme;

/// Columns of a time before a line.
const TIME_COLUMNS: usize = "12:00:00 ".len();

/// Reads a log. The first line of each run of errors is a place to go to. Puts before each line when it was written, if these
/// are the times of the lines.
pub(super) fn log_text(log: &str, times: &[Timestamp], theme: Theme) -> StyledText {
    let mut reader = SgrReader::default();
    let (mut lines, mut errors): (Vec<StyledLine>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut was_error = false;
    for (number, line) in log.lines().enumerate() {
        // What overwrites a line of progress stands after the last carriage return.
        let line = line.trim_end_matches('\r');
        let line = line.rsplit('\r').next().unwrap_or(line);
        if is_protocol_line(line) {
            continue;
        }
        let mut styled = StyledLine::default();
        if let Some(at) = times.get(number) {
            styled = styled.with_margin("", TIME_COLUMNS);
            styled.push(&format!("{} ", at.to_the_second().split_off(11)), theme.quiet());
        }
        let runs = reader.line(line);
        let plain: String = runs.iter().map(|run| run.text.as_str()).collect();
        let kind = LogLineKind::of(&plain);
        for run in runs {
            styled.push(&run.text, style_of(run.style, kind, theme));
        }
        let is_error = kind == LogLineKind::Error;
        if is_error && !was_error {
            errors.push(lines.len());
        }
        was_error = is_error;
        lines.push(styled);
    }
    StyledText::new(lines, errors)
}

/// The style of a run: its own colours, or those of the kind of its line if it has none.
fn style_of(style: TextStyle, kind: LogLineKind, theme: Theme) -> Style {
    let marks = [
        (style.bold, Modifier::BOLD),
        (style.dim, Modifier::DIM),
        (style.italic, Modifier::ITALIC),
        (style.underline, Modifier::UNDERLINED),
        (style.strike, Modifier::CROSSED_OUT),
        (style.inverse, Modifier::REVERSED),
    ];
    let modifiers = marks.into_iter().filter(|(is_set, _)| *is_set).map(|(_, modifier)| modifier);
    let mut shown = modifiers.fold(Style::new(), Style::add_modifier);
    if theme == Theme::Plain {
        return shown;
    }
    // Text in the colour of its background, or in that of the terminal's, would be hidden.
    let foreground = style.foreground.filter(|hue| style.background != Some(*hue));
    let is_lost = |hue: &Hue| style.background.is_none() && matches!(hue, Hue::Black | Hue::White);
    shown.fg = foreground.filter(|hue| !is_lost(hue)).map(colour);
    shown.bg = style.background.filter(|hue| !matches!(hue, Hue::Black | Hue::White)).map(colour);
    match kind {
        LogLineKind::Error if style == TextStyle::default() => theme.wrong(),
        LogLineKind::Warning if style == TextStyle::default() => theme.warning(),
        LogLineKind::Error | LogLineKind::Warning | LogLineKind::Plain => shown,
    }
}

fn colour(hue: Hue) -> Color {
    match hue {
        Hue::Black => Color::Black,
        Hue::Red => Color::Red,
        Hue::Green => Color::Green,
        Hue::Yellow => Color::Yellow,
        Hue::Blue => Color::Blue,
        Hue::Magenta => Color::Magenta,
        Hue::Cyan => Color::Cyan,
        Hue::White => Color::White,
        Hue::Gray => Color::DarkGray,
    }
}
