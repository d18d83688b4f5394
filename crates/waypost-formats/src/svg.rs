//! Writes a plan as an SVG picture: boxes from left to right in the order of the work, without external resources.
//!
//! Write only. Follows the viewer's light or dark scheme; a status is shown by a drawn sign and by a colour. Above a limit the
//! tasks are counted by level instead of drawn.

use std::fmt::Write;

use waypost_core::{Draft, EffectiveStatus};
use waypost_text::{excerpt, one_line, truncate, wrap};

use crate::field_writer::{losses, task_loss};
use crate::graph::{
    BoxKind, CONTAINER_HEAD, Frame, Graph, Grouping, Item, Member, Shown, backward, draw, grouped, levels,
    shown,
};
use crate::label::xml;
use crate::{Dialect, Form, Loss, Unreadable, Writing};

/// Maximum number of tasks that are drawn individually. A larger plan is drawn by level.
pub(crate) const DRAWN_TASKS_MAX: usize = 2_000;
/// Maximum number of arrows that are drawn individually: nobody can follow more.
const DRAWN_ARROWS_MAX: usize = 6_000;
/// Maximum number of bands of a plan that is drawn by level.
const BANDS_MAX: usize = 60;

const BOX_WIDTH: f64 = 212.0;
const HEAD_HEIGHT: f64 = 28.0;
const LINE_HEIGHT: f64 = 15.0;
const COLUMNS: usize = 31;
const ID_COLUMNS: usize = 18;
const ASIDE_COLUMNS: usize = 9;
const LINES_MAX: usize = 3;
const MARGIN: f64 = 24.0;
const TITLE_HEIGHT: f64 = 34.0;
const LEGEND_HEIGHT: f64 = 34.0;
const TITLE_COLUMNS: usize = 90;
/// Maximum columns of the description in a tooltip, and of the dependencies.
const TOOLTIP_COLUMNS: usize = 400;
/// The shape that a picture is laid out for.
const FRAME: (f64, f64) = (1_600.0, 1_000.0);
/// The radius of the bends of an arrow, and the length of its tip.
const BEND_RADIUS: f64 = 5.0;
const TIP_LENGTH: f64 = 6.0;

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
    let shown = whole(graph);
    let items: Vec<Item> = shown
        .boxes
        .iter()
        .zip(owners(&shown))
        .map(|(one, task)| Item {
            size: (BOX_WIDTH, height(&lines[task])),
            parent: one.outer,
            is_container: matches!(one.kind, BoxKind::Open(_)),
        })
        .collect();
    let arrows: Vec<(usize, usize)> =
        graph.edges.iter().map(|&(from, to)| (shown.box_of[from], shown.box_of[to])).collect();
    let drawing = draw(&items, &arrows, FRAME);
    let closing = backward(graph.tasks.len(), &graph.edges);

    let mut elsewhere = vec![Vec::new(); graph.tasks.len()];
    for (waiting, dependency) in &graph.outside {
        elsewhere[*waiting].push(dependency.to_string());
    }
    let mut svg = String::new();
    // A container comes before its content, so that it is drawn behind.
    for (own, task) in owners(&shown).enumerate().filter(|(own, _)| items[*own].is_container) {
        container(&mut svg, graph, drawing.frames[own], task);
    }
    svg.push_str("<g class=\"lines\">\n");
    for (route, is_closing) in drawing.routes.iter().zip(closing) {
        svg.push_str(&line(route, is_closing));
    }
    svg.push_str("</g>\n");
    for (own, task) in owners(&shown).enumerate().filter(|(own, _)| !items[*own].is_container) {
        task_box(&mut svg, graph, drawing.frames[own], &lines[task], task, &elsewhere[task]);
    }
    (svg, drawing.width, drawing.height)
}

/// The boxes of all tasks: each parent is a frame around its children.
fn whole(graph: &Graph<'_>) -> Shown {
    let members: Vec<Member<'_>> = graph
        .tasks
        .iter()
        .zip(&graph.parents)
        .map(|(task, parent)| Member { id: task.spec.id.as_str(), parent: *parent, executor: "", level: 0 })
        .collect();
    let groups = grouped(&members, Some(Grouping::Parent), usize::MAX);
    let open = (0..groups.groups.len()).collect();
    shown(&groups, members.len(), &open, usize::MAX)
}

/// The task of each box.
fn owners(shown: &Shown) -> impl Iterator<Item = usize> {
    let mut owners = vec![0; shown.boxes.len()];
    shown.box_of.iter().enumerate().for_each(|(task, &own)| owners[own] = task);
    owners.into_iter()
}

/// An arrow with rounded bends. It ends a little before the box, which its tip reaches.
fn line(points: &[(f64, f64)], is_closing: bool) -> String {
    let [first, .., last] = points else { return String::new() };
    let mut path = format!("M{:.1} {:.1}", first.0, first.1);
    for corner in points.windows(3) {
        let [before, at, after] = corner else { continue };
        let towards = |to: &(f64, f64)| {
            let (dx, dy) = (to.0 - at.0, to.1 - at.1);
            let length = dx.hypot(dy);
            let radius = BEND_RADIUS.min(length / 2.0) / length.max(f64::MIN_POSITIVE);
            (at.0 + dx * radius, at.1 + dy * radius)
        };
        let (begin, end) = (towards(before), towards(after));
        let _ =
            write!(path, "L{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}", begin.0, begin.1, at.0, at.1, end.0, end.1);
    }
    let _ = write!(path, "H{:.1}", last.0 - TIP_LENGTH);
    let class = if is_closing { "order back" } else { "order" };
    format!("<path class=\"{class}\" d=\"{path}\" marker-end=\"url(#tip)\"/>\n")
}

