//! Which content of which folder is trusted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use waypost_account::{
    Account, Records, RemoteTrust, SETTINGS_BYTES_MAX, TrustRecord, TrustRecords, TrustState, trust_digest,
};
use waypost_core::{Actor, Timestamp};
use waypost_testkit::SeededRng;

use crate::{Scratch, set_mode};

/// How many mutated records are read.
const MUTATIONS: usize = 500;

fn files(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
    pairs.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect()
}

fn record(folder: &Path, files: &BTreeMap<String, Vec<u8>>) -> TrustRecord {
    let at = Timestamp::parse("2026-11-16T03:40:12Z").unwrap();
    TrustRecord::new(folder, files, at, Actor::person("ada"), "terminal")
}

#[test]
fn the_content_that_was_trusted_is_trusted_and_nothing_else() {
    let scratch = Scratch::new();
    let records = TrustRecords::of(&scratch.account);
    let folder = Path::new("/srv/plans");
    let both = files(&[(".waypost/config.toml", "a"), (".waypost/todo.json", "b")]);
    let check = |folder: &Path, files: &BTreeMap<String, Vec<u8>>, expected: TrustState| {
        assert_eq!(records.state(folder, files).unwrap(), expected);
    };
    check(folder, &files(&[]), TrustState::NothingToTrust);
    check(folder, &both, TrustState::NotTrusted);
    assert!(records.write(&record(folder, &both)).unwrap());
    check(folder, &both, TrustState::Trusted);
    check(Path::new("/srv/other"), &both, TrustState::NotTrusted);
    let changed = |names: &[&str]| TrustState::Changed(names.iter().map(|name| (*name).to_owned()).collect());
    let edited = files(&[(".waypost/config.toml", "A"), (".waypost/todo.json", "b")]);
    check(folder, &edited, changed(&[".waypost/config.toml"]));
    check(folder, &files(&[(".waypost/config.toml", "a")]), changed(&[".waypost/todo.json"]));
    let more = files(&[(".waypost/config.toml", "a"), (".waypost/todo.json", "b"), ("prompt.md", "c")]);
    check(folder, &more, changed(&["prompt.md"]));
    assert!(records.remove(folder).unwrap());
    assert!(!records.remove(folder).unwrap());
    check(folder, &both, TrustState::NotTrusted);
}

#[test]
fn the_digest_separates_files_and_their_names() {
    let different = [
        files(&[("a", "b")]),
        files(&[("b", "a")]),
        files(&[("a", "b"), ("c", "")]),
        files(&[("ac", "b")]),
        files(&[]),
    ];
    let digests: std::collections::BTreeSet<String> = different.iter().map(trust_digest).collect();
    assert_eq!(digests.len(), different.len());
    assert!(digests.iter().all(|digest| digest.starts_with("sha256:") && digest.len() == 71));
}

#[test]
fn a_record_has_this_form_and_keeps_what_it_does_not_know() {
    let scratch = Scratch::new();
    let records = TrustRecords::of(&scratch.account);
    let folder = Path::new("/srv/plans");
    let content = files(&[(".waypost/config.toml", "a")]);
    records.write(&record(folder, &content)).unwrap();
    let file = scratch.account.record_file(Records::Trust, folder).unwrap();
    let text = fs::read_to_string(&file).unwrap();
    let expected = format!(
        "{{\n  \"path\": \"/srv/plans\",\n  \"digest\": \"{}\",\n  \"files\": [\n    [\n      \".waypost/config.toml\",\n      \
         \"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb\"\n    ]\n  ],\n  \
         \"trusted_at\": \"2026-11-16T03:40:12Z\",\n  \"by\": \"person:ada\",\n  \"via\": \"terminal\"\n}}\n",
        trust_digest(&content)
    );
    assert_eq!(text, expected);
    fs::write(&file, text.replace("\"via\"", "\"later\": {\"a\": 1},\n  \"via\"")).unwrap();
    let read = records.read(folder).unwrap().unwrap();
    assert_eq!(read.unknown["later"]["a"], 1);
    records.write(&read).unwrap();
    assert!(fs::read_to_string(&file).unwrap().contains("\"later\""));
}

#[test]
fn a_record_keeps_what_was_trusted_up_to_a_limit() {
    let scratch = Scratch::new();
    let records = TrustRecords::of(&scratch.account);
    let folder = Path::new("/srv/plans");
    let content = files(&[("a", "b")]);
    for (bytes, kept) in [(SETTINGS_BYTES_MAX, 1), (SETTINGS_BYTES_MAX + 1, 0)] {
        let settings = BTreeMap::from([("a".to_owned(), "x".repeat(bytes - 1))]);
        assert!(records.write(&record(folder, &content).with_settings(settings)).unwrap());
        let read = records.read(folder).unwrap().unwrap();
        assert_eq!(read.settings.len(), kept);
        assert_eq!(read.changes(&files(&[("a", "c")])), ["a"]);
    }
}

