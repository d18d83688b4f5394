//! Installs the Debian packages that tests need. The tests start private instances of the servers in them.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::exec::program;

/// Programs that the tests run, and the packages that contain them.
const NEEDED: [(&[&str], &[&str]); 8] = [
    (&["git"], &["git"]),
    (&["kill"], &["procps"]),
    (&["openssl"], &["openssl"]),
    (&["ssh-keygen"], &["openssh-client"]),
    (&["pgbouncer"], &["pgbouncer"]),
    (&["python3"], &["python3"]),
    (&["slurmctld", "slurmd", "sbatch", "munged"], &["slurm-wlm", "munge"]),
    (&["tmux"], &["tmux"]),
];
/// Maximum time to wait for the locks of another package manager.
const LOCK_SECONDS_MAX: u64 = 600;
/// Time between two attempts to get a lock for which apt-get does not wait.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Returns the programs that [`install_missing`] installs.
pub(crate) fn programs() -> impl Iterator<Item = &'static str> {
    NEEDED.iter().flat_map(|(programs, _)| programs.iter().copied())
}

/// Installs the packages of all missing programs.
pub(crate) fn install_missing() -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<_> =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/bin".into()]).collect();
    let is_installed = |name: &&str| folders.iter().any(|folder| folder.join(name).is_file());
    let missing = NEEDED.iter().filter(|(programs, _)| !programs.iter().all(is_installed));
    let packages: Vec<&str> = missing.flat_map(|(_, packages)| packages.iter().copied()).collect();
    match packages.is_empty() {
        true => Ok(()),
        false => install(&packages),
    }
}

/// Installs these packages. An error names them, so that they can be installed by hand.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    let names = packages.join(" ");
    println!("── install {names}");
    let begin = Instant::now();
    let installed = update_lists().and_then(|privilege| {
        let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
        arguments.extend(packages);
        wait_for_locks(|| apt_get(privilege, &arguments).output())
    });
    installed.with_context(|| format!("these Debian packages are needed: {names}"))?;
    println!("── install {names}: ok after {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// How apt-get gets root rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Privilege {
    Root,
    Sudo,
}

impl Privilege {
    /// Fails if there is no way to install anything.
    fn find() -> Result<Self> {
        let succeeds = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        if !succeeds(program("apt-get").arg("--version")) {
            bail!("apt-get was not found; install them with the package manager of this system");
        }
        let user = program("id").arg("-u").output().context("cannot run id")?;
        if user.stdout.trim_ascii() == b"0" {
            return Ok(Self::Root);
        }
        // It must not ask for a password: there may be no one to type it.
        if succeeds(program("sudo").args(["-n", "true"])) {
            return Ok(Self::Sudo);
        }
        bail!("installing needs root, or sudo without a password; install them as root with apt-get install")
    }
}

/// Refreshes the package lists once per process: a fresh machine has none, and old lists name files that mirrors have
/// deleted.
fn update_lists() -> Result<Privilege> {
    static UPDATED: OnceLock<()> = OnceLock::new();
    let privilege = Privilege::find()?;
    if UPDATED.get().is_none() {
        if let Err(error) = wait_for_locks(|| apt_get(privilege, &["update"]).output()) {
            // The existing lists may be good enough: the installation decides.
            println!("── warning: apt-get update failed: {error:#}");
        }
        UPDATED.get_or_init(|| ());
    }
    Ok(privilege)
}

/// Returns a command that asks no questions and waits for dpkg's locks.
fn apt_get(privilege: Privilege, arguments: &[&str]) -> Command {
    let mut command = match privilege {
        Privilege::Root => program("env"),
        Privilege::Sudo => program("sudo"),
    };
    if privilege == Privilege::Sudo {
        // sudo drops the caller's environment variables.
        command.args(["-n", "env"]);
    }
    command.args([
        "DEBIAN_FRONTEND=noninteractive",
        "NEEDRESTART_SUSPEND=1",
        "LC_ALL=C",
        "apt-get",
        "--quiet",
    ]);
    command.args(["-o", &format!("DPkg::Lock::Timeout={LOCK_SECONDS_MAX}"), "-o", "Acquire::Retries=3"]);
    command.args(["-o", "Dpkg::Options::=--force-confold"]).args(arguments).stdin(Stdio::null());
    command.current_dir(Path::new("/"));
    command
}

/// Repeats a command while another process holds the locks of the package lists or of the download cache: apt-get waits
/// only for those of dpkg.
fn wait_for_locks(mut run: impl FnMut() -> std::io::Result<Output>) -> Result<()> {
    let begin = Instant::now();
    loop {
        let output = run().context("cannot start apt-get")?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr);
        if !is_locked(&text) || begin.elapsed().as_secs() >= LOCK_SECONDS_MAX {
            bail!("apt-get failed: {}\n{}", output.status, text.trim_end());
        }
        wait(RETRY_INTERVAL);
    }
}

fn is_locked(errors: &str) -> bool {
    errors.contains("Could not get lock") || errors.contains("Unable to lock")
}

#[expect(clippy::disallowed_methods, reason = "another process releases the lock without any notification")]
fn wait(interval: Duration) {
    std::thread::sleep(interval);
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;

    fn arguments(privilege: Privilege) -> Vec<String> {
        let command = apt_get(privilege, &["install", "--yes", "tmux"]);
        let all = [command.get_program()].into_iter().chain(command.get_args());
        all.map(|argument| argument.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn apt_get_asks_nothing_and_waits_for_locks() {
        let root = arguments(Privilege::Root);
        assert_eq!(root[..2], ["env", "DEBIAN_FRONTEND=noninteractive"]);
        assert!(root.contains(&"DPkg::Lock::Timeout=600".to_owned()), "{root:?}");
        assert!(root.ends_with(&["install", "--yes", "tmux"].map(str::to_owned)), "{root:?}");
    }

    #[test]
    fn sudo_is_never_asked_for_a_password_and_passes_the_variables() {
        let sudo = arguments(Privilege::Sudo);
        assert_eq!(sudo[..4], ["sudo", "-n", "env", "DEBIAN_FRONTEND=noninteractive"]);
        assert_eq!(sudo[3..], arguments(Privilege::Root)[1..]);
    }

    #[test]
    fn only_a_lock_is_waited_for() {
        assert!(is_locked(
            "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)\n"
        ));
        assert!(is_locked("E: Unable to lock directory /var/cache/apt/archives/\n"));
        assert!(!is_locked("E: Unable to locate package slurm-wlm\n"));

        let mut runs = 0;
        let failed = wait_for_locks(|| {
            runs += 1;
            let stderr = b"E: Unable to locate package slurm-wlm\n".to_vec();
            Ok(Output { status: ExitStatus::from_raw(100 << 8), stdout: Vec::new(), stderr })
        });
        assert!(format!("{:#}", failed.unwrap_err()).contains("Unable to locate package"));
        assert_eq!(runs, 1);
    }
}
