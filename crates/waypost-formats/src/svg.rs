//! Writes a plan as an SVG picture: boxes from top to bottom in the order of the work, without external resources.
//!
//! Write only. Follows the viewer's light or dark scheme; a status is shown by a drawn sign and by a colour. Above a limit the
//! tasks are counted by level instead of drawn.

use std::fmt::Write;

use waypost_core::{Draft, EffectiveStatus};
use waypost_text::{excerpt, one_line, truncate, wrap};

use crate::field_writer::{losses, task_loss};
use crate::graph::Graph;
use crate::graph::{Layout, Route, layered, levels};
use crate::label::xml;
use crate::{Dialect, Form, Loss, Unreadable, Writing};

/// Maximum number of tasks that are drawn individually. A larger plan is drawn by level.
pub(crate) const DRAWN_TASKS_MAX: usize = 2_000;
/// Maximum number of arrows that are drawn individually.
const DRAWN_ARROWS_MAX: usize = 20_000;
/// Maximum number of bands of a plan that is drawn by level.
const BANDS_MAX: usize = 60;

const BOX_WIDTH: f64 = 212.0;
const HEAD_HEIGHT: f64 = 28.0;
const LINE_HEIGHT: f64 = 15.0;
const COLUMNS: usize = 31;
const ID_COLUMNS: usize = 18;
const PARENT_COLUMNS: usize = 9;
const LINES_MAX: usize = 3;
const MARGIN: f64 = 24.0;
const TITLE_HEIGHT: f64 = 34.0;
const LEGEND_HEIGHT: f64 = 34.0;
const TITLE_COLUMNS: usize = 90;
/// Maximum columns of the description in a tooltip, and of the dependencies.
const TOOLTIP_COLUMNS: usize = 400;

pub(crate) fn write(draft: &Draft, _form: Form) -> Result<Writing, Unreadable> {
    let graph = Graph::of(draft);
    let by_task = draft.tasks.len() <= DRAWN_TASKS_MAX && graph.edges.len() <= DRAWN_ARROWS_MAX;
    let (body, width, height) = if by_task { tasks(&graph) } else { bands(&graph) };
    let text = frame(draft, &graph.statuses, &body, width, height);
    Ok(Writing { text, losses: what_is_lost(draft, by_task) })
}

fn what_is_lost(draft: &Draft, by_task: bool) -> Vec<Loss> {
    let shown: &[&str] =
        if by_task { &["id", "description", "parent", "depends_on", "status"] } else { &["status"] };
    let mut lost = losses(draft, Dialect::Svg, &["title"], shown);
    if by_task {
        for task in &draft.tasks {
            let description = &task.spec.description;
            if excerpt(description, TOOLTIP_COLUMNS) != *description {
                lost.push(task_loss(&task.spec.id, "description"));
            }
        }
    }
    lost.sort();
    lost.dedup();
    lost
}

/// Frames every picture: style, title, the drawing itself, and the legend.
fn frame(draft: &Draft, statuses: &[EffectiveStatus], body: &str, width: f64, height: f64) -> String {
    let title = match one_line(&draft.spec.title) {
        title if title.is_empty() => "Plan".into(),
        title => title,
    };
    let counts: Vec<(EffectiveStatus, usize)> = EffectiveStatus::ALL
        .into_iter()
        .map(|status| (status, statuses.iter().filter(|of| **of == status).count()))
        .filter(|(_, count)| *count > 0)
        .collect();
    let legend_width: f64 = counts.iter().map(|(status, count)| legend_step(*status, *count)).sum();
    let title_shown = truncate(&title, TITLE_COLUMNS);
    let title_width = title_shown.chars().count() as f64 * 10.0;
    let inner = width.max(legend_width).max(title_width).max(220.0);
    let (full_width, full_height) =
        (inner + 2.0 * MARGIN, height + 2.0 * MARGIN + TITLE_HEIGHT + LEGEND_HEIGHT);
    let summary: Vec<String> =
        counts.iter().map(|(status, count)| format!("{count} {}", status.as_str())).collect();
    let description = match summary.is_empty() {
        true => "No tasks.".to_owned(),
        false => format!("{} tasks: {}.", draft.tasks.len(), summary.join(", ")),
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {full_width:.0} {full_height:.0}\" \
         width=\"{full_width:.0}\" height=\"{full_height:.0}\" role=\"img\">\n\
         <title>{}</title>\n<desc>{}</desc>\n<style>{STYLE}</style>\n{SIGNS}\n\
         <rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n",
        xml(&title),
        xml(&description)
    );
    // Writing into a String cannot fail.
    let _ = writeln!(
        svg,
        "<text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{}</text>",
        MARGIN + 14.0,
        xml(&title_shown)
    );
    let shift = (inner - width) / 2.0 + MARGIN;
    let _ = writeln!(svg, "<g transform=\"translate({shift:.1} {:.1})\">\n{body}</g>", MARGIN + TITLE_HEIGHT);
    let y = full_height - MARGIN - 4.0;
    let mut x = MARGIN;
    for (status, count) in counts {
        let word = status.as_str();
        let _ = writeln!(
            svg,
            "<g class=\"{word}\"><use href=\"#sign-{word}\" x=\"{x:.1}\" y=\"{:.1}\"/>\
             <text class=\"legend\" x=\"{:.1}\" y=\"{y:.1}\">{count} {word}</text></g>",
            y - 12.0,
            x + 20.0
        );
        x += legend_step(status, count);
    }
    svg.push_str("</svg>\n");
    svg
}

