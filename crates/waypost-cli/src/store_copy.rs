//! Tells a store from a copy of it: a folder that was copied, or a backup that came back. Two stores must not give tasks the
//! same ids.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use waypost_service::{Service, ServiceError, SharingError};
use waypost_store::{PlanStore, Store, StoreError};

use crate::error::Outcome;
use crate::store_location::StoreLocation;

/// Where the machine names itself.
const MACHINE: &str = "/etc/machine-id";

/// Lets a store that was copied draw another tag for the tasks that it names.
pub(crate) fn note_copy(store: &Arc<dyn Store>, place: &StoreLocation) -> Outcome {
    let plans = Arc::new(PlanStore::for_one_command(Arc::clone(store)));
    let no_config = || {
        let (message, hint) = ("a tag needs no configuration".to_owned(), String::new());
        Err(ServiceError::Configuration { message, details: Vec::new(), hint })
    };
    let service = Service::with_config_on_demand(plans, Box::new(no_config));
    match service.note_place(|| place_of(place)) {
        // What it would say of the store, `doctor` says, and repairs.
        Err(SharingError::Service(ServiceError::Store(StoreError::Corrupt { .. }))) => Ok(()),
        noted => Ok(noted?),
    }
}

/// What tells a store from a copy of it: its machine and the number of its file.
pub(crate) fn place_of(place: &StoreLocation) -> String {
    let machine = fs::read_to_string(MACHINE).unwrap_or_default();
    let path = match place.location.split_once(':') {
        Some(("sqlite" | "file", path)) => path,
        // The users of a database share it, and its records.
        Some(_) | None => return place.shown(),
    };
    let found = fs::metadata(Path::new(path)).ok();
    let number = found.as_ref().map_or(0, MetadataExt::ino);
    // The number of a file that is gone may be given to the next one.
    let created = found.and_then(|found| found.created().ok());
    let created =
        created.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, |age| age.as_nanos());
    format!("{}:{number}:{created}", machine.trim())
}
