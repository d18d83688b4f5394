//! Line charts as SVG, and tables as Markdown.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
const MARGIN: (f64, f64, f64, f64) = (24.0, 200.0, 48.0, 64.0);
/// Told apart without colour by their marks too.
const COLOURS: [&str; 6] = ["#1f5fbf", "#b3261e", "#1b7f4b", "#8a5a00", "#6a3fb5", "#44505c"];
const DASHES: [&str; 6] = ["", "6 3", "2 3", "10 4", "1 4", "8 3 2 3"];

/// One line of a chart.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<(f64, f64)>,
}

/// Draws lines over a logarithmic horizontal axis.
pub(super) fn lines(title: &str, horizontal: &str, vertical: &str, lines: &[Line]) -> String {
    let (top, right, bottom, left) = MARGIN;
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = points().map(|(_, y)| *y).fold(0.0, f64::max).max(1e-9);
    let ends = points().fold((f64::MAX, f64::MIN), |(least, most), (x, _)| (least.min(*x), most.max(*x)));
    let x_of = |x: f64| {
        let share = (x / ends.0).ln() / (ends.1 / ends.0).ln().max(1e-9);
        left + share * (WIDTH - left - right)
    };
    let y_of = |y: f64| HEIGHT - bottom - y / most * (HEIGHT - top - bottom);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\">\n<title>{title}</title>\n<rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#ffffff\"/>\n"
    );
    for step in 0..=4 {
        let value = most * f64::from(step) / 4.0;
        let y = y_of(value);
        let _ = writeln!(
            svg,
            "<line x1=\"{left}\" y1=\"{y:.1}\" x2=\"{:.1}\" y2=\"{y:.1}\" stroke=\"#d5d9de\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333\">{}</text>",
            WIDTH - right,
            left - 6.0,
            y + 4.0,
            short(value)
        );
    }
    let mut marks: Vec<f64> = points().map(|(x, _)| *x).collect();
    marks.sort_by(f64::total_cmp);
    marks.dedup();
    for x in marks {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#333\">{}</text>",
            x_of(x),
            HEIGHT - bottom + 18.0,
            short(x)
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#333\">{horizontal}</text><text x=\"14\" y=\"{:.1}\" transform=\"rotate(-90 14 {:.1})\" text-anchor=\"middle\" fill=\"#333\">{vertical}</text>",
        (left + WIDTH - right) / 2.0,
        HEIGHT - 10.0,
        HEIGHT / 2.0,
        HEIGHT / 2.0
    );
    for (number, line) in lines.iter().enumerate() {
        let (colour, dash) = (COLOURS[number % COLOURS.len()], DASHES[number % DASHES.len()]);
        let path: Vec<String> =
            line.points.iter().map(|(x, y)| format!("{:.1},{:.1}", x_of(*x), y_of(*y))).collect();
        let y = top + 16.0 + 20.0 * number as f64;
        let x = WIDTH - right + 14.0;
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/>\n<line x1=\"{x}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dash}\"/><text x=\"{:.1}\" y=\"{:.1}\" fill=\"#333\">{}</text>",
            path.join(" "),
            y - 4.0,
            x + 24.0,
            y - 4.0,
            x + 30.0,
            y,
            line.name
        );
    }
    svg.push_str("</svg>\n");
    svg
}

/// Returns a number in few characters.
pub(super) fn short(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    match value {
        value if value >= 10_000.0 => format!("{:.0}k", value / 1e3),
        value if value >= 1_000.0 => format!("{:.1}k", value / 1e3).replace(".0k", "k"),
        value if value >= 10.0 || value == 0.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Returns a table.
pub(super) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), "---|".repeat(head.len()));
    for row in rows {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}
