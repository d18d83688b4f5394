//! A real Slurm cluster for tests: one controller and three nodes on this machine, in a private directory, removed when
//! the process that started it ends in any way. Neither reads nor writes the system's configuration.

use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::supervisor::{Supervisor, retried};

/// The error if Slurm is not installed.
const MISSING: &str = "these tests need Slurm and munge, and PATH has no `slurmctld`, `slurmd`, `sbatch` or `munged`: run \
     `cargo xtask test`, which installs them, or install Debian's packages slurm-wlm and munge";

/// The programs that a cluster needs.
const PROGRAMS: [&str; 4] = ["slurmctld", "slurmd", "sbatch", "munged"];
/// Number of nodes, called `node1` and so on.
pub const NODES: usize = 3;
/// Number of processors of each node.
pub const CPUS_PER_NODE: usize = 4;

/// Starts the cluster. Stops and removes everything at the end of its standard input, which is also reached when
/// the process that holds the other end is killed.
const SUPERVISOR: &str = r#"
set -eu
folder=$1; shift
mkdir -m 755 "$folder"
cd "$folder"
mkdir -m 700 munge
mkdir controller spool
export SLURM_CONF="$folder/slurm.conf"
end() {
    trap - EXIT
    timeout 5 scancel --user="$(id -u)" >/dev/null 2>&1 || true
    for tries in 1 2 3 4 5 6 7 8 9 10; do
        [ -n "$(timeout 5 squeue --noheader 2>/dev/null)" ] || break
        sleep 0.2
    done
    for pid in *.pid; do kill -9 "$(cat "$pid")" 2>/dev/null || true; done
    # What takes care of a single job outlives both daemons, to tell them how it ended.
    here=$(pwd -P)
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/cwd" 2>/dev/null)" = "$here" ] || continue
        case "$(tr '\0' ' ' <"$process/cmdline" 2>/dev/null)" in
        slurmstepd*) kill -9 "${process#/proc/}" 2>/dev/null || true ;;
        esac
    done
    cd /
    rm -rf "$folder"
}
trap end EXIT
head -c 1024 /dev/urandom >munge/key
chmod 400 munge/key
munged --foreground --force --key-file="$folder/munge/key" --socket="$folder/munge.socket" \
    --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" >munge/out 2>&1 &
echo $! >munged.pid
user=$(id -un)
cat >slurm.conf <<END
ClusterName=waypost
SlurmctldHost=$(uname -n | cut -d. -f1)(127.0.0.1)
SlurmctldPort=$1
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge.socket
StateSaveLocation=$folder/controller
SlurmdSpoolDir=$folder/spool/%n
SlurmctldPidFile=$folder/controller/pid
SlurmdPidFile=$folder/spool/%n.own
SlurmctldLogFile=$folder/controller.log
SlurmdLogFile=$folder/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,sched_min_interval=50000,sched_interval=2,bf_interval=2
ReturnToService=2
SlurmdTimeout=5
MessageTimeout=5
KillWait=2
MinJobAge=60
MpiDefault=none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
END
for number in NUMBERS; do
    shift
    mkdir "spool/node$number"
    echo "NodeName=node$number NodeHostname=localhost NodeAddr=127.0.0.1 Port=$1 CPUs=PROCESSORS RealMemory=1000" >>slurm.conf
done
echo "PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP" >>slurm.conf
for tries in 1 2 3 4 5 6 7 8 9 10; do
    [ -S munge.socket ] && break
    sleep 0.1
done
slurmctld -D -c >controller.out 2>&1 &
echo $! >controller.pid
for number in NUMBERS; do
    slurmd -D -N "node$number" >"node$number.out" 2>&1 &
    echo $! >"node$number.pid"
done
tries=0
while [ "$(sinfo --noheader --Node --format=%t 2>/dev/null | grep -c idle)" != COUNT ]; do
    tries=$((tries + 1))
    [ $tries -lt 150 ] || { tail -n 20 munge/out controller.out node*.out; exit 1; }
    sleep 0.2
