//! Every reader against damaged texts: none panics, and what is read without a problem is written and read again as
//! the same. Seeded, so that a failure can be repeated.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use serde_json::{Map, Value, json};
use waypost_core::{Draft, validate};
use waypost_formats::{Dialect, Form, Unreadable, read, sniff, write, write_many};
use waypost_testkit::{SeededRng, fan_out, layered};

use crate::{fixtures, reading};

const READERS: [Dialect; 11] = [
    Dialect::Native,
    Dialect::Clido,
    Dialect::Jaato,
    Dialect::Frctl,
    Dialect::Agora,
    Dialect::PlanDocument,
    Dialect::Markdown,
    Dialect::Checklist,
    Dialect::TaskMaster,
    Dialect::Beads,
    Dialect::Backlog,
];

/// The formats that are written as well, and whose second writing must be the same text as the first.
pub(crate) const STABLE: [Dialect; 8] = [
    Dialect::Native,
    Dialect::Clido,
    Dialect::Jaato,
    Dialect::Frctl,
    Dialect::Agora,
    Dialect::Markdown,
    Dialect::Checklist,
    Dialect::PlanDocument,
];

/// How many texts each test tries; `WAYPOST_FUZZ_ROUNDS` asks for more.
fn rounds() -> usize {
    std::env::var("WAYPOST_FUZZ_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_500)
}

/// Reads, validates and writes; says on which text it failed.
fn check(text: &str, dialect: Dialect) {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let _ = sniff(text, None);
        let Ok(reading) = read(text, Some(dialect), None) else { return };
        for draft in &reading.drafts {
            let _ = validate(draft);
        }
        for form in [Form::AsRead, Form::Document, Form::Program] {
            if reading.problems.is_empty() && !reading.drafts.is_empty() && STABLE.contains(&dialect) {
                check_stable(&reading.drafts, dialect, form);
            }
        }
    }));
    if let Err(panic) = outcome {
        eprintln!("{dialect} failed on this text:\n{text}\n");
        resume_unwind(panic);
    }
}

/// What is written must be read without a problem, and give the same text when it is written again.
fn check_stable(drafts: &[Draft], dialect: Dialect, form: Form) {
    let several = drafts.len() != 1;
    let put = |drafts: &[Draft]| match several {
        true => write_many(drafts, dialect, form),
        false => write(&drafts[0], dialect, form),
    };
    let first = match put(drafts) {
        Ok(writing) => writing.text,
        // Two plans or two tasks of the same name, where a format has them in a map.
        Err(Unreadable::NoPlan(_)) => return,
        Err(other) => panic!("{other}"),
    };
    let again = reading(&first, dialect);
    assert_eq!(again.problems, [], "{form:?} wrote:\n{first}");
    assert_eq!(again.drafts.len(), drafts.len(), "{form:?} wrote:\n{first}");
    let second = put(&again.drafts).unwrap().text;
    assert_eq!(second, first, "{form:?}");
    if form == Form::AsRead && dialect == Dialect::Native {
        assert_eq!(again.drafts, drafts);
    }
}

/// The fixtures of each format and what the writers make of generated plans.
fn corpus() -> Vec<(Dialect, String)> {
    let mut texts = Vec::new();
    for dialect in READERS {
        let Ok(folder) = std::fs::read_dir(fixtures().join(dialect.name())) else { continue };
        let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for file in files {
            if let Ok(text) = std::fs::read_to_string(&file)
                && !file.to_string_lossy().contains("losses")
            {
                texts.push((dialect, text));
            }
        }
        for plan in [fan_out(3), layered(6, 2, 4, 1)] {
            if let Ok(writing) = write(&plan, dialect, Form::Program) {
                texts.push((dialect, writing.text));
            }
        }
    }
    texts
}

