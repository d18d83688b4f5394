//! Stores whose files disappear while a process has them open.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use waypost_store::{Durability, PlanStore, SqliteStore, StoreError, WriteError};

use crate::kit::*;
use crate::place::Folder;

fn open(path: &std::path::Path) -> PlanStore {
    PlanStore::new(std::sync::Arc::new(SqliteStore::open(path, Durability::Full).unwrap()))
}

fn is_removed(error: &WriteError) -> bool {
    matches!(error, WriteError::Store(StoreError::StoreRemoved { .. }))
}

#[test]
fn a_database_that_was_removed_is_noticed_and_its_contents_can_be_rescued() {
    let folder = Folder::new();
    let store = folder.path().join(".waypost");
    let plans = open(&store.join("waypost.db"));
    create_small(&plans, "p");
    write(&plans, "p", add("a")).unwrap();
    fs::remove_dir_all(&store).unwrap();
    let refused = write(&plans, "p", add("b")).unwrap_err();
    assert!(is_removed(&refused), "{refused}");
    assert!(!store.exists(), "nothing is created in its place");
    let unread = plans.store().query(|read| Ok(read.now())).unwrap_err();
    assert!(matches!(unread, StoreError::StoreRemoved { .. }), "{unread}");
    let rescued = plans.store().rescue().unwrap().unwrap();
    assert_eq!(rescued, folder.path().join("waypost-recovered.db"));
    assert_eq!(fs::metadata(&rescued).unwrap().permissions().mode() & 0o777, 0o600);
    let recovered = open(&rescued);
    assert_eq!(now(&recovered, "p").version(), 2);
    assert_eq!(recovered.doctor(false).unwrap(), []);
    let second = plans.store().rescue().unwrap().unwrap();
    assert_eq!(second, folder.path().join("waypost-recovered-2.db"), "the first one is left alone");
}

#[test]
fn a_watch_wakes_its_reader_when_the_database_is_removed_or_its_folder_moved() {
    for moves in [false, true] {
        let folder = Folder::new();
        let store = folder.path().join(".waypost");
        let plans = open(&store.join("waypost.db"));
        create_small(&plans, "p");
        let mut watch = plans.watch().unwrap();
        match moves {
            true => fs::rename(&store, folder.path().join("moved")).unwrap(),
            false => fs::remove_dir_all(&store).unwrap(),
        }
        let is_removed = || plans.store().query(|read| Ok(read.now())).is_err();
        assert!(watch.wait(std::time::Duration::from_secs(60)).unwrap() && is_removed(), "moves: {moves}");
    }
}

#[test]
fn a_database_that_was_replaced_is_not_written() {
    let folder = Folder::new();
    let path = folder.path().join("waypost.db");
    let plans = open(&path);
    create_small(&plans, "p");
    for file in ["waypost.db", "waypost.db-wal", "waypost.db-shm"] {
        let _missing = fs::remove_file(folder.path().join(file));
    }
    let other = open(&path);
    create_small(&other, "q");
    assert!(is_removed(&write(&plans, "p", add("a")).unwrap_err()));
    assert_eq!(list(&other, &everything()), ["q"]);
    assert_eq!(write(&other, "q", add("a")).unwrap().version, 2);
}
