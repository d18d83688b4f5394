//! Worktrees whose agent writes git's own files: whatever it names there, our git commands run none of it. Each trap
//! would leave a file behind if it ran.

use std::fs;
use std::process::Command;

use waypost_config::Config;
use waypost_core::{Plan, Status};
use waypost_testkit::plan_of;

use crate::agents::{agent, git, output, repository};
use crate::processes::Place;
use crate::world::job;

const KEYS: &str = "worktree = true\nauthor = \"Bot <bot@example.org>\"";

/// Shell functions: `made DIR` makes a repository, and `trapped DIR` names programs in its configuration.
const TRAPS: &str = r#"cat >/dev/null
made() { git init --quiet "$1"; echo a > "$1/a"; git -C "$1" add a; git -C "$1" -c user.name=t -c user.email=t@example.org commit --quiet -m a; }
trapped() {
    for key in core.fsmonitor filter.x.clean filter.x.smudge diff.external core.pager core.editor; do
        git -C "$1" config $key "sh MARK $key"
    done
    echo '* filter=x' > "$1/.gitattributes"; echo b > "$1/a"
}
"#;

struct Trapped(Place);

impl Trapped {
    fn new() -> Self {
        let place = repository();
        fs::create_dir(place.root.join("marks")).unwrap();
        let mark = place.root.join("mark.sh");
        fs::write(&mark, format!("touch {}/$1\ncat\n", place.root.join("marks").display())).unwrap();
        Self(place)
    }

    fn script(&self, script: &str) -> String {
        format!("{TRAPS}{script}").replace("MARK", self.0.root.join("mark.sh").to_str().unwrap())
    }

    fn agent(&self, script: &str) -> Config {
        agent(&self.0, &self.script(script), KEYS)
    }

    fn run(&self, script: &str) -> Plan {
        self.0.run(self.agent(script), plan_of([job("a", &[], &[])])).0
    }

    fn marks(&self) -> Vec<String> {
        let marks = fs::read_dir(self.0.root.join("marks")).unwrap();
        marks.map(|mark| mark.unwrap().file_name().to_string_lossy().into_owned()).collect()
    }

    /// The lines of a git command about the commit of task `a`.
    fn committed(&self, plan: &Plan, words: &[&str]) -> Vec<String> {
        let commit = output(plan, "a")["commit"].as_str().unwrap().to_owned();
        let mut words = words.to_vec();
        words.push(&commit);
        git(&self.0, &words).lines().map(str::to_owned).collect()
    }
}

fn error(plan: &Plan) -> String {
    let state = &plan.task("a").unwrap().state;
    assert_eq!(state.status, Status::Failed);
    state.error.clone().unwrap()
}

#[test]
#[ignore = "needs git"]
fn the_traps_of_these_tests_run_under_plain_git() {
    let trapped = Trapped::new();
    let script =
        trapped.script("made it; trapped it; git -C it status; true").replace("cat >/dev/null\n", "");
    let run = Command::new("sh").args(["-c", &script]).current_dir(&trapped.0.root).output().unwrap();
    assert!(run.status.success());
    let mut marks = trapped.marks();
    marks.sort();
    assert_eq!(marks, ["core.fsmonitor", "filter.x.clean"]);
}

#[test]
#[ignore = "needs git"]
fn an_agent_that_replaces_the_git_file_fails_and_its_worktree_is_kept() {
    for replaced in [
        "rm .git; made .; trapped .",
        "made evil; trapped evil; mv .git .old; echo \"gitdir: $PWD/evil/.git\" > .git",
        // The same file with other bytes.
        "made evil; trapped evil; echo \"gitdir: $PWD/evil/.git\" > .git",
        // Another file with the same bytes.
        "cp .git .new; mv .new .git",
        "made evil; trapped evil; rm .git; ln -s evil/.git .git",
        "rm .git; mkfifo .git",
        "rm .git",
    ] {
        let trapped = Trapped::new();
        let plan = trapped.run(replaced);
        let kept = trapped.0.root.join("worktrees").join(plan.id().as_str()).join("a.1");
        let (file, kept_at) = (kept.join(".git"), kept.display());
        assert_eq!(
            error(&plan),
            format!(
                "the agent changed the repository's git files ({}) (its worktree is kept in {kept_at})",
                file.display()
            ),
            "{replaced}"
        );
        assert!(kept.join("text").exists());
        assert_eq!(trapped.marks(), [""; 0], "{replaced}");
        let branch = format!("waypost/{}/a.1", plan.id());
        let head = git(&trapped.0, &["rev-parse", "HEAD"]);
        assert_eq!(git(&trapped.0, &["rev-parse", &branch]), head, "nothing is committed");
    }
}

