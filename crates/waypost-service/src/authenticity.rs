//! Shows that approvals in a store are genuine: seals and signs those that are given here, and verifies those that the
//! store holds. Whoever writes the database can write an approval, but neither its seal nor its signature.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use waypost_account::{
    Account, AccountFileError, Act, AllowedSigners, BadSignature, FileStamp, Message, MessageTooLong,
    RevokedApprovals, RevokedKeys, Scope, SealKey, SignError, Signed, Signer, SignerFileError, StoreRecords,
    Verified, place_of, sign,
};
use waypost_config::{ApprovalSettings, SealRule};
use waypost_core::canonical::{CanonicalHasher, Hash};
use waypost_core::{
    Actor, Approval, ApprovalSignature, ApprovedWork, Attestation, GateAhead, GateRecord, PlanId, Proof,
    TaskId, Timestamp,
};
use waypost_store::{Store, StoreError};
use waypost_text::{from_hex, hex};

use crate::hint::Hint;

/// Maximum number of signatures that are known to be valid.
const SIGNED_MAX: usize = 1_000;

/// What an account vouches for in one store.
#[derive(Clone, Debug)]
pub struct Authenticator {
    account: Arc<Account>,
    location: Location,
    /// The id of the store; empty until it was read.
    store: String,
    /// The number of the last version in the store when its id was read.
    latest: u64,
    /// When it was opened, by its clock.
    /// The fingerprint of a key that does not count.
    without: Option<String>,
    known: Arc<Mutex<KnownSignatures>>,
}

/// What was read and verified before. A worker asks before every start, which then costs a `stat` of the files.
#[derive(Debug, Default)]
struct KnownSignatures {
    /// The signers, and the state of their files when they were read.
    signers: Option<(Vec<Option<FileStamp>>, Signers)>,
    /// Valid signatures, by the hash of signature and message.
    signed: HashMap<Hash, Signed>,
}

/// The keys that may sign, and those that were revoked.
type Signers = Arc<(AllowedSigners, RevokedKeys)>;

/// Where a store is.
#[derive(Clone, Debug)]
enum Location {
    /// Files of this machine: a copy from elsewhere can take their place.
    Files(PathBuf),
    /// Unknown. Approvals count if this process sealed them.
    Unknown,
    /// A database server, or the memory of this process.
    Server,
}

/// Why an approval does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAuthentic {
    /// An earlier version of Waypost recorded it.
    Unattested,
    /// It has no seal of this account.
    NotSealedHere,
    /// It was given for another place, from which the store was copied or moved.
    OfOtherPlace,
    /// Its signature does not count, for this reason.
    Signature(String),
    /// The store at this location is another one than before.
    StoreChanged(String),
    /// The account has not used the store at this location: it may be a copy.
    StoreUnknown(String),
    /// It was revoked on this account; an older copy of the store still has it.
    Revoked,
}

impl std::fmt::Display for NotAuthentic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unattested => f.write_str("an earlier version of Waypost recorded it"),
            Self::NotSealedHere => f.write_str("it was not given on this account"),
            Self::OfOtherPlace => {
                f.write_str("it was given for another folder, from which this store was copied or moved")
            }
            Self::Revoked => f.write_str("it was revoked"),
            Self::Signature(why) => f.write_str(why),
            Self::StoreChanged(location) => {
                write!(f, "{location} is not the store that this account used there")
            }
            Self::StoreUnknown(location) => {
                write!(f, "{location} is not the store that this account used there")
            }
        }
    }
}

