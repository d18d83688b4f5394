//! Parses workers that run as jobs of a Slurm cluster.

use super::reader::Table;
use crate::executor::Slurm;
use crate::parse::values::{one_of, stays_inside};
use crate::settings::SECONDS_MAX;

/// The folder shared with the nodes, unless the configuration names another.
const FOLDER_DEFAULT: &str = ".waypost/slurm";
/// Variables that are passed on to a job unless its configuration names others: those with the same meaning on a node.
const ENVIRONMENT_DEFAULT: [&str; 6] = ["PATH", "HOME", "USER", "LANG", "LC_ALL", "TZ"];
/// The highest number of CPUs of a job.
const CPUS_MAX: u32 = 1_000_000;
/// Jobs submitted at once, unless the configuration sets the number.
const ARRAY_DEFAULT: u32 = 200;
/// The highest number of jobs submitted at once: Slurm's limit for an array unless its administrator raises it.
const ARRAY_MAX: u32 = 1_000;
/// The highest nice value that the configuration can set. Slurm's own maximum is 2,147,483,645.
const NICE_MAX: u32 = 1_000_000;
/// The further options of `sbatch` that the configuration may name: those that decide where and when a job runs, but
/// not what it runs or how it is found again.
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

impl Table<'_> {
    pub(super) fn slurm(&mut self) -> Option<Slurm> {
        let sees_default = self.is_without("environment");
        let process = self.process();
        let folder = self.shared_folder();
        let cpus = self.small("cpus", 1..=CPUS_MAX);
        let time_minutes = self.small("time_minutes", 1..=SECONDS_MAX / 60);
        let nice = self.small("nice", 0..=NICE_MAX).unwrap_or(0);
        let array_max = self.small("array_max", 1..=ARRAY_MAX).unwrap_or(ARRAY_DEFAULT);
        let [partition, account, qos, memory, gpus, gres] =
            ["partition", "account", "qos", "memory", "gpus", "gres"].map(|key| self.name(key));
        let options = self.sbatch_options();
        let (mut process, folder) = (process?, folder?);
        if sees_default {
            process.environment = ENVIRONMENT_DEFAULT.map(str::to_owned).to_vec();
        }
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

    fn shared_folder(&mut self) -> Option<String> {
        let Some((at, folder)) = self.text_at("folder") else { return Some(FOLDER_DEFAULT.to_owned()) };
        if folder.starts_with('/') || !folder.is_empty() && stays_inside(&folder) {
            return Some(folder);
        }
        let hint = "name a folder of the workspace, or write the full path of one that all nodes see";
        self.refuse(at, format!("{} has `folder` = {folder:?}", self.path), hint)
    }

    fn sbatch_options(&mut self) -> Vec<String> {
        let Some((at, options)) = self.strings_at("options") else { return Vec::new() };
        for option in &options {
            let name =
                option.strip_prefix("--").map(|rest| rest.split_once('=').map_or(rest, |(name, _)| name));
            let hint = match name {
                Some(name) if OPTIONS.contains(&name) => continue,
                Some(name) => one_of(name, &OPTIONS),
                None => "write each as one text, for example \"--constraint=a100\"".to_owned(),
            };
            let what = format!("{} has the option {option:?}, which cannot stand there", self.path);
            self.wrong(at, what, hint);
        }
        options
    }
}