fn legend_step(status: EffectiveStatus, count: usize) -> f64 {
    (count.to_string().len() + status.as_str().len()) as f64 * 7.0 + 46.0
}

/// Draws every task as a box.
fn tasks(graph: &Graph<'_>) -> (String, f64, f64) {
    let lines: Vec<Vec<String>> =
        graph.tasks.iter().map(|task| wrap(&one_line(&task.spec.description), COLUMNS, LINES_MAX)).collect();
    let height = |lines: &Vec<String>| match lines.len() {
        0 => HEAD_HEIGHT,
        count => HEAD_HEIGHT + LINE_HEIGHT * count as f64 + 8.0,
    };
    let sizes: Vec<(f64, f64)> = lines.iter().map(|lines| (BOX_WIDTH, height(lines))).collect();
    // A child is placed below its parent; if one depends on the other as well, one line is enough.
    let mut arrows = graph.edges.clone();
    let ordered = arrows.len();
    let known: std::collections::HashSet<(usize, usize)> = arrows.iter().copied().collect();
    let parts = graph.parents.iter().enumerate().filter_map(|(n, parent)| Some(((*parent)?, n)));
    arrows.extend(
        parts.filter(|&(whole, part)| !known.contains(&(whole, part)) && !known.contains(&(part, whole))),
    );
    let layout = layered(&sizes, &arrows);

    let mut elsewhere = vec![Vec::new(); graph.tasks.len()];
    for (waiting, dependency) in &graph.outside {
        elsewhere[*waiting].push(dependency.to_string());
    }
    let mut svg = String::new();
    svg.push_str("<g class=\"lines\">\n");
    for (n, route) in layout.routes.iter().enumerate() {
        svg.push_str(&line(route, n < ordered));
    }
    svg.push_str("</g>\n");
    for node in 0..graph.tasks.len() {
        task(&mut svg, graph, &layout, &lines[node], sizes[node], node, &elsewhere[node]);
    }
    let back = layout.routes.iter().any(|route| matches!(route, Route::Back(..)));
    (svg, layout.width + if back { 60.0 } else { 0.0 }, layout.height)
}