#[test]
fn records_are_listed_by_path_and_a_bad_one_is_an_error() {
    let scratch = Scratch::new();
    let records = TrustRecords::of(&scratch.account);
    assert_eq!(records.list().unwrap(), []);
    let content = files(&[("a", "b")]);
    for folder in ["/srv/b", "/srv/a"] {
        records.write(&record(Path::new(folder), &content)).unwrap();
    }
    let listed: Vec<String> = records.list().unwrap().into_iter().map(|record| record.path).collect();
    assert_eq!(listed, ["/srv/a", "/srv/b"]);
    let file = scratch.account.record_file(Records::Trust, Path::new("/srv/a")).unwrap();
    // A record that was copied to another folder's place does not count there.
    let other = scratch.account.record_file(Records::Trust, Path::new("/srv/c")).unwrap();
    fs::copy(&file, &other).unwrap();
    assert_eq!(records.read(Path::new("/srv/c")).unwrap(), None);
    set_mode(&file, 0o666);
    assert_eq!(records.state(Path::new("/srv/a"), &content).unwrap_err().code(), "insecure_file");
    set_mode(&file, 0o600);
    fs::write(&file, "{}").unwrap();
    let said = records.list().unwrap_err().to_string();
    assert!(said.contains("this is not a trust record"), "{said}");
    let homeless = Account { home: None, ..scratch.account.clone() };
    let records = TrustRecords::of(&homeless);
    assert!(!records.write(&record(Path::new("/srv/a"), &content)).unwrap());
    assert_eq!(records.state(Path::new("/srv/a"), &content).unwrap(), TrustState::NotTrusted);
}

#[test]
fn a_mutated_record_is_an_error_or_another_record() {
    let scratch = Scratch::new();
    let records = TrustRecords::of(&scratch.account);
    let (folder, content) = (Path::new("/srv/plans"), files(&[("a", "b")]));
    records.write(&record(folder, &content)).unwrap();
    let file = scratch.account.record_file(Records::Trust, folder).unwrap();
    let text = fs::read(&file).unwrap();
    let rng = &mut SeededRng::new(7);
    for _ in 0..MUTATIONS {
        let mut mutated = text.clone();
        let at = rng.below(mutated.len());
        mutated[at] = rng.bits() as u8;
        fs::write(&file, &mutated).unwrap();
        let digest =
            serde_json::from_slice::<serde_json::Value>(&mutated).unwrap_or_default()["digest"].clone();
        if let Ok(state) = records.state(folder, &content) {
            let is_same = digest == trust_digest(&content);
            assert!(state != TrustState::Trusted || is_same, "{}", String::from_utf8_lossy(&mutated));
        }
    }
}

#[test]
fn a_remote_is_trusted_by_its_address_and_reference() {
    let scratch = Scratch::new();
    let read = |address: &str, reference: &str| RemoteTrust::read(&scratch.account, address, reference);
    let record = RemoteTrust {
        address: "https://example.org/a.git".to_owned(),
        reference: "refs/heads/waypost".to_owned(),
        trusted_at: Timestamp::parse("2026-11-16T03:40:12Z").unwrap(),
        by: Actor::person("ada"),
        via: "terminal".to_owned(),
        unknown: serde_json::Map::new(),
    };
    assert_eq!(read(&record.address, &record.reference).unwrap(), None);
    assert!(record.write(&scratch.account).unwrap());
    assert_eq!(read(&record.address, &record.reference).unwrap(), Some(record.clone()));
    assert_eq!(read("https://example.org/b.git", &record.reference).unwrap(), None);
    assert_eq!(read(&record.address, "refs/heads/other").unwrap(), None);
    // A record that was copied to another remote's place does not count there.
    let folder = scratch.account.records_folder(Records::Remotes).unwrap();
    let file = fs::read_dir(&folder).unwrap().next().unwrap().unwrap().path();
    let other = scratch.account.record_file(Records::Remotes, Path::new("b\nrefs/heads/waypost")).unwrap();
    fs::copy(file, other).unwrap();
    assert_eq!(read("b", "refs/heads/waypost").unwrap(), None);
    assert!(!record.write(&Account::of_process()).unwrap());
}
