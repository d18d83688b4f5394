//! Which plans travel, and the tag of this clone.

use std::path::Path;

use waypost_core::{Actor, ActorKind, PlanId, Timestamp};
use waypost_git::GitError;
use waypost_operation::{Action, CloneTag, RecordError};
use waypost_store::{Purge, StoreError, WriteError};
use waypost_text::shell_word;

use super::branch::SharedBranch;
use super::error::SharingError;
use super::reply::{ShareReply, SharedPlan, SharingStatus, WithheldPlan};
use super::rows::{self, DrawnTag};
use super::secrets::{SecretScan, secrets_of};
use super::sync::LOCK;
use crate::caller::Caller;
use crate::error::ServiceError;
use crate::service::Service;

/// Characters of a tag.
const TAG_CHARS: usize = 3;

fn person(by: &Caller, what: &'static str) -> Result<(), SharingError> {
    match by.actor.kind {
        ActorKind::Person => Ok(()),
        ActorKind::Agent | ActorKind::Worker | ActorKind::System => Err(SharingError::NeedsPerson { what }),
    }
}

fn draw_tag() -> Result<CloneTag, StoreError> {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let mut bytes = [0u8; TAG_CHARS];
    getrandom::fill(&mut bytes).map_err(|error| StoreError::Database(format!("no randomness: {error}")))?;
    let tag: String = bytes.iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect();
    CloneTag::new(tag).map_err(|error| StoreError::Database(error.to_string()))
}

impl Service {
    /// Refuses plans that are not shared yet and hold what looks like a secret.
    pub(super) fn refuse_secrets(&self, shared: &SharedBranch, plans: &[PlanId]) -> Result<(), SharingError> {
        let mut found = Vec::new();
        for plan in plans {
            let share = self.plans().store().query(|read| rows::share_of(read, plan))?;
            if share.is_some_and(|share| share.shared && share.home == shared.home) {
                continue;
            }
            found.extend(self.read(plan, secrets_of)?);
        }
        if found.is_empty() { Ok(()) } else { Err(SharingError::Secrets(found)) }
    }

    pub(super) fn now(&self) -> Result<Timestamp, SharingError> {
        Ok(self.plans().store().query(|read| Ok(read.now()))?)
    }

    /// Returns the tag of this clone; `None` before anything was shared from it.
    pub(super) fn clone_tag(&self) -> Result<Option<CloneTag>, SharingError> {
        Ok(self.plans().store().query(rows::tag)?.map(|drawn| drawn.tag))
    }

    /// Returns the tag that this clone adds to the ids of tasks which it names in a plan; `None` if the plan is not
    /// shared.
    pub fn shared_tag(&self, plan: &PlanId) -> Result<Option<String>, ServiceError> {
        let known = || {
            self.plans().store().query(|read| match rows::share_of(read, plan)? {
                Some(share) if share.shared => rows::tag(read),
                Some(_) | None => Ok(None),
            })
        };
        let mut found = known()?;
        // Git takes longer than the write. A store that is replaced under a running process is beyond help.
        if found.is_some() && self.branch_checked().get().is_none() && self.import_moved_branch() {
            found = known()?;
        }
        Ok(found.map(|drawn| drawn.tag.to_string()))
    }

    /// Imports the local branch if it is not where this store left it: a backup that was written over the file of the store
    /// must not give ids again which the branch has under its tag. Without the branch the ids stay as they are, and the
    /// merge tells the tasks apart. Returns whether something was imported.
    fn import_moved_branch(&self) -> bool {
        let Some(shared) = self.shared_branch().and_then(|find| find().ok()) else { return false };
        let Ok(seen) = self.plans().store().query(rows::seen_branch) else { return false };
        let Ok(Some(tip)) = shared.branch().tip() else { return false };
        let is_unmoved = seen.is_some_and(|seen| seen.commit == tip.commit.as_str());
        // Whoever has the lock imports it, too.
        let is_free = || self.plans().store().try_lock(LOCK).is_ok_and(|lock| lock.is_some());
        let is_imported = !is_unmoved && is_free() && self.publish_locally(&shared).is_ok();
        if is_unmoved || is_imported {
            self.branch_checked().get_or_init(|| ());
        }
        is_imported
    }