/// Why an approval could not be sealed or signed.
#[derive(Debug, thiserror::Error)]
pub enum AttestError {
    /// An account file cannot be used.
    #[error(transparent)]
    File(#[from] AccountFileError),
    /// The file of signers cannot be used.
    #[error(transparent)]
    Signers(#[from] SignerFileError),
    /// The message is too long.
    #[error(transparent)]
    TooLong(#[from] MessageTooLong),
    /// Nothing was signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// The system has no randomness.
    #[error("no randomness: {0}")]
    Random(std::io::Error),
    /// The configured key does not exist.
    #[error("{} does not exist", .0.display())]
    NoSealKey(PathBuf),
    /// The store at this location is another one than before.
    #[error("{0} is not the store that this account used there")]
    StoreChanged(String),
    /// The record is not one that can be verified.
    #[error("the approval has no valid digest")]
    Malformed,
    /// There is no approval that counts outside its store.
    #[error("the approval has no portable signature")]
    NotPortable,
    /// A task is held, which a signature that counts elsewhere does not say.
    #[error("task {0} is held, and a portable approval cannot say so: it would start elsewhere")]
    HoldNotPortable(String),
    /// The message of a bundle is not that of its record.
    #[error("the message in the bundle is not the one of its approval")]
    OtherMessage,
    /// The plan or the definitions of a bundle are not those that were signed.
    #[error("the plan or the definitions in the bundle are not those that were signed")]
    OtherContent,
    /// A bundle lacks the definitions that were signed.
    #[error("the bundle does not have the definitions that were signed")]
    NoDefinitions,
    /// The approval of a bundle does not count here, for this reason.
    #[error("the approval does not count: {0}")]
    NotGenuine(String),
    /// What was signed is not what would run here.
    #[error("what was signed is not what would run here: the plan or an executor differs")]
    OtherWork,
}

impl AttestError {
    /// Returns the code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::File(error) | Self::Signers(SignerFileError::File(error)) => error.code(),
            Self::Signers(SignerFileError::Line { .. }) => "allowed_signers",
            Self::Sign(_) => "not_signed",
            Self::StoreChanged(_) => "store_changed",
            Self::TooLong(_) | Self::Random(_) | Self::NoSealKey(_) | Self::Malformed => "not_sealed",
            Self::HoldNotPortable(_) => "not_portable",
            Self::NotPortable | Self::OtherMessage | Self::NoDefinitions | Self::NotGenuine(_) => {
                "not_authentic"
            }
            Self::OtherContent | Self::OtherWork => "digest_mismatch",
        }
    }

    /// Returns what to do next.
    pub(crate) fn hint(&self) -> Hint {
        let text = match self {
            Self::StoreChanged(_) => return Hint::TrustStore,
            Self::NotPortable => return Hint::SignPortable,
            Self::HoldNotPortable(_) => {
                "lift the hold first, or approve without --portable; a dependency on a task for people holds everywhere"
            }
            Self::File(error) | Self::Signers(SignerFileError::File(error)) => {
                return Hint::Text(error.hint());
            }
            Self::Signers(SignerFileError::Line { .. }) => "correct the line",
            Self::NoSealKey(_) => "correct approval.seal_key",
            Self::Sign(SignError::NotAccepted(_)) => {
                "add your key to the allowed signers, or sign with an allowed one"
            }
            Self::Sign(_) => return Hint::NameKey,
            Self::TooLong(_) | Self::Random(_) | Self::Malformed => "look at it again, and retry",
            Self::NoDefinitions => {
                "approve it again where it runs: the definitions may be too large to be kept"
            }
            Self::OtherMessage | Self::OtherContent => "export it again: somebody changed the file",
            Self::NotGenuine(_) => "a signer whom this account allows signs it again",
            Self::OtherWork => "compare the plan and the definitions in the bundle with those here",
        };
        Hint::Text(text.to_owned())
    }
}

/// How to sign an approval.
pub struct Signing<'a> {
    /// The private key, or a public key whose private one the ssh-agent holds.
    pub key: &'a Path,
    /// The principal who signs.
    pub principal: &'a str,
    /// Whether the approval counts in every store.
    pub portable: bool,
    /// Looks up a variable for `ssh-keygen`.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// What an approval is about, besides the work.
#[derive(Clone, Copy, Debug)]
pub struct Approved<'a> {
    /// The id of the plan.
    pub plan: &'a PlanId,
    /// The person.
    pub by: &'a Actor,
    /// The version that was seen.
    pub version: u64,
    /// The person's note.
    pub note: &'a str,
}

impl<'a> Approved<'a> {
    pub(crate) fn of(plan: &'a PlanId, approval: &'a Approval) -> Self {
        Self { plan, by: &approval.by, version: approval.version, note: &approval.note }
    }
}

impl Default for Authenticator {
    /// Vouches with a key of this process, and for nothing that another process approved.
    fn default() -> Self {
        Self::at(Account::of_process(), Location::Unknown)
    }
}

