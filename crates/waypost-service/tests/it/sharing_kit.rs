//! Clones of one repository, each with a store of its own, through the real git.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use waypost_config::Config;
use waypost_core::{Actor, Event, PlanId, Position, TaskChanges, TaskId, TaskSpec};
use waypost_git::{RefName, RemoteName, Repository};
use waypost_operation::{OperationSet, merge, merge_request};
use waypost_service::{
    AnswerChoice, Caller, CreateOptions, EditOp, Guard, NewTask, QuestionRef, Service, ServiceError,
    SharedBranch, SharingError, StatusChange, SyncOptions, SyncReport,
};
use waypost_store::{Durability, PlanStore, SqliteStore};
use waypost_testkit::{id, plan_of, program_path, task};

/// A folder that is removed at the end, with a bare repository.
pub(crate) struct Ground {
    pub(crate) root: PathBuf,
}

impl Ground {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = std::env::temp_dir().join(format!("waypost-sharing-{}-{number}", std::process::id()));
        let _none = std::fs::remove_dir_all(&root);
        std::fs::create_dir_all(&root).unwrap();
        let ground = Self { root: root.canonicalize().unwrap() };
        ground.git(&ground.root, &["init", "--quiet", "--bare", "--initial-branch=main", "origin.git"]);
        ground.git(&ground.root, &["init", "--quiet", "--initial-branch=main", "seed"]);
        let seed = ground.root.join("seed");
        std::fs::write(seed.join("code.rs"), "fn main() {}\n").unwrap();
        ground.git(&seed, &["add", "."]);
        ground.git(&seed, &["commit", "--quiet", "-m", "code"]);
        ground.git(&seed, &["push", "--quiet", "../origin.git", "main"]);
        ground
    }

    pub(crate) fn bare(&self) -> PathBuf {
        self.root.join("origin.git")
    }

    /// Runs git as a person does.
    pub(crate) fn try_git(&self, folder: &Path, words: &[&str]) -> Result<String, String> {
        let output = Command::new("git")
            .args(words)
            .current_dir(folder)
            .env_clear()
            .env("PATH", program_path())
            .env("HOME", &self.root)
            .envs([("GIT_AUTHOR_NAME", "Ada"), ("GIT_AUTHOR_EMAIL", "ada@example.org")])
            .envs([("GIT_COMMITTER_NAME", "Ada"), ("GIT_COMMITTER_EMAIL", "ada@example.org")])
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(text(&output.stderr)),
        }
    }

    pub(crate) fn git(&self, folder: &Path, words: &[&str]) -> String {
        self.try_git(folder, words).unwrap_or_else(|error| panic!("git {words:?}: {error}"))
    }

    /// Clones the repository.
    pub(crate) fn clone(&self, name: &str) -> Clone {
        self.git(&self.root, &["clone", "--quiet", "origin.git", name]);
        self.open(name)
    }

    /// Opens a clone that is there.
    pub(crate) fn open(&self, name: &str) -> Clone {
        let path = self.root.join(name);
        let home = self.root.to_str().unwrap().to_owned();
        let environment = BTreeMap::from([("PATH".to_owned(), program_path()), ("HOME".to_owned(), home)]);
        let database = path.join(".git/plans.db");
        let store = SqliteStore::open(&database, Durability::Relaxed).unwrap();
        let shared = SharedBranch {
            repository: Repository::find(&environment, &path).unwrap(),
            name: RefName::new("refs/heads/waypost").unwrap(),
            remote: Some(RemoteName::new("origin").unwrap()),
            place: std::fs::metadata(&database).unwrap().ino().to_string(),
            address: self.bare().display().to_string(),
            home: None,
            trusted: true,
        };
        let (plans, config) = (PlanStore::new(Arc::new(store)), Config::load(&[], []).unwrap());
        let branch = shared.clone();
        let service = Service::new(Arc::new(plans), Arc::new(config))
            .with_shared_branch(Arc::new(move || Ok(branch.clone())));
        Clone { path, database, service, shared, by: Caller::new(Actor::person(name)) }
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _gone = std::fs::remove_dir_all(&self.root);
    }
}

/// A clone with its store, and the person who works there.
pub(crate) struct Clone {
    pub(crate) path: PathBuf,
    pub(crate) database: PathBuf,
    pub(crate) service: Service,
    pub(crate) shared: SharedBranch,
    pub(crate) by: Caller,
}

pub(crate) fn plan(name: &str) -> PlanId {
    PlanId::new(name).unwrap()
}

impl Clone {
    /// Creates a plan with these tasks.
    pub(crate) fn create(&self, name: &str, tasks: &[&str]) {
        let draft = plan_of(tasks.iter().map(|name| task(name, &[])));
        let options = CreateOptions { id: Some(plan(name)), ..CreateOptions::default() };
        self.service.create(&self.by, draft, options).unwrap();
    }

    /// Creates a plan with these tasks, and shares it.
    pub(crate) fn share(&self, name: &str, tasks: &[&str]) {
        self.create(name, tasks);
        self.service.share(&self.by, &self.shared, &[plan(name)]).unwrap();
    }

    pub(crate) fn sync(&self) -> SyncReport {
        let options = SyncOptions { fetch: true, push: true, from: None };
        self.service.sync(&self.shared, &options).unwrap()
    }

    pub(crate) fn edit(&self, name: &str, op: EditOp) -> Result<Vec<TaskId>, ServiceError> {
        Ok(self.service.edit(&self.by, &plan(name), vec![op], Guard::NONE)?.added)
    }