fn damaged(text: &str, other: &str, dice: &mut SeededRng) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=dice.below(3) {
        let at = dice.below(bytes.len());
        match dice.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << dice.below(8),
            1 => bytes.truncate(at),
            2 => {
                let from = dice.below(other.len());
                let piece = &other.as_bytes()[from..(from + dice.below(60)).min(other.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => {
                let end = (at + dice.below(80)).min(bytes.len());
                bytes.drain(at..end);
            }
            4 => {
                let end = (at + dice.below(80)).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let letters = [
                    "\u{0}",
                    "\"",
                    "{",
                    "}",
                    "[",
                    "]",
                    "\\",
                    "\n",
                    "\u{1F389}",
                    "é",
                    "```",
                    "---",
                    ": ",
                    "- [ ] ",
                    "\u{feff}",
                ];
                bytes.splice(at..at, dice.pick(&letters).bytes());
            }
            _ => {
                let tail = bytes.split_off(at);
                bytes.splice(0..0, tail);
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Changes one place of a JSON tree: another value, a value of another place, a lost or a new field.
fn restructured(value: &mut Value, donor: &Value, dice: &mut SeededRng) {
    let stop = dice.chance(25);
    match value {
        Value::Object(map) if !map.is_empty() && !stop => {
            let key = map.keys().nth(dice.below(map.len())).cloned().unwrap();
            match dice.below(20) {
                0 => {
                    map.shift_remove(&key);
                }
                1 => {
                    let value = map.shift_remove(&key).unwrap();
                    let names = ["id", "status", "$status", "$form", "odd", "", "meta", "steps"];
                    map.insert((*dice.pick(&names)).to_owned(), value);
                }
                _ => restructured(map.get_mut(&key).unwrap(), donor, dice),
            }
        }
        Value::Array(list) if !list.is_empty() && !stop => {
            let at = dice.below(list.len());
            if dice.chance(8) {
                let copy = list[at].clone();
                list.push(copy);
            } else {
                restructured(&mut list[at], donor, dice);
            }
        }
        _ => *value = strange(donor, dice),
    }
}

fn strange(donor: &Value, dice: &mut SeededRng) -> Value {
    match dice.below(16) {
        0 => Value::Null,
        1 => true.into(),
        2 => 0.into(),
        3 => (-1).into(),
        4 => u64::MAX.into(),
        5 => 1e300.into(),
        6 => 12.5.into(),
        7 => "".into(),
        8 => "2026-13-45T99:00:00+00:00Z".into(),
        9 => "done".into(),
        10 => "a\u{0}b".into(),
        11 => Value::Array(Vec::new()),
        12 => Value::Object(Map::new()),
        13 => json!(["x", 1, null, {"agent_id": "a", "step_id": "s"}]),
        14 => "é🎉 \"quoted\" `code`\n- [ ] line".into(),
        _ => {
            let mut here = donor;
            while let Some(inner) = match here {
                Value::Object(map) => map.values().nth(dice.below(map.len())),
                Value::Array(list) => list.get(dice.below(list.len())),
                _ => None,
            } {
                here = inner;
                if dice.chance(30) {
                    break;
                }
            }
            here.clone()
        }
    }
}

#[test]
fn no_reader_panics_on_damaged_text_and_what_it_reads_is_stable() {
    let texts = corpus();
    let mut dice = SeededRng::new(2026);
    for _ in 0..rounds() {
        let (dialect, text) = dice.pick(&texts).clone();
        let other = dice.pick(&texts).1.clone();
        check(&damaged(&text, &other, &mut dice), dialect);
    }
}

#[test]
fn no_reader_panics_on_odd_values_and_what_it_reads_is_stable() {
    let trees: Vec<(Dialect, Value)> = corpus()
        .into_iter()
        .filter_map(|(dialect, text)| Some((dialect, serde_json::from_str(&text).ok()?)))
        .collect();
    let mut dice = SeededRng::new(77);
    for _ in 0..rounds() {
        let (dialect, mut tree) = dice.pick(&trees).clone();
        let donor = dice.pick(&trees).1.clone();
        for _ in 0..=dice.below(2) {
            restructured(&mut tree, &donor, &mut dice);
        }
        check(&tree.to_string(), dialect);
    }
}

#[test]
fn every_reader_meets_every_other_format() {
    for (_, text) in corpus() {
        for dialect in READERS {
            check(&text, dialect);
        }
    }
}

#[test]
fn no_reader_is_led_too_deep() {
    for (open, close) in [
        ("[", "]"),
        (r#"{"a":"#, "}"),
        (r#"{"tasks":[{"id":"a","x":"#, "}]}"),
        ("{", ""),
        ("> ", ""),
        ("  - [ ] a\n  ", ""),
    ] {
        for depth in [100, 127, 128, 129, 10_000] {
            let text = format!("{}1{}", open.repeat(depth), close.repeat(depth));
            for dialect in READERS {
                check(&text, dialect);
            }
        }
    }
}
