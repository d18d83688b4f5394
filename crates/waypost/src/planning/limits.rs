//! The planning limits on the command line.

use clap::Args;
use waypost_planner::planning::RequestLimits;

use waypost_cli::error::Outcome;
use waypost_cli::options::{seconds, within};

/// The highest number of concurrent model calls.
const PARALLEL_MAX: usize = 64;
/// The highest depth of a goal tree.
const DEPTH_MAX: usize = 100;

#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct PlanningLimits {
    /// Maximum depth of the goal tree [default: 5]
    #[arg(long, value_name = "N")]
    max_depth: Option<usize>,
    /// Maximum number of subgoals per goal [default: 7]
    #[arg(long, value_name = "N")]
    max_children: Option<usize>,
    /// Maximum number of tasks in the plan [default: 200]
    #[arg(long, value_name = "N")]
    max_goals: Option<usize>,
    /// Maximum number of model calls, including earlier runs
    #[arg(long, value_name = "N")]
    max_calls: Option<u64>,
    /// Token budget for the plan, including earlier runs; stored with the plan
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<u64>,
    /// Cost budget for the plan, in the unit of the configured prices
    #[arg(long, value_name = "AMOUNT", value_parser = micros)]
    cost: Option<u64>,
    /// Time limit for this run, e.g. 90s, 15m, 2h
    #[arg(long, value_name = "SPAN", value_parser = seconds)]
    time: Option<u32>,
    /// Maximum number of concurrent model calls [default: 4]
    #[arg(long, value_name = "N")]
    parallel: Option<usize>,
    /// Do not refine goals with what was learnt from other goals
    #[arg(long)]
    no_refine: bool,
}

impl PlanningLimits {
    /// Applies the given options over the existing limits.
    pub(crate) fn over(&self, mut extent: RequestLimits) -> Outcome<RequestLimits> {
        let within = |option: &str, found: Option<usize>, min: usize, max: usize| {
            found.map(|found| within(option, found, min..=max)).transpose()
        };
        let tasks_max = waypost_core::limits::TASKS_MAX;
        let children_max = waypost_planner::decompose::CHILDREN_LIMIT;
        extent.depth_max = within("--max-depth", self.max_depth, 0, DEPTH_MAX)?.unwrap_or(extent.depth_max);
        extent.children_max =
            within("--max-children", self.max_children, 2, children_max)?.unwrap_or(extent.children_max);
        extent.goals_max = within("--max-goals", self.max_goals, 1, tasks_max)?.unwrap_or(extent.goals_max);
        extent.parallel_max =
            within("--parallel", self.parallel, 1, PARALLEL_MAX)?.unwrap_or(extent.parallel_max);
        extent.refine &= !self.no_refine;
        let limits = &mut extent.limits;
        limits.calls_max = self.max_calls.or(limits.calls_max);
        limits.tokens_max = self.budget.or(limits.tokens_max);
        limits.cost_micros_max = self.cost.or(limits.cost_micros_max);
        limits.seconds_max = self.time.map(u64::from).or(limits.seconds_max);
        Ok(extent)
    }
}

/// Parses an amount of money into millionths.
fn micros(text: &str) -> Result<u64, String> {
    let wrong = || "write an amount such as 2 or 0.25".to_owned();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if text.is_empty()
        || part.len() > 6
        || !digits(whole)
        || !digits(part)
        || whole.is_empty() && part.is_empty()
    {
        return Err(wrong());
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| wrong())? };
    let part: u64 = format!("{part:0<6}").parse().map_err(|_| wrong())?;
    whole.checked_mul(1_000_000).and_then(|whole| whole.checked_add(part)).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::micros;

    #[test]
    fn an_amount_is_read_exactly() {
        assert_eq!(micros("2"), Ok(2_000_000));
        assert_eq!(micros("0.25"), Ok(250_000));
        assert_eq!(micros(".000001"), Ok(1));
        for wrong in ["", ".", "-1", "1,5", "0.0000001", "99999999999999"] {
            assert!(micros(wrong).is_err(), "{wrong}");
        }
    }
}
