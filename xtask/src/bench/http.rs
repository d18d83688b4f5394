//! The HTTP server: reads and writes next to a bare axum handler on the same store, many listeners while a plan runs,
//! the bytes that a browser fetches before the first paint, and the time to draw large plans.

mod floor;
mod listeners;
mod load;
mod server;

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use self::floor::Floor;
pub(super) use self::floor::serve as serve_floor;
use self::listeners::Listeners;
use self::load::{Load, wrk};
use self::server::Server;
use super::measure::{median, peak_megabytes};
use super::report::Report;
use super::run::{before, workspace, write};
use crate::exec::{DISTRIBUTED, binary, root};
use crate::web;

/// Minimum rate relative to the bare handler, for reads and for writes.
const READS_MIN: f64 = 0.5;
const WRITES_MIN: f64 = 0.7;
/// Maximum memory of the server while a plan runs with all listeners, in megabytes.
const MEMORY_MAX: f64 = 400.0;
/// Maximum time until a plan of a thousand tasks is drawn, in seconds.
const DRAWN_MAX: f64 = 1.0;
/// Maximum time between two frames while panning, in milliseconds, so that it is smooth.
const FRAME_MAX: f64 = 34.0;
/// Milliseconds of script, styles and layout that a frame may take.
const WORK_MAX: f64 = 12.0;

/// How much is measured.
pub(super) struct Workload {
    rounds: usize,
    /// Duration of each load, in seconds.
    seconds: u32,
    /// Number of plans in the store for the list.
    plans: usize,
    listeners: usize,
    /// Tasks that end while they listen.
    tasks: usize,
}

impl Workload {
    pub(super) const WHOLE: Self = Self { rounds: 3, seconds: 5, plans: 200, listeners: 500, tasks: 10_000 };
    pub(super) const QUICK: Self = Self { rounds: 1, seconds: 1, plans: 20, listeners: 500, tasks: 1_000 };
}

/// Returns the binary of the same profile as this program.
fn waypost() -> PathBuf {
    binary(if cfg!(debug_assertions) { "debug" } else { DISTRIBUTED })
}

pub(super) fn run(report: &mut Report, workload: &Workload) -> Result<()> {
    wrk()?;
    answers(report, workload)?;
    listening(report, workload)?;
    first_paint(report)?;
    drawing(report)
}