#[test]
#[ignore = "needs git"]
fn an_agent_that_leads_the_git_directory_to_another_repository_fails() {
    let trapped = Trapped::new();
    let plan = trapped
        .run("made evil; trapped evil; echo \"$PWD/evil/.git\" > \"$(sed 's/^gitdir: //' .git)/commondir\"");
    let error = error(&plan);
    assert!(error.starts_with("the agent changed the repository's git files ("), "{error}");
    assert!(error.contains("/commondir)"), "{error}");
    assert_eq!(trapped.marks(), [""; 0]);
}

#[test]
#[ignore = "needs git"]
fn an_agent_that_names_programs_in_the_repositorys_settings_fails() {
    for (names, file) in [
        ("git config filter.x.clean 'sh MARK clean'", "/.git/config)"),
        (
            "printf '[filter \"x\"]\\n clean = sh MARK clean\\n' >> \"$(sed 's/^gitdir: //' .git)/../../config\"",
            "/.git/config)",
        ),
        (
            "git config extensions.worktreeConfig true; git config --worktree filter.x.clean 'sh MARK clean'",
            "config)",
        ),
        (
            "printf '[filter \"x\"]\\n clean = sh MARK clean\\n' > more; git config include.path \"$PWD/more\"",
            "config)",
        ),
    ] {
        let trapped = Trapped::new();
        let plan = trapped.run(&format!("{names}; echo '* filter=x' > .gitattributes; echo more >> text"));
        let error = error(&plan);
        assert!(error.starts_with("the agent changed the repository's git files ("), "{names}: {error}");
        assert!(error.contains(file), "{names}: {error}");
        assert_eq!(trapped.marks(), [""; 0], "{names}");
    }
}

#[test]
#[ignore = "needs git"]
fn nested_repositories_are_left_out_of_a_commit_and_nothing_of_them_runs() {
    let trapped = Trapped::new();
    let plan = trapped.run(
        "made deep/nested; trapped deep/nested; made 'we[i]rd *'; trapped 'we[i]rd *'
        mkdir linked; made other; trapped other; mv other/.git real; ln -s ../real linked/.git
        echo more >> text; echo new > deep/file",
    );
    assert_eq!(trapped.marks(), [""; 0]);
    let files = trapped.committed(&plan, &["ls-tree", "-r", "--name-only"]);
    assert!(files.contains(&"text".to_owned()) && files.contains(&"deep/file".to_owned()), "{files:?}");
    assert!(!files.iter().any(|file| file.contains("nested") || file.contains("we[")), "{files:?}");
    let log = trapped.0.log(&plan, "a");
    for folder in ["deep/nested", "linked", "we[i]rd *"] {
        let line = format!("waypost: {folder} is not committed: it is a git repository of its own");
        assert!(log.contains(&line), "{log}");
    }
}

#[test]
#[ignore = "needs git"]
fn a_nested_repository_that_the_agent_added_itself_runs_nothing_when_all_is_added_again() {
    let trapped = Trapped::new();
    let plan = trapped.run("made nested; git add nested; trapped nested; echo more >> text");
    assert_eq!(trapped.marks(), [""; 0]);
    assert_eq!(output(&plan, "a")["files"], 1);
    assert_eq!(
        trapped.committed(&plan, &["ls-tree", "--format=%(objecttype) %(path)"]),
        ["commit nested", "blob text"]
    );
}

#[test]
#[ignore = "needs git"]
fn a_repository_in_place_of_a_submodule_runs_nothing() {
    let trapped = Trapped::new();
    let place = &trapped.0;
    let head = git(place, &["rev-parse", "HEAD"]);
    git(place, &["update-index", "--add", "--cacheinfo", &format!("160000,{head},sub")]);
    fs::write(place.root.join("work/.gitmodules"), "[submodule \"sub\"]\npath = sub\nurl = ../sub\n")
        .unwrap();
    git(place, &["add", ".gitmodules"]);
    git(place, &["commit", "--quiet", "-m", "with a submodule"]);
    let plan = trapped.run("made sub; trapped sub; echo more >> text");
    assert_eq!(trapped.marks(), [""; 0]);
    assert_eq!(output(&plan, "a")["files"], 1);
    let tree = trapped.committed(&plan, &["ls-tree"]);
    assert!(tree.iter().any(|line| line.ends_with("\tsub") && line.contains(&head)), "{tree:?}");
}

#[test]
#[ignore = "needs git"]
fn a_failed_agents_nested_repository_runs_nothing_and_is_kept() {
    let trapped = Trapped::new();
    let plan = trapped.run("made nested; git add nested; trapped nested; exit 3");
    assert!(error(&plan).contains("its worktree is kept in"), "{}", error(&plan));
    assert_eq!(trapped.marks(), [""; 0]);
}

