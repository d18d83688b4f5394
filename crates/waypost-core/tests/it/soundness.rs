//! Random plans under random commands stay sound and come to an end.
//!
//! A failure prints its seed; `WAYPOST_SEED=17 cargo test -p waypost-core soundness` reproduces it, and
//! `WAYPOST_SEEDS=9000` runs more seeds.

use crate::simulation::{Seen, World};

const SEEDS: u64 = 200;

#[test]
fn whatever_is_asked_a_plan_stays_sound_and_comes_to_an_end() {
    let number = |name: &str| -> Option<u64> { std::env::var(name).ok()?.parse().ok() };
    let one = number("WAYPOST_SEED");
    let seeds = one.map_or(0..number("WAYPOST_SEEDS").unwrap_or(SEEDS), |seed| seed..seed + 1);
    let mut seen = Seen::default();
    for seed in seeds {
        let run = std::panic::catch_unwind(|| World::new(seed).run());
        match run {
            Ok(saw) => seen.add(saw),
            Err(_) => panic!("the simulation failed with WAYPOST_SEED={seed}"),
        }
    }
    if one.is_none() {
        seen.was_broad();
    }
}