impl Authenticator {
    /// Creates the authenticator of an account for the store at a location, such as `sqlite:PATH`.
    pub fn new(account: &Account, location: &str) -> Self {
        let location = match location.split_once(':') {
            Some(("sqlite" | "file", path)) => Location::Files(path.into()),
            Some(_) => Location::Server,
            None => Location::Unknown,
        };
        Self::at(account.clone(), location)
    }

    fn at(account: Account, location: Location) -> Self {
        let (account, known) = (Arc::new(account), Arc::default());
        Self { account, location, store: String::new(), latest: 0, without: None, known }
    }

    /// Returns the authenticator as it will be when the key with this fingerprint is no longer allowed.
    #[must_use]
    pub fn without_key(self, fingerprint: String) -> Self {
        Self { without: Some(fingerprint), known: Arc::default(), ..self }
    }

    /// Returns the authenticator with the id of the opened store.
    pub fn in_store(&self, store: &dyn Store) -> Result<Self, StoreError> {
        let state = store.query(|read| read.store_state())?;
        Ok(Self { store: state.id, latest: state.latest, ..self.clone() })
    }

    /// Records the opened store as the one of its location: a person created or trusted it.
    pub fn note_store(&self) -> Result<(), AttestError> {
        if let Location::Files(path) = &self.location {
            StoreRecords::of(&self.account).note(path, &self.store, self.latest)?;
        }
        Ok(())
    }

    /// Whether the account used this store before the version with this sequence number was written: it had created or
    /// trusted it, or approved something in it. What was there earlier, others may have written.
    pub(crate) fn knew_store_before(&self, sequence: u64) -> bool {
        match &self.location {
            Location::Files(path) if self.account.home.is_some() => {
                let records = StoreRecords::of(&self.account);
                matches!(records.noted_before(path, &self.store, sequence), Ok(true))
            }
            Location::Files(_) | Location::Unknown | Location::Server => true,
        }
    }

    /// Whether the store consists of files of this machine that the account keeps records of.
    pub(crate) fn is_in_files(&self) -> bool {
        matches!(self.location, Location::Files(_)) && self.account.home.is_some()
    }

    /// Whether the account has noted another store at this location.
    pub fn is_other_store(&self) -> bool {
        matches!(self.changed_store(), Ok(Some(_)))
    }

    /// Returns the location if another store was there before.
    fn changed_store(&self) -> Result<Option<String>, AccountFileError> {
        let Location::Files(path) = &self.location else { return Ok(None) };
        let noted = StoreRecords::of(&self.account).noted(path)?;
        let is_other = noted.is_some_and(|id| id != self.store);
        Ok(is_other.then(|| path.display().to_string()))
    }

    /// Refuses a store that took the place of another one, or that the account has not used where it is now. A key that
    /// several accounts share counts wherever it is configured.
    fn is_used_store(&self, settings: &ApprovalSettings) -> Result<(), NotAuthentic> {
        let Location::Files(path) = &self.location else { return Ok(()) };
        let location = path.display().to_string();
        match StoreRecords::of(&self.account).noted(path) {
            Ok(Some(id)) if id == self.store => Ok(()),
            Ok(Some(_)) => Err(NotAuthentic::StoreChanged(location)),
            Ok(None) if self.account.home.is_none() || settings.seal_key.is_some() => Ok(()),
            Ok(None) => Err(NotAuthentic::StoreUnknown(location)),
            Err(_) => Err(NotAuthentic::NotSealedHere),
        }
    }

    /// Returns the name of the place of a store in files. A key that several accounts share counts wherever it is configured.
    fn place(&self, settings: &ApprovalSettings) -> Result<Option<String>, AccountFileError> {
        match &self.location {
            Location::Files(path) if settings.seal_key.is_none() => Ok(Some(place_of(path)?)),
            Location::Files(_) | Location::Unknown | Location::Server => Ok(None),
        }
    }

    /// Refuses what was approved for another place, from which the store was copied or moved.
    fn is_of_this_place(
        &self,
        settings: &ApprovalSettings,
        place: Option<&String>,
    ) -> Result<(), NotAuthentic> {
        let Some(here) = self.place(settings).map_err(|_| NotAuthentic::NotSealedHere)? else {
            return Ok(());
        };
        match place {
            Some(place) if *place == here => Ok(()),
            Some(_) => Err(NotAuthentic::OfOtherPlace),
            None => Err(NotAuthentic::Unattested),
        }
    }