fn line(route: &Route, is_order: bool) -> String {
    let curve = |(x0, y0): (f64, f64), (x1, y1): (f64, f64)| {
        let middle = (y0 + y1) / 2.0;
        format!("C{x0:.1} {middle:.1} {x1:.1} {middle:.1} {x1:.1} {y1:.1}")
    };
    // The tip of the arrow reaches the box; the line ends a little before.
    let short = |(x, y): (f64, f64)| (x, y - if is_order { 6.0 } else { 0.0 });
    let (path, class) = match route {
        Route::Down(points) => {
            let mut path = String::new();
            for (n, &point) in points.iter().enumerate() {
                let point = if n + 1 == points.len() { short(point) } else { point };
                let piece = match n.checked_sub(1).and_then(|before| points.get(before)) {
                    None => format!("M{:.1} {:.1}", point.0, point.1),
                    Some(before) if before.0 == point.0 => format!("V{:.1}", point.1),
                    Some(before) => curve(*before, point),
                };
                path.push_str(&piece);
            }
            (path, if is_order { "order" } else { "part" })
        }
        Route::Far(start, end) => {
            let path = format!("M{:.1} {:.1}{}", start.0, start.1, curve(*start, short(*end)));
            (path, if is_order { "order far" } else { "part far" })
        }
        Route::Back((x0, y0), (x1, y1)) => {
            let out = x0.max(*x1) + 50.0;
            let path = format!("M{x0:.1} {y0:.1}C{out:.1} {y0:.1} {out:.1} {y1:.1} {:.1} {y1:.1}", x1 + 6.0);
            (path, if is_order { "order back" } else { "part back" })
        }
    };
    let tip = if is_order { " marker-end=\"url(#tip)\"" } else { "" };
    format!("<path class=\"{class}\" d=\"{path}\"{tip}/>\n")
}

fn task(
    svg: &mut String,
    graph: &Graph<'_>,
    layout: &Layout,
    lines: &[String],
    (width, height): (f64, f64),
    node: usize,
    elsewhere: &[String],
) {
    let task = &graph.tasks[node];
    let (x, y) = layout.corners[node];
    let status = graph.statuses[node].as_str();
    let id = one_line(task.spec.id.as_str());
    let mut tooltip = format!("{id} ({status})");
    let description = excerpt(&task.spec.description, TOOLTIP_COLUMNS);
    if !description.is_empty() {
        tooltip.push_str(&format!("\n{description}"));
    }
    if let Some(parent) = &task.spec.parent {
        tooltip.push_str(&format!("\npart of {}", one_line(parent.as_str())));
    }
    let after: Vec<String> =
        task.spec.depends_on.iter().map(|on| one_line(&on.to_string()).into_owned()).collect();
    if !after.is_empty() {
        tooltip.push_str(&format!("\n{}", truncate(&format!("after {}", after.join(", ")), TOOLTIP_COLUMNS)));
    }
    let _ = write!(
        svg,
        "<g class=\"task {status}\" transform=\"translate({x:.1} {y:.1})\"><title>{}</title>\
         <rect width=\"{width}\" height=\"{height}\" rx=\"7\"/><use href=\"#sign-{status}\" x=\"8\" y=\"7\"/>\
         <text class=\"id\" x=\"29\" y=\"19\">{}</text>",
        xml(&tooltip),
        xml(&truncate(&id, ID_COLUMNS))
    );
    let aside = match (elsewhere.is_empty(), &task.spec.parent) {
        (false, _) => Some(format!("⇠ {}", excerpt(&elsewhere.join(", "), PARENT_COLUMNS))),
        (true, Some(parent)) => Some(format!("in {}", excerpt(parent.as_str(), PARENT_COLUMNS))),
        (true, None) => None,
    };
    if let Some(aside) = aside {
        let _ = write!(svg, "<text class=\"aside\" x=\"{}\" y=\"19\">{}</text>", width - 9.0, xml(&aside));
    }
    for (n, line) in lines.iter().enumerate() {
        let y = HEAD_HEIGHT + 11.0 + LINE_HEIGHT * n as f64;
        let _ = write!(svg, "<text x=\"10\" y=\"{y}\">{}</text>", xml(line));
    }
    svg.push_str("</g>\n");
}