    /// Returns the tag of this clone, drawn when it is first needed. A store that was copied draws another one, after the
    /// versions that were copied along became the same records as in the original.
    pub(super) fn ensure_tag(&self, shared: &SharedBranch) -> Result<CloneTag, SharingError> {
        let drawn = self.plans().store().query(rows::tag)?;
        match drawn {
            Some(drawn) if drawn.place == shared.place => Ok(drawn.tag),
            Some(drawn) => self.draw_another_tag(&drawn.tag, &shared.place),
            None => self.put_new_tag(&shared.place),
        }
    }

    fn put_new_tag(&self, place: &str) -> Result<CloneTag, SharingError> {
        let drawn = DrawnTag { tag: draw_tag()?, place: place.to_owned() };
        self.plans().store().write(&mut |write| rows::put_tag(write, &drawn))?;
        Ok(drawn.tag)
    }

    /// Draws another tag, because another store has this one. What was written under it keeps it.
    pub(super) fn draw_another_tag(&self, tag: &CloneTag, place: &str) -> Result<CloneTag, SharingError> {
        self.derive_all(tag)?;
        self.put_new_tag(place)
    }

    /// Lets a store that was copied, or restored from a backup, draw another tag before it names a task.
    /// A store that cannot be written names none.
    pub fn note_place(&self, place: impl FnOnce() -> String) -> Result<(), SharingError> {
        let Some(drawn) = self.plans().store().query(rows::tag)? else { return Ok(()) };
        let place = place();
        if drawn.place == place {
            return Ok(());
        }
        let noted = self.sharing_lock().and_then(|_lock| match self.plans().store().query(rows::tag)? {
            Some(drawn) if drawn.place != place => self.draw_another_tag(&drawn.tag, &place).map(drop),
            Some(_) | None => Ok(()),
        });
        match noted {
            Err(SharingError::Service(ServiceError::Store(error))) if error.is_unwritable() => Ok(()),
            noted => noted,
        }
    }

    /// Turns the new versions of all shared plans into records. Returns how many records were made.
    pub(super) fn derive_all(&self, tag: &CloneTag) -> Result<usize, SharingError> {
        let mut made = 0;
        for (plan, share) in self.plans().store().query(rows::shares)? {
            if self.has_new_versions(&plan, &share)? {
                made += self.derive_records(&plan, tag)?.made;
            }
        }
        Ok(made)
    }

    /// Makes plans travel: each becomes records as it is now, statuses included. Nothing leaves this machine before a
    /// sync.
    pub fn share(
        &self,
        by: &Caller,
        shared: &SharedBranch,
        plans: &[PlanId],
    ) -> Result<ShareReply, SharingError> {
        self.share_with(by, shared, plans, SecretScan::Refuse)
    }