    fn needs_seal(&self, rule: SealRule) -> bool {
        match rule {
            SealRule::Auto => !matches!(self.location, Location::Server),
            SealRule::Required => true,
            SealRule::Off => false,
        }
    }

    fn seal_key(&self, settings: &ApprovalSettings) -> Result<SealKey, AttestError> {
        match &settings.seal_key {
            None => Ok(SealKey::of(&self.account)?),
            Some(file) => {
                SealKey::read(&self.account, file)?.ok_or_else(|| AttestError::NoSealKey(file.clone()))
            }
        }
    }

    /// Adds to a record who vouches for it, and seals it where a seal counts. `history` is the chain hash of the version
    /// that was seen.
    pub fn attest(
        &self,
        settings: &ApprovalSettings,
        approved: Approved<'_>,
        mut work: ApprovedWork,
        now: Timestamp,
        history: Option<Hash>,
    ) -> Result<ApprovedWork, AttestError> {
        if let Some(location) = self.changed_store()? {
            return Err(AttestError::StoreChanged(location));
        }
        let attestation = work.attestation.insert(Attestation {
            account: self.account.at_host(),
            place: self.place(settings)?,
            approved_at: Message::to_the_second(now),
            nonce: hex(&Message::random_nonce().map_err(AttestError::Random)?),
            history: history.map(|hash| hex(&hash)).unwrap_or_default(),
            expires_at: None,
            seal: None,
            signature: None,
        });
        if self.needs_seal(settings.seal) {
            let unsealed = attestation.clone();
            let sealed = self.sealed_text(approved, &work, &unsealed)?;
            let seal = self.seal_key(settings)?.seal(&sealed);
            work.attestation = Some(Attestation { seal: Some(seal), ..unsealed });
        }
        Ok(work)
    }

    /// Like [`Authenticator::attest`], by a signature. It is verified as a worker would, so that nothing is recorded that
    /// does not count.
    pub fn attest_signed(
        &self,
        settings: &ApprovalSettings,
        approved: Approved<'_>,
        work: ApprovedWork,
        now: Timestamp,
        history: Option<Hash>,
        signing: &Signing<'_>,
    ) -> Result<ApprovedWork, AttestError> {
        let signers = self.signers(settings)?;
        let mut work = self.attest(settings, approved, work, now, history)?;
        let Some(attestation) = work.attestation.as_mut() else { return Err(AttestError::Malformed) };
        let valid_micros =
            i64::try_from(settings.valid_seconds).unwrap_or(i64::MAX).saturating_mul(1_000_000);
        let expires_at = attestation.approved_at.as_micros().saturating_add(valid_micros);
        attestation.expires_at = Some(Timestamp::from_micros(expires_at));
        attestation.seal = None;
        let Signing { key, principal, portable, variable } = *signing;
        let unsigned = ApprovalSignature {
            armored: String::new(),
            fingerprint: String::new(),
            principal: principal.to_owned(),
            portable,
        };
        attestation.signature = Some(unsigned.clone());
        let message = self.message(approved, &work).ok_or(AttestError::Malformed)??;
        let (signers, revoked) = &*signers;
        let (armored, verified) = sign(&message, key, variable, principal, (signers, revoked), now)?;
        work.proof = proof_of(&verified);
        if let Some(attestation) = work.attestation.as_mut() {
            attestation.signature =
                Some(ApprovalSignature { armored, fingerprint: verified.fingerprint, ..unsigned });
        }
        Ok(work)
    }

    /// Keeps that an approval was revoked, outside the store.
    pub(crate) fn revoke(&self, approval: &Approval) -> Result<(), AttestError> {
        if let Some((_, attestation)) = attested(approval) {
            RevokedApprovals::of(&self.account).add(&attestation.nonce)?;
        }
        Ok(())
    }