/// Begins a task: its group with a tooltip.
fn begin(svg: &mut String, graph: &Graph<'_>, frame: Frame, node: usize) {
    let task = &graph.tasks[node];
    let status = graph.statuses[node].as_str();
    let mut tooltip = format!("{} ({status})", one_line(task.spec.id.as_str()));
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
        "<g class=\"task {status}\" transform=\"translate({:.1} {:.1})\"><title>{}</title>",
        frame.x,
        frame.y,
        xml(&tooltip)
    );
}

/// Draws a parent as a frame around its children.
fn container(svg: &mut String, graph: &Graph<'_>, frame: Frame, node: usize) {
    begin(svg, graph, frame, node);
    let task = &graph.tasks[node];
    let status = graph.statuses[node].as_str();
    let id = one_line(task.spec.id.as_str());
    let middle = CONTAINER_HEAD / 2.0;
    let _ = write!(
        svg,
        "<rect class=\"frame\" width=\"{}\" height=\"{}\" rx=\"9\"/><use href=\"#sign-{status}\" x=\"8\" y=\"{}\"/>\
         <text class=\"id\" x=\"29\" y=\"{}\">{}</text>",
        frame.width,
        frame.height,
        middle - 7.0,
        middle + 4.0,
        xml(&truncate(&id, ID_COLUMNS))
    );
    // What the title leaves of the width, in columns.
    let columns = ((frame.width - 45.0) / 7.0) as usize;
    let columns = columns.saturating_sub(id.chars().count().min(ID_COLUMNS) + 2);
    let description = excerpt(&task.spec.description, columns);
    if columns > 3 && !description.is_empty() {
        let (x, y) = (frame.width - 9.0, middle + 4.0);
        let _ = write!(svg, "<text class=\"aside\" x=\"{x}\" y=\"{y}\">{}</text>", xml(&description));
    }
    svg.push_str("</g>\n");
}

fn task_box(
    svg: &mut String,
    graph: &Graph<'_>,
    frame: Frame,
    lines: &[String],
    node: usize,
    elsewhere: &[String],
) {
    begin(svg, graph, frame, node);
    let task = &graph.tasks[node];
    let status = graph.statuses[node].as_str();
    let _ = write!(
        svg,
        "<rect width=\"{}\" height=\"{}\" rx=\"7\"/><use href=\"#sign-{status}\" x=\"8\" y=\"7\"/>\
         <text class=\"id\" x=\"29\" y=\"19\">{}</text>",
        frame.width,
        frame.height,
        xml(&truncate(&one_line(task.spec.id.as_str()), ID_COLUMNS))
    );
    if !elsewhere.is_empty() {
        let aside = format!("⇠ {}", excerpt(&elsewhere.join(", "), ASIDE_COLUMNS));
        let _ =
            write!(svg, "<text class=\"aside\" x=\"{}\" y=\"19\">{}</text>", frame.width - 9.0, xml(&aside));
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
<g id=\"sign-disputed\"><path class=\"stroke\" d=\"M2 5H12M2 9H12M10 1.6L4 12.4\"/></g>\
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
.lines .back{stroke:#cf222e;stroke-dasharray:5 3}
.tip{fill:#6e7781}
.task rect{stroke-width:1.3}
.task .frame{fill:none;stroke-width:1.3;stroke-dasharray:none}
.sign,.stroke{fill:none;stroke:currentColor;stroke-width:1.5}
.cut{fill:none;stroke:#ffffff;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}
.full{fill:currentColor}
.ready,.queued{color:#57606a}
.blocked{color:#8c959f}
.held{color:#57606a}
.asking,.disputed{color:#bf3989}
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
.asking rect,.disputed rect{fill:#fbefff;stroke:#bf3989;stroke-width:2.2}
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
.lines .back{stroke:#ff7b72}
.tip{fill:#7d8590}
.cut{stroke:#0d1117}
.ready rect,.queued rect{fill:#161b22;stroke:#6e7681}
.blocked rect{fill:#161b22;stroke:#484f58}
.held rect{fill:#21262d;stroke:#9da7b3}
.asking rect,.disputed rect{fill:#3d1a2e;stroke:#ff9dd2}
.reported rect{fill:#0c2d2f;stroke:#39c5cf}
.running rect{fill:#0c2d52;stroke:#58a6ff}
.done rect{fill:#0f2f1a;stroke:#3fb950}
.failed rect{fill:#3c1113;stroke:#ff7b72}
.skipped rect{fill:#33270a;stroke:#d29922}
.cancelled rect{fill:#21262d;stroke:#8b949e}
.ready,.queued,.held{color:#9da7b3}
.blocked{color:#7d8590}
.asking,.disputed{color:#ff9dd2}
.reported{color:#39c5cf}
.running{color:#58a6ff}
.done{color:#3fb950}
.failed{color:#ff7b72}
.skipped{color:#d29922}
.cancelled{color:#8b949e}
}
";