    /// Does the same, and may share what looks like a secret.
    pub fn share_with(
        &self,
        by: &Caller,
        shared: &SharedBranch,
        plans: &[PlanId],
        scan: SecretScan,
    ) -> Result<ShareReply, SharingError> {
        person(by, "share a plan")?;
        self.refuse_tracked(shared)?;
        if scan == SecretScan::Refuse {
            self.refuse_secrets(shared, plans)?;
        }
        let lock = self.sharing_lock()?;
        let tag = self.ensure_tag(shared)?;
        // What another clone shared under the same id must be known first.
        let taken = self.plans_of_branch(shared)?;
        let mut reply = ShareReply::default();
        for plan in plans {
            let known = self.plans().store().query(|read| rows::share_of(read, plan))?;
            match known {
                Some(share) if share.shared && share.home == shared.home => {
                    reply.unchanged.push(plan.clone());
                }
                Some(share) => {
                    let share = rows::PlanShare { shared: true, home: shared.home.clone(), ..share };
                    let store = self.plans().store();
                    store.write(&mut |write| rows::put_share(write, plan, &share))?;
                    // What arrived meanwhile is read again, with the whole branch.
                    store.write(&mut |write| rows::put_seen_branch(write, None))?;
                    reply.records += self.derive_records(plan, &tag)?.made;
                    reply.plans.push(plan.clone());
                }
                None if taken.contains(plan) => {
                    let made = self.take_up(plan, &tag, &by.actor, shared)?;
                    reply.records += made.ok_or_else(|| SharingError::Taken(plan.clone()))?;
                    reply.joined.push(plan.clone());
                }
                None => {
                    reply.records += self.first_records(plan, &tag, &by.actor, shared.home.as_deref())?;
                    reply.plans.push(plan.clone());
                }
            }
        }
        drop(lock);
        self.publish_locally(shared)?;
        Ok(reply)
    }

    /// Refuses to share plans that git tracks as files: a checkout would take versions back that have left already.
    pub(super) fn refuse_tracked(&self, shared: &SharedBranch) -> Result<(), SharingError> {
        let location = self.plans().store().location();
        let Some(folder) = location.strip_prefix("file:").map(Path::new) else { return Ok(()) };
        if !shared.repository.tracks(folder)? {
            return Ok(());
        }
        let name = shell_word(&folder.display().to_string()).into_owned();
        Err(SharingError::NoBranch {
            problem: format!(
                "git tracks the plans in {name} as files, and a checkout would take back what was shared"
            ),
            hint: format!(
                "run `git rm -r --cached {name}`, add it to .gitignore and commit that; then run the command again"
            ),
        })
    }

    /// Purges a plan. If it travels, the other clones are told: it is archived there, unless somebody changed it meanwhile.
    pub(crate) fn purge_for_all(&self, by: &Actor, plan: &PlanId) -> Result<(), SharingError> {
        let share = self.plans().store().query(|read| rows::share_of(read, plan))?;
        let (true, Some(tag)) = (share.is_some_and(|share| share.shared), self.clone_tag()?) else {
            return Ok(self.plans().purge(plan, by)?);
        };
        let _lock = self.sharing_lock()?;
        let problem =
            |error: RecordError| SharingError::Records { plan: plan.clone(), problem: error.to_string() };
        self.settle(|| {
            let derived = self.derive_records(plan, &tag)?;
            let deletion = derived.set.record(self.now()?, by.clone(), tag.clone(), vec![Action::Delete {}]);
            let deletion = deletion.map_err(problem)?;
            // The purge takes the records along; what nobody else has yet still has to leave.
            let waiting = self.plans().store().query(|read| rows::unpublished(read, plan))?;
            let waiting = waiting.into_iter().chain([(deletion.id().to_string(), deletion.to_line())]);
            let rows = waiting.map(|(key, line)| rows::unpublished_line(key, line)).collect();
            let (plan, by, known_version) = (plan.clone(), by.clone(), Some(derived.version));
            match self.plans().purge_shared(Purge { plan, by, known_version, rows }) {
                // Somebody wrote it meanwhile, which the deletion must have seen.
                Err(WriteError::Conflict(_)) => Ok(None),
                purged => Ok(Some(purged?)),
            }
        })
    }

    /// Keeps plans from travelling. They stay here and in every other clone, and what the branch holds stays there.
    pub fn unshare(&self, by: &Caller, plans: &[PlanId]) -> Result<ShareReply, SharingError> {
        person(by, "stop sharing a plan")?;
        let _lock = self.sharing_lock()?;
        let tag = self.clone_tag()?;
        let mut reply = ShareReply::default();
        for plan in plans {
            let known = self.plans().store().query(|read| rows::share_of(read, plan))?;
            let (Some(share), Some(tag)) = (known, &tag) else {
                return Err(SharingError::NotShared(plan.clone()));
            };
            if !share.shared {
                reply.unchanged.push(plan.clone());
                continue;
            }
            let derived = self.derive_records(plan, tag)?;
            let share = rows::PlanShare { shared: false, ..derived.share };
            self.plans().store().write(&mut |write| rows::put_share(write, plan, &share))?;
            reply.records += derived.made;
            reply.plans.push(plan.clone());
        }
        Ok(reply)
    }