    /// Verifies the approval of a plan. Returns the proof that it gives.
    pub fn verify(
        &self,
        settings: &ApprovalSettings,
        plan: &PlanId,
        approval: &Approval,
        now: Timestamp,
    ) -> Result<Proof, NotAuthentic> {
        let Some((work, attestation)) = attested(approval) else {
            // A database server has its own accounts; a record of an earlier version counts there as before.
            let counts = !self.needs_seal(settings.seal) && settings.proof < Proof::Signature;
            let proof = approval.work.as_ref().map(|work| work.proof.min(Proof::Presence));
            return proof.filter(|_| counts).ok_or(NotAuthentic::Unattested);
        };
        match RevokedApprovals::of(&self.account).contains(&attestation.nonce) {
            Ok(false) => {}
            Ok(true) => return Err(NotAuthentic::Revoked),
            Err(error) => return Err(NotAuthentic::Signature(error.to_string())),
        }
        let signed = attestation.signature.as_ref().map(|signature| {
            self.verify_signature(settings, Approved::of(plan, approval), work, signature, now)
        });
        match signed {
            Some(Ok(proof)) => return Ok(proof),
            Some(Err(reason)) if settings.proof >= Proof::Signature => return Err(reason),
            None if settings.proof >= Proof::Signature => {
                return Err(NotAuthentic::Signature("it is not signed".to_owned()));
            }
            // Where no signature is asked for, a seal is enough.
            Some(Err(reason)) if attestation.seal.is_none() => return Err(reason),
            Some(Err(_)) | None => {}
        }
        if !self.needs_seal(settings.seal) {
            return Ok(work.proof.min(Proof::Presence));
        }
        self.is_used_store(settings)?;
        self.is_of_this_place(settings, attestation.place.as_ref())?;
        let sealed = self.sealed_text(Approved::of(plan, approval), work, attestation);
        let seal = attestation.seal.as_deref().unwrap_or_default();
        match (sealed, self.seal_key(settings)) {
            (Ok(sealed), Ok(key)) if key.verify(&sealed, seal) => Ok(work.proof.min(Proof::Presence)),
            _ => Err(NotAuthentic::NotSealedHere),
        }
    }

    fn verify_signature(
        &self,
        settings: &ApprovalSettings,
        approved: Approved<'_>,
        work: &ApprovedWork,
        signature: &ApprovalSignature,
        now: Timestamp,
    ) -> Result<Proof, NotAuthentic> {
        let because = |error: &dyn std::fmt::Display| NotAuthentic::Signature(error.to_string());
        if !signature.portable
            && let Some(location) = self.changed_store().map_err(|error| because(&error))?
        {
            return Err(NotAuthentic::StoreChanged(location));
        }
        if let Some(attestation) = work.attestation.as_ref().filter(|_| !signature.portable) {
            self.is_of_this_place(settings, attestation.place.as_ref())?;
        }
        let message = self.message(approved, work);
        self.verify_armoured(settings, message, (&signature.armored, &signature.principal), now)
    }

    /// Verifies the signature of a principal over a message. Returns the proof that it gives.
    fn verify_armoured(
        &self,
        settings: &ApprovalSettings,
        message: Option<Result<String, MessageTooLong>>,
        (armoured, principal): (&str, &str),
        now: Timestamp,
    ) -> Result<Proof, NotAuthentic> {
        let because = |error: &dyn std::fmt::Display| NotAuthentic::Signature(error.to_string());
        let signers = self.signers(settings).map_err(|error| because(&error))?;
        let message = match message {
            Some(Ok(message)) => message,
            Some(Err(error)) => return Err(because(&error)),
            None => return Err(because(&AttestError::Malformed)),
        };
        let (signers, revoked) = &*signers;
        let signed = self.signed(armoured, &message).map_err(|error| because(&error))?;
        let verified = signed.check(principal, signers, revoked, now);
        Ok(proof_of(&verified.map_err(|error| because(&error))?))
    }

    /// Verifies that some key signed a message. Whether it may is not asked here.
    fn signed(&self, armoured: &str, message: &str) -> Result<Signed, BadSignature> {
        let mut hasher = CanonicalHasher::new("signed", 1);
        hasher.text(armoured).text(message);
        let key = hasher.finish();
        if let Some(signed) = self.known().signed.get(&key) {
            return Ok(signed.clone());
        }
        let signed = Signed::read(armoured.as_bytes(), message.as_bytes())?;
        let mut known = self.known();
        if known.signed.len() >= SIGNED_MAX {
            known.signed.clear();
        }
        known.signed.insert(key, signed.clone());
        Ok(signed)
    }

