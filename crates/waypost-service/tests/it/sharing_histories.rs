//! Random histories of several clones through the real git come to the same plan, and nothing that was acknowledged is
//! lost.

use std::collections::BTreeSet;
use std::fs;

use waypost_core::{Dependency, Position, TaskChanges};
use waypost_service::{EditOp, SyncOptions};
use waypost_testkit::{SeededRng, id};

use crate::sharing_kit::{Clone, Ground, settle};

/// Histories of an ordinary run, and the variable with another number.
const RUNS: usize = 4;
const RUNS_VARIABLE: &str = "WAYPOST_SHARING_RUNS";
/// Steps of a history.
const STEPS: usize = 40;

struct History {
    ground: Ground,
    dice: SeededRng,
    clones: Vec<Clone>,
    /// The ids of the records that some clone has acknowledged.
    acknowledged: BTreeSet<String>,
    /// Earlier tips of the remote.
    tips: Vec<String>,
    copies: usize,
}

impl History {
    fn new(seed: u64) -> Self {
        let ground = Ground::new();
        let mut dice = SeededRng::new(seed);
        let count = 2 + dice.below(2);
        let clones: Vec<Clone> = (0..count).map(|number| ground.clone(&format!("c{number}"))).collect();
        clones[0].share("p", &["one", "two", "three"]);
        clones[0].sync();
        for clone in &clones[1..] {
            clone.sync();
        }
        Self { ground, dice, clones, acknowledged: BTreeSet::new(), tips: Vec::new(), copies: 0 }
    }

    fn write(&mut self, at: usize) {
        let clone = &self.clones[at];
        let dice = &mut self.dice;
        let ids = clone.task_ids("p");
        let number = dice.below(1_000);
        if ids.is_empty() || dice.chance(25) {
            clone.add("p", &format!("task {number}"));
            return;
        }
        let task = dice.pick(&ids).clone();
        // Many of these are refused, as they would be for a person: that is no part of this test.
        let _refused = match dice.below(8) {
            0 | 1 => {
                let notes = Some(format!("note {number}"));
                clone.revise("p", &task, TaskChanges { notes, ..TaskChanges::default() })
            }
            2 => {
                let priority = Some(number as i32);
                clone.revise("p", &task, TaskChanges { priority, ..TaskChanges::default() })
            }
            3 | 4 => {
                let on = Dependency::Task(id(dice.pick(&ids).as_str()));
                let changes = TaskChanges { add_dependencies: vec![on], ..TaskChanges::default() };
                clone.revise("p", &task, changes)
            }
            5 => clone.done("p", &task, &format!("result {number}")),
            6 => clone.remove("p", &task),
            _ => {
                let parent =
                    Some(Some(id(dice.pick(&ids).as_str())).filter(|parent| parent.as_str() != task));
                let op = EditOp::MoveTask { task: id(&task), parent, position: Position::Last };
                clone.edit("p", op).map(drop)
            }
        };
    }

    fn step(&mut self) {
        let at = self.dice.below(self.clones.len());
        match self.dice.below(20) {
            0..11 => self.write(at),
            11..15 => drop(self.clones[at].sync()),
            15 => {
                let local = SyncOptions::default();
                self.clones[at].service.sync(&self.clones[at].shared, &local).unwrap();
            }
            16 => {
                // Somebody forces the branch to an earlier commit, or to one commit with the same files.
                let bare = self.ground.bare();
                let Ok(tip) = self.ground.try_git(&bare, &["rev-parse", "--verify", "refs/heads/waypost"])
                else {
                    return;
                };
                self.tips.push(tip);
                let back = match self.dice.chance(50) {
                    true => self.dice.pick(&self.tips).clone(),
                    false => self.ground.git(&bare, &["commit-tree", "-m", "squashed", "waypost^{tree}"]),
                };
                self.ground.git(&bare, &["update-ref", "refs/heads/waypost", &back]);
            }
            17 => {
                let place =
                    if self.dice.chance(50) { self.ground.bare() } else { self.clones[at].path.clone() };
                let _none = self.ground.try_git(&place, &["update-ref", "-d", "refs/heads/waypost"]);
            }
            18 => self.lose_database(at),
            _ => self.copy(at),
        }
        for clone in &self.clones {
            self.acknowledged.extend(clone.record_ids("p"));
        }
    }

    /// Deletes a database whose records the branch holds.
    fn lose_database(&mut self, at: usize) {
        if !self.clones[at].sync().pushed {
            return;
        }
        let clone = self.clones.remove(at);
        let name = clone.path.file_name().unwrap().to_str().unwrap().to_owned();
        for ending in ["", "-wal", "-shm"] {
            let _gone = fs::remove_file(format!("{}{ending}", clone.database.display()));
        }
        drop(clone);
        self.clones.insert(at, self.ground.open(&name));
        self.clones[at].sync();
    }

    fn copy(&mut self, at: usize) {
        if self.copies == 1 {
            return;
        }
        self.copies += 1;
        let from = self.clones.remove(at);
        let name = from.path.file_name().unwrap().to_str().unwrap().to_owned();
        let path = from.path.clone();
        drop(from);
        let to = self.ground.root.join("copied");
        let copied = std::process::Command::new("cp").arg("-r").arg(&path).arg(&to).status().unwrap();
        assert!(copied.success());
        self.clones.insert(at, self.ground.open(&name));
        self.clones.push(self.ground.open("copied"));
        let last = &self.clones[self.clones.len() - 1];
        last.service.sync(&last.shared, &SyncOptions::default()).unwrap();
    }
}

#[test]
#[ignore = "needs git"]
fn random_histories_come_to_one_plan_and_lose_nothing() {
    let runs = std::env::var(RUNS_VARIABLE).ok().and_then(|runs| runs.parse().ok()).unwrap_or(RUNS);
    for seed in 0..runs as u64 {
        let mut history = History::new(seed);
        for _ in 0..STEPS {
            history.step();
        }
        let clones: Vec<&Clone> = history.clones.iter().collect();
        for clone in &clones {
            history.acknowledged.extend(clone.record_ids("p"));
        }
        settle(&clones, "p");
        let found = clones[0].record_ids("p");
        let lost: Vec<&String> = history.acknowledged.difference(&found).collect();
        assert_eq!(lost, [""; 0], "seed {seed}");
        for clone in clones {
            assert_eq!(clone.service.plans().doctor(false).unwrap(), [], "seed {seed}");
        }
    }
}