done
echo ready
cat >/dev/null
"#;

/// A private cluster.
pub struct SlurmCluster {
    folder: PathBuf,
    _supervisor: Supervisor,
}

impl SlurmCluster {
    /// Starts a cluster. When this returns, all nodes are idle.
    pub fn start() -> Result<Self, String> {
        retried(Self::try_start)
    }

    fn try_start() -> Result<Self, String> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if !is_installed() {
            return Err(MISSING.to_owned());
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("waypost-slurm-{}-{number}", std::process::id()));
        let wrong = |error: std::io::Error| error.to_string();
        // All bound at the same time, so that no two ports are equal.
        let listeners: Result<Vec<TcpListener>, _> =
            (0..=NODES).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
        let ports: Result<Vec<u16>, _> =
            listeners.map_err(wrong)?.iter().map(|listener| Ok(listener.local_addr()?.port())).collect();
        let ports = ports.map_err(wrong)?;
        let numbers: Vec<String> = (1..=NODES).map(|number| number.to_string()).collect();
        let script = SUPERVISOR
            .replace("NUMBERS", &numbers.join(" "))
            .replace("PROCESSORS", &CPUS_PER_NODE.to_string())
            .replace("COUNT", &NODES.to_string());
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(&folder).args(ports.iter().map(u16::to_string));
        let supervisor = Supervisor::start(command.env("PATH", path()))
            .map_err(|why| format!("Slurm did not start in {}:\n{why}", folder.display()))?;
        Ok(Self { folder, _supervisor: supervisor })
    }

    /// The configuration file of the cluster: the value of `SLURM_CONF`.
    pub fn conf(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    /// Runs a program of Slurm on this cluster and returns its output.
    pub fn tool(&self, program: &str, words: &[&str]) -> Output {
        self.command(program).args(words).output().expect("a program of Slurm can be called")
    }

    /// Kills the daemon of a node (from 1) or of the controller (0) with SIGKILL.
    pub fn kill(&self, node: usize) {
        let note = match node {
            0 => "controller.pid".to_owned(),
            node => format!("node{node}.pid"),
        };
        let pid = std::fs::read_to_string(self.folder.join(note)).expect("it was started");
        let killed = Command::new("kill").args(["-9", pid.trim()]).status();
        assert!(killed.is_ok_and(|status| status.success()), "the daemon runs");
    }

    /// Starts the controller again, with its saved state.
    pub fn start_controller(&self) {
        let script = "slurmctld -D >controller.out 2>&1 & echo $! >controller.pid";
        let mut command = self.command("sh");
        let started = command.args(["-c", script]).stdin(Stdio::null()).process_group(0).status();
        assert!(started.is_ok_and(|status| status.success()), "the controller starts");
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("PATH", path()).env("SLURM_CONF", self.conf()).current_dir(&self.folder);
        command
    }

    /// The directory of the cluster.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// PATH with the directories of Debian's daemons, which most users' PATH lacks.
fn path() -> String {
    let path = std::env::var("PATH").unwrap_or_default();
    format!("{path}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
}

/// Whether all programs that a cluster needs are installed.
pub fn is_installed() -> bool {
    let path = path();
    let is_there = |program: &str| path.split(':').any(|folder| Path::new(folder).join(program).is_file());
    PROGRAMS.into_iter().all(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs Slurm"]
    fn a_private_cluster_runs_a_job_and_leaves_nothing() {
        let cluster = SlurmCluster::start().unwrap();
        let folder = cluster.folder().to_owned();
        let ran = cluster.tool("srun", &["--ntasks=1", "echo", "hello"]);
        assert_eq!(String::from_utf8_lossy(&ran.stdout), "hello\n", "{ran:?}");
        drop(cluster);
        assert!(!folder.exists());
    }
}
