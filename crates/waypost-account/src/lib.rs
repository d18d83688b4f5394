//! Who calls, and what this account vouches for: the evidence about a caller, the account's files, the seal and the
//! signature of an approval, the folders that a person trusts. Knows no plans, stores, configuration or front ends.
//!
//! An account is found by the effective user id. `HOME` and `XDG_*` never choose an account file: whoever can set a
//! variable is not thereby the owner of the account.

#![warn(clippy::wildcard_enum_match_arm)]

mod account;
mod account_files;
mod allowed_signers;
mod evidence;
#[cfg(feature = "injected")]
mod injected;
mod links;
mod message;
mod ownership;
mod remote_trust;
mod revoked;
mod seal;
mod sign;
mod signature;
mod stores;
mod terminal;
mod trust;

pub use account::{Account, Records};
pub use account_files::{ACCOUNT_FILE_BYTES_MAX, AccountFileError, FileStamp};
pub use allowed_signers::{
    AllowedSigners, NotAllowed, RevokedKeys, SIGNERS_MAX, SignerFileError, fingerprint,
};
pub use evidence::{ANCESTORS_MAX, CallerError, Evidence, Process};
pub use links::LinkRecords;
pub use message::{Act, MESSAGE_BYTES_MAX, Message, MessageTooLong, Scope, Signer};
pub use ownership::{ForeignOwner, FoundRoot, WorkspaceNames, find_root, user_name};
pub use remote_trust::RemoteTrust;
pub use revoked::{REVOKED_MAX, RevokedApprovals};
pub use seal::SealKey;
pub use sign::{SignError, sign};
pub use signature::{ARMOUR_BYTES_MAX, BadSignature, NAMESPACE, Signed, Verified, verify};
pub use stores::{StoreRecords, place_of};
pub use terminal::Terminal;
pub use trust::{SETTINGS_BYTES_MAX, TRUST_RECORDS_MAX, TrustRecord, TrustRecords, TrustState, trust_digest};