/// Measures reads and writes, alternately with the bare handler.
fn answers(report: &mut Report, workload: &Workload) -> Result<()> {
    let scratch = workspace("bench-http")?;
    write(&scratch, "read", 100, "noop", |number| before(number, 1))?;
    let server = Server::start(&waypost(), &scratch, &["--no-worker"])?;
    let plan: Value = serde_json::from_slice(&std::fs::read(scratch.join("read.json"))?)?;
    for number in 0..workload.plans {
        server.post("/plans", &serde_json::json!({ "id": format!("p{number}"), "plan": plan }))?;
    }
    let floor = Floor::start(&scratch)?;
    let status = r#"request = function()
        count = (count or 0) + 1
        return wrk.format("PATCH", nil, nil, '{"status":"' .. os.time() .. " " .. count .. '"}')
    end"#;
    let kinds = [
        ("reads of a plan", "/plans/p0", None, READS_MIN),
        ("reads of a list of 50 plans", "/plans?limit=50", None, READS_MIN),
        ("writes", "/plans/p1", Some(status), WRITES_MIN),
    ];
    for (what, path, script, budget) in kinds {
        let (mut ours, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..workload.rounds {
            let load = |site: &str, session: &[(&'static str, String)]| {
                let url = format!("{site}{path}");
                Load { url, session, script, seconds: workload.seconds }.run(&scratch)
            };
            let one = load(&server.api(), server.session())?;
            let other = load(&floor.site(), &[])?;
            ratios.push(one / other);
            ours.push(one);
            bare.push(other);
        }
        report.note(&format!("baseline: bare axum handler on the same store, {what}"), rate(median(bare)));
        report.note(&format!("serve, {what}"), rate(median(ours)));
        report.at_least("  relative to the baseline", median(ratios), budget, "×");
    }
    let constant = Load {
        url: format!("{}/constant", floor.site()),
        session: &[],
        script: None,
        seconds: workload.seconds,
    };
    report.note("  (axum with a constant response)", rate(constant.run(&scratch)?));
    Ok(())
}

fn rate(per_second: f64) -> String {
    format!("{per_second:.0}/s")
}

/// Runs a plan with many listeners, and the same plan without.
fn listening(report: &mut Report, workload: &Workload) -> Result<()> {
    let (mut alone, mut together, mut slower) = (Vec::new(), Vec::new(), Vec::new());
    let (mut last, mut peak, mut quiet, mut events) = (Vec::new(), 0f64, 0f64, 0);
    let mut rates = Vec::new();
    for round in 0..workload.rounds {
        let scratch = workspace("bench-http-listeners")?;
        // Layers, so that there are also events of tasks that become ready.
        write(&scratch, "stream", workload.tasks, "noop", |number| before(number, 100))?;
        let plan: Value = serde_json::from_slice(&std::fs::read(scratch.join("stream.json"))?)?;
        let server = Server::start(&waypost(), &scratch, &[])?;
        for id in ["warm", "alone", "together"] {
            server.post("/plans", &serde_json::json!({ "id": id, "plan": plan }))?;
        }
        // The first run of a process is not measured.
        server.run_plan("warm")?;
        let seconds = server.run_plan("alone")?;
        quiet = quiet.max(peak_megabytes(server.process())?);
        let listeners = Listeners::begin(&server, &scratch, workload.listeners)?;
        let with = server.run_plan("together")?;
        let delivery = listeners.wait_for_all().with_context(|| format!("round {}", round + 1))?;
        peak = peak.max(peak_megabytes(server.process())?);
        alone.push(seconds);
        together.push(with);
        slower.push(with / seconds);
        rates.push(delivery.events as f64 * workload.listeners as f64 / delivery.seconds);
        last.push(delivery.seconds);
        events = delivery.events;
    }
    let (tasks, many) = (workload.tasks, workload.listeners);
    report.note(&format!("serve, run a plan of {tasks} tasks"), format!("{:.2} s", median(alone)));
    report.note(&format!("  while {many} listen"), format!("{:.2} s", median(together)));
    report.note("  relative to the same without listeners", format!("{:.2} ×", median(slower)));
    report.note(&format!("  each of {many} received every event in order"), format!("{events} events"));
    report.note("  from the start to the last event at the last listener", format!("{:.2} s", median(last)));
    report.note("  events delivered to all listeners", rate(median(rates)));
    report.note("  peak memory of the server without listeners", format!("{quiet:.0} MB"));
    report.at_most("  peak memory of the server", peak, MEMORY_MAX, "MB");
    Ok(())
}

/// Measures the bytes transferred before the first paint.
fn first_paint(report: &mut Report) -> Result<()> {
    let scratch = workspace("bench-http-paint")?;
    let server = Server::start(&waypost(), &scratch, &["--no-worker"])?;
    let mut bytes = 0;
    let index = std::fs::read_to_string(root().join("crates/waypost-http/assets/index.html"))?;
    for path in web::first_paint(&index) {
        let path = if path == "index.html" { "" } else { path };
        bytes += server.transferred(&format!("/{path}"), "gzip")?;
    }
    let what = "dashboard, first paint transferred (gzip)";
    report.at_most(what, bytes as f64 / 1024.0, web::FIRST_PAINT_BYTES_MAX as f64 / 1024.0, "KB");
    Ok(())
}

/// Measures how long a browser takes for large plans.
fn drawing(report: &mut Report) -> Result<()> {
    let figures = web::measured(&waypost())?;
    let figure = |name: &str| figures[name].as_f64().with_context(|| format!("no {name} in {figures}"));
    let shown = figure("thousand_drawn_ms")? / 1e3;
    report.at_most("dashboard, time to draw 1,000 tasks", shown, DRAWN_MAX, "s");
    report.at_most("  frame time while panning, median", figure("thousand_frame_ms")?, FRAME_MAX, "ms");
    report.at_most(
        "  script and layout a frame while panning",
        figure("thousand_pan_work_ms")?,
        WORK_MAX,
        "ms",
    );
    report.at_most(
        "  script and layout a frame while zooming",
        figure("thousand_zoom_work_ms")?,
        WORK_MAX,
        "ms",
    );
    report.note("  longest frame", format!("{:.0} ms", figure("thousand_frame_max_ms")?));
    report.note("  longest input delay", format!("{:.0} ms", figure("thousand_blocked_ms")?));
    let shown = figure("ten_thousand_shown_ms")? / 1e3;
    report.at_most("dashboard, time to show 10,000 tasks by level", shown, 2.0 * DRAWN_MAX, "s");
    report.note("  time to draw one level", format!("{:.2} s", figure("ten_thousand_level_ms")? / 1e3));
    report.at_most("  longest input delay", figure("ten_thousand_blocked_ms")?, 500.0, "ms");
    report.note("dashboard, events a second", format!("{:.0}", figure("flood_events_per_second")?));
    report.at_most("  longest input delay meanwhile", figure("flood_blocked_ms")?, 500.0, "ms");
    report.note("  a click and its picture, median", format!("{:.0} ms", figure("flood_answer_ms")?));
    Ok(())
}
