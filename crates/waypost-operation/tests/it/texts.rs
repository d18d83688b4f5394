//! Merged texts are a part of the format: two versions of Waypost that merged differently would show different plans.

use std::fmt::Write as _;

use waypost_operation::{
    Action, CloneTag, Field, OperationSet, ParsedRecord, Record, RecordHeader, RecordId, merge,
};

use crate::committed;
use crate::kit::{ada, at, plan_id};

/// A base, and what clones made of it.
const CASES: &[(&str, &[&str])] = &[
    ("a\nb\nc\n", &["a\nb\nc\n", "x\nb\nc\n"]),
    ("a\nb\nc\n", &["x\nb\nc\n", "a\nb\ny\n"]),
    ("a\nb\nc\n", &["x\nb\nc\n", "y\nb\nc\n"]),
    ("a\nb\nc\n", &["x\nb\nc\n", "a\ny\nc\n"]),
    ("a\nb\nc\nd\ne\n", &["x\nb\nc\nd\ne\n", "a\nb\ny\nd\ne\n", "a\nb\nc\nd\nz\n"]),
    ("a\nb\nc\nd\ne\n", &["x\nb\nc\nd\ne\n", "a\nb\ny\nd\ne\n", "w\nb\nc\nd\nz\n"]),
    ("a\nb\nc\n", &["a\nc\n", "a\nb\nc\nd\n"]),
    ("a\nb\nc\n", &["a\nb\nc\nfrom one\n", "a\nb\nc\nfrom another\n"]),
    ("a\nb\nc\n", &["first\na\nb\nc\n", "a\nb\nc\nlast\n"]),
    ("a\nb\nc", &["a\nb\nc\n", "x\nb\nc"]),
    ("", &["one", "another"]),
    ("", &["one", "one"]),
    ("a\na\na\nb\na\n", &["a\na\nb\na\n", "a\na\na\nb\na\na\n"]),
    ("same\n\nsame\n\nsame\n", &["same\n\nsame\n\nsame\nx\n", "y\nsame\n\nsame\n\nsame\n"]),
    ("<<<<<<< ours\n=======\n", &["<<<<<<< ours\n=======\nx\n", "y\n<<<<<<< ours\n=======\n"]),
    ("grüße\nwelt\nzeile\n", &["grüße\nwelt\nzeile ✓\n", "Grüße\nwelt\nzeile\n"]),
    ("a\r\nb\r\nc\r\n", &["a\nb\r\nc\r\n", "a\r\nb\r\nc\n"]),
];

/// Returns what the goal of a plan becomes when clones replace it by these texts without knowing of each other.
fn merged(base: &str, texts: &[&str]) -> Option<String> {
    let mut set = OperationSet::new(plan_id());
    let goal = |to: &str, over: Vec<RecordId>| {
        vec![Action::Set { task: None, field: Field::Goal, to: to.into(), over }]
    };
    let mut write = |clock: u64, parents: Vec<RecordId>, from: &str, actions: Vec<Action>| {
        let from = CloneTag::new(from).unwrap();
        let header = RecordHeader { plan: plan_id(), clock, parents, at: at(clock), by: ada(), from };
        let record = Record::new(header, actions).unwrap();
        let id = record.id();
        set.insert(ParsedRecord::from(record));
        id
    };
    let root = write(1, vec![], "k", vec![Action::Create(Box::default())]);
    let first = write(2, vec![root], "k", goal(base, vec![root]));
    for (number, text) in texts.iter().enumerate() {
        write(3, vec![first], &format!("c{number}"), goal(text, vec![first]));
    }
    let merged = merge(&set);
    merged.conflicts.is_empty().then_some(merged.draft.spec.goal)
}

#[test]
fn texts_are_merged_as_they_always_were() {
    let mut found = String::new();
    for (base, texts) in CASES {
        let merged = merged(base, texts);
        let reversed: Vec<&str> = texts.iter().rev().copied().collect();
        assert_eq!(merged, self::merged(base, &reversed), "nobody is preferred: {base:?} {texts:?}");
        let said = merged.map_or("a question".to_owned(), |text| format!("{text:?}"));
        writeln!(found, "{base:?} {texts:?} -> {said}").unwrap();
    }
    let advice =
        "Clones of other versions show the old text. Raise RECORD_FORMAT before the merge of texts changes.";
    committed::check("tests/golden/merged_texts.txt", &found, advice);
}