    fn known(&self) -> MutexGuard<'_, KnownSignatures> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the signers. Their files are read again when one has changed.
    fn signers(&self, settings: &ApprovalSettings) -> Result<Signers, SignerFileError> {
        let named = settings.allowed_signers.as_deref();
        // Taken before reading: a change meanwhile is noticed the next time.
        let stamps = AllowedSigners::stamps(&self.account, named);
        if let Some((_, signers)) = self.known().signers.as_ref().filter(|(of, _)| *of == stamps) {
            return Ok(Arc::clone(signers));
        }
        let (mut signers, revoked) = AllowedSigners::load(&self.account, named)?;
        if let Some(fingerprint) = &self.without {
            signers.remove(fingerprint);
        }
        let signers = Arc::new((signers, revoked));
        self.known().signers = Some((stamps, Arc::clone(&signers)));
        Ok(signers)
    }

    /// Returns the message of an approval, as `ssh-keygen -Y verify` takes it; `None` if the record cannot have one.
    pub fn message(
        &self,
        approved: Approved<'_>,
        work: &ApprovedWork,
    ) -> Option<Result<String, MessageTooLong>> {
        let attestation = work.attestation.as_ref()?;
        let Approved { plan, version, note, .. } = approved;
        let history = match attestation.history.as_str() {
            "" => Hash::default(),
            history => from_hex(history)?,
        };
        let signature = attestation.signature.as_ref();
        let scope = match signature.is_some_and(|signature| signature.portable) {
            true => Scope::Portable,
            false => Scope::Store { id: &self.store, place: attestation.place.as_deref(), version, history },
        };
        let gates = gates_text(&work.gates);
        let message = Message {
            scope,
            plan: plan.as_str(),
            digest: from_hex(work.digest.strip_prefix("sha256:")?)?,
            act: Act::Approval {
                note: Some(note).filter(|note| !note.is_empty()),
                expires: attestation.expires_at,
                gates: gates.as_deref(),
            },
            at: attestation.approved_at,
            nonce: from_hex(&attestation.nonce)?,
            signer: match signature {
                Some(signature) => Signer::Principal(&signature.principal),
                None => Signer::Account(&attestation.account),
            },
        };
        Some(message.encode())
    }

    /// Returns what is sealed: the message, and who gave the approval in which way.
    fn sealed_text(
        &self,
        approved: Approved<'_>,
        work: &ApprovedWork,
        attestation: &Attestation,
    ) -> Result<String, AttestError> {
        let work = ApprovedWork { attestation: Some(attestation.clone()), ..work.clone() };
        let message = self.message(approved, &work).ok_or(AttestError::Malformed)??;
        let kind: &str = work.kind.into();
        Ok(format!(
            "{message}kind {kind}\nproof {}\nvia {:?}\nby {:?}\n",
            work.proof,
            work.via,
            approved.by.to_string()
        ))
    }
}

impl Authenticator {
    /// Adds to the record of a person who ended a task for people who vouches for it: by a signature, or by a seal where
    /// one counts. A signature is verified as a worker would.
    pub fn attest_gate(
        &self,
        settings: &ApprovalSettings,
        about: (&PlanId, &TaskId),
        gate: GateRecord,
        signing: Option<&Signing<'_>>,
    ) -> Result<GateRecord, AttestError> {
        if signing.is_none() && !self.needs_seal(settings.seal) {
            return Ok(gate);
        }
        if let Some(location) = self.changed_store()? {
            return Err(AttestError::StoreChanged(location));
        }
        let nonce = hex(&Message::random_nonce().map_err(AttestError::Random)?);
        let place = self.place(settings)?;
        let (now, at) = (gate.at, Message::to_the_second(gate.at));
        let Some(Signing { key, principal, portable: _, variable }) = signing else {
            let gate = GateRecord { account: self.account.at_host(), place, at, nonce, ..gate };
            let text = self.sealed_gate(about, &gate).ok_or(AttestError::Malformed)??;
            let seal = self.seal_key(settings)?.seal(&text);
            return Ok(GateRecord { seal: Some(seal), ..gate });
        };
        let signers = self.signers(settings)?;
        let (account, signature) = ((*principal).to_owned(), Some(String::new()));
        let gate = GateRecord { account, place, at, nonce, signature, ..gate };
        let message = self.gate_message(about, &gate).ok_or(AttestError::Malformed)??;
        let (signers, revoked) = &*signers;
        let (armored, verified) = sign(&message, key, variable, principal, (signers, revoked), now)?;
        Ok(GateRecord { proof: proof_of(&verified), signature: Some(armored), ..gate })
    }