    /// Adds a task whose id this clone chooses.
    pub(crate) fn add(&self, name: &str, description: &str) -> TaskId {
        let spec = TaskSpec::new(id("x"), description);
        let op = EditOp::AddTasks { tasks: vec![NewTask::unnamed(spec)], position: Position::Last };
        self.edit(name, op).unwrap().remove(0)
    }

    pub(crate) fn revise(&self, name: &str, task: &str, changes: TaskChanges) -> Result<(), ServiceError> {
        self.edit(name, EditOp::ReviseTask { task: id(task), changes: Box::new(changes) }).map(drop)
    }

    pub(crate) fn note(&self, name: &str, task: &str, notes: &str) {
        self.revise(name, task, TaskChanges { notes: Some(notes.to_owned()), ..TaskChanges::default() })
            .unwrap();
    }

    pub(crate) fn remove(&self, name: &str, task: &str) -> Result<(), ServiceError> {
        self.edit(name, EditOp::RemoveTask { task: id(task), drop_dependencies: true }).map(drop)
    }

    pub(crate) fn done(&self, name: &str, task: &str, result: &str) -> Result<(), ServiceError> {
        let status = StatusChange::Done { result: Some(result.to_owned()), output: None, sure: true };
        self.edit(name, EditOp::SetStatus { task: id(task), status, take_over: true }).map(drop)
    }

    pub(crate) fn version(&self, name: &str) -> u64 {
        self.service.read(&plan(name), |plan| plan.version()).unwrap()
    }

    /// What the plan says, as text: what every clone has to agree on.
    pub(crate) fn text(&self, name: &str) -> String {
        self.service
            .read(&plan(name), |plan| {
                let draft = plan.to_draft();
                let tasks =
                    draft.tasks.iter().map(|task| format!("{:?} {:?}\n", task.spec, task.state.status));
                format!("{:?}\n{}", draft.spec, tasks.collect::<String>())
            })
            .unwrap()
    }

    pub(crate) fn notes(&self, name: &str, task: &str) -> String {
        let read = |plan: &waypost_core::Plan| plan.task(task).map(|task| task.spec.notes.clone());
        self.service.read(&plan(name), read).unwrap().unwrap_or_default()
    }

    pub(crate) fn task_ids(&self, name: &str) -> Vec<String> {
        let ids = |plan: &waypost_core::Plan| -> Vec<String> {
            plan.to_draft().tasks.iter().map(|task| task.spec.id.to_string()).collect()
        };
        self.service.read(&plan(name), ids).unwrap()
    }

    pub(crate) fn records(&self, name: &str) -> OperationSet {
        self.service.shared_records(&plan(name)).unwrap()
    }

    pub(crate) fn record_ids(&self, name: &str) -> BTreeSet<String> {
        self.records(name).records().map(|record| record.id().to_string()).collect()
    }

    pub(crate) fn questions(&self) -> Vec<String> {
        let open = self.service.open_questions(None).unwrap();
        let named = |question: &waypost_service::MergeQuestion| {
            let conflict = &question.conflict;
            let task = conflict.task.as_ref().map(|task| format!("{task} ")).unwrap_or_default();
            format!("{task}{}", conflict.subject)
        };
        open.iter().flat_map(|open| open.questions.iter().map(named)).collect()
    }

    pub(crate) fn resolve(
        &self,
        name: &str,
        task: Option<&str>,
        subject: &str,
        choice: AnswerChoice,
    ) -> Result<usize, SharingError> {
        let task = task.map(id);
        let (by, plan) = (&self.by, plan(name));
        let of = QuestionRef { plan: &plan, task: task.as_ref(), subject: Some(subject), seen: None };
        let reply = self.service.resolve_question(by, &self.shared, of, &choice)?;
        Ok(reply.questions)
    }

    /// What an import of nothing would change.
    pub(crate) fn left_to_import(&self, name: &str) -> Vec<Event> {
        let set = self.records(name);
        let request = merge_request(&set, &merge(&set), &[]);
        let command = waypost_core::Command::Merge(Box::new(request));
        let decide = |plan: &waypost_core::Plan| {
            plan.decide(&Actor::system("sync"), plan.state().created_at.unwrap(), &command).unwrap()
        };
        self.service.read(&plan(name), decide).unwrap()
    }

    pub(crate) fn tip(&self) -> Option<String> {
        Some(self.shared.repository.tip("refs/heads/waypost").unwrap()?.commit.to_string())
    }
}

/// Syncs all clones until nothing moves, and checks that they agree.
pub(crate) fn settle(clones: &[&Clone], name: &str) {
    for _ in 0..2 {
        for clone in clones {
            let report = clone.sync();
            assert_eq!(report.remote_problem, None);
            assert_eq!(report.findings, [""; 0]);
        }
    }
    let first = clones[0];
    for clone in clones {
        let report = clone.sync();
        assert!(report.pushed, "{report:?}");
        assert_eq!((report.published, report.imported), (0, 0), "{report:?}");
    }
    for clone in clones {
        assert_eq!(clone.left_to_import(name), [], "nothing is left that only a further import shows");
        assert_eq!(clone.tip(), first.tip(), "one tip");
        assert_eq!(clone.record_ids(name), first.record_ids(name), "one set of records");
        assert_eq!(clone.text(name), first.text(name), "one plan");
        assert_eq!(clone.questions(), first.questions(), "the same questions");
    }
}
