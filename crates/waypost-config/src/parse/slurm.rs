//! The part of a configuration file that describes workers that are jobs of a Slurm cluster.

use super::reader::{Reader, Table};
use crate::executor::Slurm;
use crate::parse::values::{one_of, stays_inside};
use crate::settings::SECONDS_MAX;

/// The folder that we and the nodes share, unless the configuration names another.
const FOLDER_DEFAULT: &str = ".waypost/slurm";
/// Variables that a job sees unless its configuration names others: what means the same on a node as here.
const ENVIRONMENT_DEFAULT: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ"];
/// Processors that a job may ask for.
const CPUS_MAX: u64 = 1_000_000;
/// Jobs that are submitted at once, unless the configuration says otherwise.
const ARRAY_DEFAULT: u32 = 200;
/// Jobs that may be submitted at once: an array of Slurm has at most so many unless its administrator allows more.
const ARRAY_MAX: u64 = 1_000;
/// The greatest niceness that Slurm knows, rounded.
const NICE_MAX: u64 = 1_000_000;
/// Other options of `sbatch` that the configuration may name: such as say where and when a job runs, and nothing about
/// what it runs or how it is found again.
const OPTIONS: [&str; 26] = [
    "acctg-freq",
    "batch",
    "begin",
    "cluster-constraint",
    "constraint",
    "contiguous",
    "core-spec",
    "cores-per-socket",
    "cpu-freq",
    "cpus-per-gpu",
    "deadline",
    "distribution",
    "exclude",
    "exclusive",
    "gpu-bind",
    "gpu-freq",
    "gres-flags",
    "hint",
    "licenses",
    "mem-per-cpu",
    "mem-per-gpu",
    "nodelist",
    "reservation",
    "switches",
    "tmp",
    "wckey",
];

impl Reader<'_> {
    pub(super) fn slurm(&mut self, path: &str, at: usize, table: &mut Table<'_>) -> Option<Slurm> {
        let sees_default = table.is_without("environment");
        let process = self.process(path, at, table);
        let folder = self.shared_folder(path, table);
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let cpus = table.number(self, "cpus", 1, CPUS_MAX).map(small);
        let time_minutes = table.number(self, "time_minutes", 1, u64::from(SECONDS_MAX) / 60).map(small);
        let nice = table.number(self, "nice", 0, NICE_MAX).map(small);
        let array_max = table.number(self, "array_max", 1, ARRAY_MAX).map(small);
        let [partition, account, qos, memory, gpus, gres] =
            ["partition", "account", "qos", "memory", "gpus", "gres"]
                .map(|key| self.name_of(path, table, key));
        let options = self.sbatch_options(path, table);
        let (mut process, folder) = (process?, folder?);
        if sees_default {
            process.environment = ENVIRONMENT_DEFAULT.map(str::to_owned).to_vec();
        }
        let (nice, array_max) = (nice.unwrap_or(0), array_max.unwrap_or(ARRAY_DEFAULT));
        Some(Slurm {
            process,
            folder,
            partition,
            account,
            qos,
            cpus,
            memory,
            gpus,
            gres,
            time_minutes,
            nice,
            array_max,
            options,
        })
    }

    fn shared_folder(&mut self, path: &str, table: &mut Table<'_>) -> Option<String> {
        let Some((at, folder)) = table.text(self, "folder") else { return Some(FOLDER_DEFAULT.to_owned()) };
        if folder.starts_with('/') || !folder.is_empty() && stays_inside(&folder) {
            return Some(folder);
        }
        let what = format!("{path} has `folder` = {folder:?}");
        self.wrong(
            at,
            what,
            "name a folder of the workspace, or write the full path of one that all nodes see",
        );
        None
    }

    fn sbatch_options(&mut self, path: &str, table: &mut Table<'_>) -> Vec<String> {
        let Some((at, options)) = table.strings(self, "options") else { return Vec::new() };
        for option in &options {
            let name =
                option.strip_prefix("--").map(|rest| rest.split_once('=').map_or(rest, |(name, _)| name));
            let hint = match name {
                Some(name) if OPTIONS.contains(&name) => continue,
                Some(name) => one_of(name, &OPTIONS),
                None => "write each as one text, for example \"--constraint=a100\"".to_owned(),
            };
            self.wrong(at, format!("{path} has the option {option:?}, which cannot stand there"), hint);
        }
        options
    }
}