#[test]
#[ignore = "needs git"]
fn all_ordinary_changes_are_committed_and_ignored_files_are_not() {
    let trapped = Trapped::new();
    let place = &trapped.0;
    fs::write(place.root.join("work/gone"), "gone\n").unwrap();
    fs::write(place.root.join("work/tool"), "#!/bin/sh\n").unwrap();
    fs::write(place.root.join("work/.gitignore"), "*.log\nbuild/\n").unwrap();
    git(place, &["add", "."]);
    git(place, &["commit", "--quiet", "-m", "second"]);
    let script =
        "rm gone; echo more >> text; chmod +x tool; mkdir -p new build; echo n > 'new/ä b'; ln -s text link
        echo l > x.log; echo o > build/out; git config user.name A; git config user.email a@example.org
        echo own > own; git add own; git commit --quiet -m own; git rm --quiet --cached own";
    let plan = trapped.run(script);
    let base = git(place, &["rev-parse", "HEAD"]);
    let changes =
        trapped.committed(&plan, &["-c", "core.quotePath=false", "diff", "--raw", "--abbrev=4", &base]);
    let changes: Vec<&str> = changes.iter().map(|line| line.splitn(5, ' ').last().unwrap()).collect();
    assert_eq!(changes, ["D\tgone", "A\tlink", "A\tnew/ä b", "A\town", "M\ttext", "M\ttool"]);
    let modes = trapped.committed(&plan, &["ls-tree", "--format=%(objectmode) %(path)"]);
    assert!(
        modes.contains(&"100755 tool".to_owned()) && modes.contains(&"120000 link".to_owned()),
        "{modes:?}"
    );
    assert_eq!(trapped.committed(&plan, &["log", "--format=%an %s"])[0], "Bot a: do a");
    assert_eq!(output(&plan, "a")["files"], 6);

    let unchanged = trapped.run("echo l > y.log");
    let given = output(&unchanged, "a");
    assert_eq!((&given["commit"], &given["files"]), (&base.as_str().into(), &0.into()));
    let emptied = trapped.run("git rm --quiet -r .; rm -rf * .gitignore");
    assert_eq!(trapped.committed(&emptied, &["ls-tree"]), [""; 0]);
}

#[test]
#[ignore = "needs git"]
fn git_comes_from_outside_of_the_repository_and_sees_no_other_variables() {
    let mut trapped = Trapped::new();
    let work = trapped.0.root.join("work");
    fs::create_dir(work.join("bin")).unwrap();
    fs::create_dir(trapped.0.root.join("bin")).unwrap();
    let mark = trapped.0.root.join("mark.sh");
    let own = format!("#!/bin/sh\nsh {} git </dev/null\nexec /usr/bin/git \"$@\"\n", mark.display());
    fs::write(work.join("bin/git"), own).unwrap();
    fs::set_permissions(work.join("bin/git"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(work.join("bin/git"), trapped.0.root.join("bin/git")).unwrap();
    // The person's own filter still works, and shows what git was given.
    let seen = trapped.0.root.join("environment");
    git(&trapped.0, &["config", "filter.own.clean", &format!("env > {}; tr a-z A-Z", seen.display())]);
    fs::write(work.join(".gitattributes"), "text filter=own\n").unwrap();
    git(&trapped.0, &["add", "."]);
    git(&trapped.0, &["commit", "--quiet", "-m", "filtered"]);
    let path = format!("bin:{}/bin:{}/bin:/usr/bin:/bin", work.display(), trapped.0.root.display());
    trapped.0.variables.extend([
        ("PATH".to_owned(), path),
        ("HOME".to_owned(), trapped.0.root.display().to_string()),
        ("GIT_EXTERNAL_DIFF".to_owned(), "false".to_owned()),
    ]);
    let _of_the_setup = fs::remove_file(&seen);
    let plan = trapped.run("echo more >> text");
    assert_eq!(trapped.marks(), [""; 0]);
    assert_eq!(trapped.committed(&plan, &["show", "--format=", "--raw"]).len(), 1);
    let environment = fs::read_to_string(seen).unwrap();
    for name in ["GIT_TERMINAL_PROMPT=0\n", "GIT_OPTIONAL_LOCKS=0\n", "HOME="] {
        assert!(environment.contains(name), "{environment}");
    }
    for name in ["WAYPOST_ATTEMPT", "WAYPOST_ACTOR", "NOT_FOR_WORKERS", "SECRET_SOURCE", "GIT_EXTERNAL_DIFF"]
    {
        assert!(!environment.contains(name), "{environment}");
    }
    let path = environment.lines().find(|line| line.starts_with("PATH=")).unwrap();
    assert!(!path.contains("work/bin"), "{path}");
}
