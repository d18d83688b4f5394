//! The CPU time that a process has used, from `/proc`.

use anyhow::{Context, Result, bail};

/// The CPU time of a process, in seconds.
pub(super) struct Used {
    pub(super) own: f64,
    /// CPU time of children that have exited and were waited for.
    pub(super) of_children: f64,
}

/// Returns the CPU time that a process has used so far.
pub(super) fn used_seconds(process: u32) -> Result<Used> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, fields) = stat.rsplit_once(')').context("stat")?;
    let ticks: Vec<f64> =
        fields.split_whitespace().skip(11).take(4).filter_map(|field| field.parse().ok()).collect();
    let [user, system, child_user, child_system] = ticks[..] else { bail!("stat: {stat}") };
    let seconds = |ticks: f64| ticks / TICKS_PER_SECOND;
    Ok(Used { own: seconds(user + system), of_children: seconds(child_user + child_system) })
}