    /// Verifies the record of a task for people. Returns the proof that it gives.
    pub fn verify_gate(
        &self,
        settings: &ApprovalSettings,
        about: (&PlanId, &TaskId),
        gate: &GateRecord,
        now: Timestamp,
    ) -> Result<Proof, NotAuthentic> {
        if gate.signature.is_none() && settings.proof >= Proof::Signature {
            return Err(NotAuthentic::Signature("it is not signed".to_owned()));
        }
        if gate.signature.is_none() && !self.needs_seal(settings.seal) {
            return Ok(gate.proof.min(Proof::Presence));
        }
        match self.changed_store() {
            Ok(None) => {}
            Ok(Some(location)) => return Err(NotAuthentic::StoreChanged(location)),
            Err(_) => return Err(NotAuthentic::NotSealedHere),
        }
        self.is_of_this_place(settings, gate.place.as_ref())?;
        if let Some(signature) = &gate.signature {
            let message = self.gate_message(about, gate);
            return self.verify_armoured(settings, message, (signature, &gate.account), now);
        }
        let seal = gate.seal.as_deref().unwrap_or_default();
        match (self.sealed_gate(about, gate), self.seal_key(settings)) {
            (Some(Ok(text)), Ok(key)) if key.verify(&text, seal) => Ok(gate.proof.min(Proof::Presence)),
            (Some(_) | None, _) => Err(NotAuthentic::NotSealedHere),
        }
    }

    /// Whether the record of a task for people is genuine, and its proof is enough here.
    pub fn is_gate_proved(
        &self,
        settings: &ApprovalSettings,
        about: (&PlanId, &TaskId),
        gate: &GateRecord,
        now: Timestamp,
    ) -> bool {
        self.verify_gate(settings, about, gate, now).is_ok_and(|proof| proof >= settings.proof)
    }

    /// Returns the message of a record; `None` if the record cannot have one.
    fn gate_message(
        &self,
        (plan, task): (&PlanId, &TaskId),
        gate: &GateRecord,
    ) -> Option<Result<String, MessageTooLong>> {
        let digest = match gate.digest.strip_prefix("sha256:") {
            Some(digest) => from_hex(digest)?,
            None => Hash::default(),
        };
        let message = Message {
            scope: Scope::Store {
                id: &self.store,
                place: gate.place.as_deref(),
                version: gate.version,
                history: Hash::default(),
            },
            plan: plan.as_str(),
            digest,
            act: Act::Gate {
                task: task.as_str(),
                attempt: gate.attempt,
                outcome: gate.outcome.into(),
                answer: gate.answer.as_deref(),
            },
            at: gate.at,
            nonce: from_hex(&gate.nonce)?,
            signer: match &gate.signature {
                Some(_) => Signer::Principal(&gate.account),
                None => Signer::Account(&gate.account),
            },
        };
        Some(message.encode())
    }

    /// Returns what is sealed: the message, and who acted in which way.
    fn sealed_gate(
        &self,
        about: (&PlanId, &TaskId),
        gate: &GateRecord,
    ) -> Option<Result<String, MessageTooLong>> {
        let by = gate.by.to_string();
        let sealed = |message| format!("{message}proof {}\nvia {:?}\nby {by:?}\n", gate.proof, gate.via);
        Some(self.gate_message(about, gate)?.map(sealed))
    }
}

fn proof_of(verified: &Verified) -> Proof {
    if verified.touch { Proof::Touch } else { Proof::Signature }
}

fn attested(approval: &Approval) -> Option<(&ApprovedWork, &Attestation)> {
    let work = approval.work.as_deref()?;
    Some((work, work.attestation.as_ref()?))
}
/// Returns the gates of other plans as an approval is bound to them: one a line, with what waits for it.
fn gates_text(gates: &[GateAhead]) -> Option<String> {
    let line = |GateAhead { plan, task, before, question }: &GateAhead| {
        let before: Vec<&str> = before.iter().map(TaskId::as_str).collect();
        format!("{plan}/{task} {question} {}\n", before.join(" "))
    };
    (!gates.is_empty()).then(|| gates.iter().map(line).collect())
}