/// Draws the levels of a plan that is too large to draw by task: one band each, with its counts.
fn bands(graph: &Graph<'_>) -> (String, f64, f64) {
    const BAND_WIDTH: f64 = 560.0;
    const BAND_HEIGHT: f64 = 44.0;
    const BAND_STEP: f64 = 66.0;
    let (levels, _) = levels(graph.tasks.len(), &graph.edges);
    let count = levels.iter().max().map_or(0, |level| level + 1);
    let levels_in_band = count.div_ceil(BANDS_MAX).max(1);
    let mut bands = vec![[0usize; EffectiveStatus::ALL.len()]; count.div_ceil(levels_in_band)];
    for (own, level) in graph.statuses.iter().zip(&levels) {
        let kind = EffectiveStatus::ALL.iter().position(|status| status == own).unwrap_or(0);
        bands[level / levels_in_band][kind] += 1;
    }
    let most = bands.iter().map(|band| band.iter().sum::<usize>()).max().unwrap_or(1).max(1);
    let mut svg = String::new();
    for (n, band) in bands.iter().enumerate() {
        let y = n as f64 * BAND_STEP;
        let total: usize = band.iter().sum();
        let first = n * levels_in_band + 1;
        let last = (first + levels_in_band - 1).min(count);
        let name = if first == last { format!("level {first}") } else { format!("levels {first} to {last}") };
        let tasks = if total == 1 { "task" } else { "tasks" };
        let words: Vec<String> = EffectiveStatus::ALL
            .iter()
            .zip(band)
            .filter(|(_, count)| **count > 0)
            .map(|(status, count)| format!("{count} {}", status.as_str()))
            .collect();
        if n > 0 {
            let middle = BAND_WIDTH / 2.0;
            let _ = writeln!(
                svg,
                "<g class=\"lines\"><path class=\"order\" d=\"M{middle} {:.1}V{:.1}\" marker-end=\"url(#tip)\"/></g>",
                y - (BAND_STEP - BAND_HEIGHT),
                y - 6.0
            );
        }
        let _ = write!(
            svg,
            "<g class=\"task ready\" transform=\"translate(0 {y:.1})\"><title>{name}: {}</title>\
             <rect width=\"{BAND_WIDTH}\" height=\"{BAND_HEIGHT}\" rx=\"7\"/>\
             <text class=\"id\" x=\"12\" y=\"19\">{name}: {total} {tasks}</text>\
             <text class=\"aside\" x=\"{:.1}\" y=\"19\">{}</text></g>",
            words.join(", "),
            BAND_WIDTH - 12.0,
            words.join(", ")
        );
        let mut x = 12.0;
        let scale = (BAND_WIDTH - 24.0) / most as f64;
        for (status, count) in EffectiveStatus::ALL.iter().zip(band).filter(|(_, count)| **count > 0) {
            let width = *count as f64 * scale;
            let _ = write!(
                svg,
                "<rect class=\"bar {}\" x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"8\"/>",
                status.as_str(),
                y + 28.0
            );
            x += width;
        }
        svg.push('\n');
    }
    let height = (bands.len() as f64 * BAND_STEP - (BAND_STEP - BAND_HEIGHT)).max(0.0);
    (svg, BAND_WIDTH, height)
}

/// The signs of the statuses, drawn so that they depend on no font, and the tip of the arrows.
const SIGNS: &str = "<defs>\
<marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"2\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\" \
markerUnits=\"userSpaceOnUse\"><path class=\"tip\" d=\"M0 0L8 4L0 8Z\"/></marker>\
<g id=\"sign-ready\"><circle class=\"sign\" cx=\"7\" cy=\"7\" r=\"6\"/></g>\
<g id=\"sign-blocked\"><circle class=\"sign dotted\" cx=\"7\" cy=\"7\" r=\"6\"/></g>\
<g id=\"sign-queued\"><circle class=\"sign\" cx=\"7\" cy=\"7\" r=\"6\"/><path class=\"full\" d=\"M7 7V1A6 6 0 0 1 13 7Z\"/></g>\
<g id=\"sign-reported\"><circle class=\"sign\" cx=\"7\" cy=\"7\" r=\"6\"/><path class=\"full\" d=\"M7 1A6 6 0 0 1 7 13Z\"/></g>\
<g id=\"sign-held\"><path class=\"sign\" d=\"M1 1H13V13H1Z\"/><path class=\"full\" d=\"M4 4H10V10H4Z\"/></g>\
<g id=\"sign-asking\"><path class=\"stroke\" d=\"M4 4.4A3 3 0 1 1 8.4 7Q7 7.8 7 9.4\"/><circle class=\"full\" cx=\"7\" cy=\"12.4\" r=\"1.1\"/></g>\
<g id=\"sign-running\"><circle class=\"sign\" cx=\"7\" cy=\"7\" r=\"6\"/><path class=\"full\" d=\"M7 1A6 6 0 0 0 7 13Z\"/></g>\
<g id=\"sign-done\"><circle class=\"full\" cx=\"7\" cy=\"7\" r=\"6.6\"/><path class=\"cut\" d=\"M3.8 7.2L6.2 9.6L10.4 4.8\"/></g>\
<g id=\"sign-failed\"><path class=\"full\" d=\"M4.2 0.4H9.8L13.6 4.2V9.8L9.8 13.6H4.2L0.4 9.8V4.2Z\"/>\
<path class=\"cut\" d=\"M4.6 4.6L9.4 9.4M9.4 4.6L4.6 9.4\"/></g>\
<g id=\"sign-skipped\"><circle class=\"sign\" cx=\"7\" cy=\"7\" r=\"6\"/><path class=\"stroke\" d=\"M3 11L11 3\"/></g>\
<g id=\"sign-cancelled\"><path class=\"full\" d=\"M2 2H12V12H2Z\"/></g>\
</defs>";

