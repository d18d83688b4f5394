//! Rows about plans that are shared with other clones.

use std::sync::Arc;

use waypost_store::{
    Purge, Record, SharedGroup, SharedKeys, SharedRow, SharedScope, Store, StoreError, Transaction,
    WriteError,
};

use crate::kit::*;
use crate::place::Place;

fn change(store: &Arc<dyn Store>, mut work: impl FnMut(&mut dyn Transaction) -> Result<(), StoreError>) {
    store.write(&mut |transaction| work(transaction)).unwrap();
}

fn rows(store: &Arc<dyn Store>, scope: SharedScope<'_>, after: &str, limit: usize) -> Vec<(String, String)> {
    look(store, |read| read.shared(scope, SharedKeys::After(after), limit))
}

fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

pub(super) fn rows_about_shared_plans_are_stored_by_group_and_read_page_by_page(place: &Place) {
    let store = &place.store();
    let plan = plan("k3m");
    let (records, others) = (SharedScope::Records(&plan), SharedScope::Unpublished(&plan));
    change(store, |transaction| {
        for key in ["b", "a", "c"] {
            transaction.put(Record::Shared(records, key, Some(key)))?;
        }
        transaction.put(Record::Shared(others, "a", Some("")))?;
        transaction.put(Record::Shared(SharedScope::Clone, "tag", Some("k7f")))
    });
    assert_eq!(rows(store, records, "", 2), [pair("a", "a"), pair("b", "b")]);
    assert_eq!(rows(store, records, "b", 2), [pair("c", "c")]);
    let only = |key: &str| look(store, |read| read.shared(records, SharedKeys::Only(key), 9));
    assert_eq!((only("b"), only("bb")), (vec![pair("b", "b")], vec![]));
    assert_eq!(rows(store, SharedScope::Clone, "", 9), [pair("tag", "k7f")]);
    assert_eq!(rows(store, SharedScope::Plans, "", 9), []);
    change(store, |transaction| {
        transaction.put(Record::Shared(records, "b", Some("B")))?;
        transaction.put(Record::Shared(records, "a", None))?;
        transaction.put(Record::Shared(records, "none", None))
    });
    let again = &place.store();
    assert_eq!(rows(again, records, "", 9), [pair("b", "B"), pair("c", "c")]);
    assert_eq!(rows(again, others, "", 9), [pair("a", "")]);
}

pub(super) fn a_purged_plan_leaves_no_records(place: &Place) {
    let plans = place.plans();
    create_small(&plans, "p");
    let (id, other) = (plan("p"), plan("other"));
    change(plans.store(), |transaction| {
        for plan in [&id, &other] {
            transaction.put(Record::Shared(SharedScope::Records(plan), "r", Some("{}")))?;
            transaction.put(Record::Shared(SharedScope::Unpublished(plan), "r", Some("")))?;
        }
        Ok(())
    });
    plans.purge(&id, &ada()).unwrap();
    assert_eq!(rows(plans.store(), SharedScope::Records(&id), "", 9), []);
    assert_eq!(rows(plans.store(), SharedScope::Unpublished(&id), "", 9), []);
    assert_eq!(rows(plans.store(), SharedScope::Records(&other), "", 9), [pair("r", "{}")]);
}

pub(super) fn a_purge_leaves_the_rows_that_go_with_it_and_nothing_is_gone_if_the_plan_was_written_meanwhile(
    place: &Place,
) {
    let plans = place.plans();
    create_small(&plans, "p");
    let id = plan("p");
    let version = plans.with_plan(&id, |plan| plan.version()).unwrap();
    change(plans.store(), |transaction| {
        transaction.put(Record::Shared(SharedScope::Records(&id), "r", Some("{}")))?;
        transaction.put(Record::Shared(SharedScope::Unpublished(&id), "r", Some("")))
    });
    let left = SharedRow {
        group: SharedGroup::Unpublished,
        key: "deletion".to_owned(),
        value: Some("line".to_owned()),
    };
    let purge = |known| {
        let (plan, by, rows) = (id.clone(), ada(), vec![left.clone()]);
        plans.purge_shared(Purge { plan, by, known_version: Some(known), rows })
    };
    let refused = purge(version + 1).unwrap_err();
    assert!(matches!(refused, WriteError::Conflict(_)), "{refused}");
    assert_eq!(rows(plans.store(), SharedScope::Records(&id), "", 9), [pair("r", "{}")]);
    assert!(plans.with_plan(&id, |_| ()).is_ok());
    purge(version).unwrap();
    assert_eq!(rows(plans.store(), SharedScope::Records(&id), "", 9), []);
    assert_eq!(rows(plans.store(), SharedScope::Unpublished(&id), "", 9), [pair("deletion", "line")]);
    assert!(plans.with_plan(&id, |_| ()).is_err());
}