    /// Returns what is shared from this store.
    pub fn sharing_status(&self) -> Result<SharingStatus, SharingError> {
        let mut status = SharingStatus::default();
        self.plans().store().read(&mut |read| {
            status = SharingStatus::default();
            status.remote_problem = rows::seen_remote(read)?.problem;
            status.tag = rows::tag(read)?.map(|drawn| drawn.tag.to_string()).unwrap_or_default();
            for (plan, share) in rows::shares(read)?.into_iter().filter(|(_, share)| share.shared) {
                let records = rows::count(read, waypost_store::SharedScope::Records(&plan))?;
                let unpublished = rows::count(read, waypost_store::SharedScope::Unpublished(&plan))?;
                let withheld = rows::is_withheld(read, &plan)?;
                let questions = share.questions;
                status.plans.push(SharedPlan { plan, records, unpublished, questions, withheld });
            }
            Ok(())
        })?;
        Ok(status)
    }

    /// Returns the plans that trust in this branch offers to agents: those that came from its address, and those with
    /// records that appeared here in another way.
    pub fn withheld_here(&self, shared: &SharedBranch) -> Result<Vec<WithheldPlan>, SharingError> {
        let withheld = self.plans().store().query(rows::withheld)?.into_iter();
        let here = withheld.filter(|(_, from)| from.is_empty() || *from == shared.address);
        Ok(here.map(|(plan, from)| WithheldPlan { plan, is_strange: from.is_empty() }).collect())
    }

    /// Offers the plans to agents again that were withheld until a person trusted where they came from. Returns them.
    pub fn release_withheld(&self, by: &Caller, shared: &SharedBranch) -> Result<Vec<PlanId>, SharingError> {
        person(by, "trust a remote")?;
        let plans = self.withheld_here(shared)?.into_iter().map(|withheld| withheld.plan).collect();
        self.release(plans)
    }

    /// Offers the plans that came from the address of this branch, which is trusted.
    pub(super) fn release_trusted(&self, shared: &SharedBranch) -> Result<Vec<PlanId>, SharingError> {
        let here = self.withheld_here(shared)?.into_iter();
        self.release(here.filter(|withheld| !withheld.is_strange).map(|withheld| withheld.plan).collect())
    }

    fn release(&self, plans: Vec<PlanId>) -> Result<Vec<PlanId>, SharingError> {
        if !plans.is_empty() {
            let store = self.plans().store();
            store.write(&mut |write| plans.iter().try_for_each(|plan| rows::release(write, plan)))?;
        }
        Ok(plans)
    }

    /// Returns the plans that the branch holds records of.
    fn plans_of_branch(
        &self,
        shared: &SharedBranch,
    ) -> Result<std::collections::BTreeSet<PlanId>, SharingError> {
        let branch = shared.branch();
        let mut plans = std::collections::BTreeSet::new();
        let tracking = shared.remote.as_ref().map(|remote| shared.name.tracking(remote));
        for name in std::iter::once(shared.name.as_str()).chain(tracking.as_deref()) {
            let Some(tip) = shared.repository.tip(name)? else { continue };
            match branch.check_format(&tip.commit) {
                Ok(()) => {}
                Err(error @ GitError::NotOurs { .. }) if name == shared.name.as_str() => {
                    return Err(error.into());
                }
                Err(GitError::NotOurs { .. }) => continue,
                Err(error) => return Err(error.into()),
            }
            let (files, _) = shared.repository.files(&tip.commit, "plans/")?;
            plans.extend(files.iter().filter_map(waypost_git::TreeFile::plan));
        }
        Ok(plans)
    }
}