/// Colours for light and dark. Only plain rules: many viewers do not support variables.
const STYLE: &str = "
text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:#24292f}
.title{font-size:17px;font-weight:600}
.id{font-weight:600}
.aside{text-anchor:end;fill:#57606a;font-size:11px}
.ground{fill:#ffffff}
.lines path{fill:none;stroke:#6e7781;stroke-width:1.3}
.lines .part{stroke:#afb8c1;stroke-dasharray:2 3}
.lines .far{opacity:.45}
.lines .back{stroke:#cf222e;stroke-dasharray:5 3}
.tip{fill:#6e7781}
.task rect{stroke-width:1.3}
.sign,.stroke{fill:none;stroke:currentColor;stroke-width:1.5}
.cut{fill:none;stroke:#ffffff;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.full{fill:currentColor}
.ready,.queued{color:#57606a}
.blocked{color:#8c959f}
.held{color:#57606a}
.asking{color:#bf3989}
.reported{color:#1b7c83}
.dotted{stroke-dasharray:2 2}
.running{color:#0969da}
.done{color:#1a7f37}
.failed{color:#cf222e}
.skipped{color:#9a6700}
.cancelled{color:#6e7781}
.ready rect,.queued rect{fill:#f6f8fa;stroke:#8c959f}
.blocked rect{fill:#f6f8fa;stroke:#afb8c1;stroke-dasharray:5 3}
.held rect{fill:#eaeef2;stroke:#57606a;stroke-width:2.2}
.asking rect{fill:#fbefff;stroke:#bf3989;stroke-width:2.2}
.reported rect{fill:#ddf4ff;stroke:#1b7c83}
.running rect{fill:#ddf4ff;stroke:#0969da;stroke-width:2.2}
.done rect{fill:#dafbe1;stroke:#1a7f37}
.failed rect{fill:#ffebe9;stroke:#cf222e;stroke-width:2.2}
.skipped rect{fill:#fff8c5;stroke:#9a6700;stroke-dasharray:5 3}
.cancelled rect{fill:#eaeef2;stroke:#6e7781;stroke-dasharray:2 3}
rect.bar{stroke:none;fill:currentColor}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}
.aside{fill:#9da7b3}
.ground{fill:#0d1117}
.lines path{stroke:#7d8590}
.lines .part{stroke:#484f58}
.lines .back{stroke:#ff7b72}
.tip{fill:#7d8590}
.cut{stroke:#0d1117}
.ready rect,.queued rect{fill:#161b22;stroke:#6e7681}
.blocked rect{fill:#161b22;stroke:#484f58}
.held rect{fill:#21262d;stroke:#9da7b3}
.asking rect{fill:#3d1a2e;stroke:#ff9dd2}
.reported rect{fill:#0c2d2f;stroke:#39c5cf}
.running rect{fill:#0c2d52;stroke:#58a6ff}
.done rect{fill:#0f2f1a;stroke:#3fb950}
.failed rect{fill:#3c1113;stroke:#ff7b72}
.skipped rect{fill:#33270a;stroke:#d29922}
.cancelled rect{fill:#21262d;stroke:#8b949e}
.ready,.queued,.held{color:#9da7b3}
.blocked{color:#7d8590}
.asking{color:#ff9dd2}
.reported{color:#39c5cf}
.running{color:#58a6ff}
.done{color:#3fb950}
.failed{color:#ff7b72}
.skipped{color:#d29922}
.cancelled{color:#8b949e}
}
";
