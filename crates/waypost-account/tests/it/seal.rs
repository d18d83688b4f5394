//! Messages and their seals.

use std::fs;

use waypost_account::{Account, Act, MESSAGE_BYTES_MAX, Message, Scope, SealKey, Signer};
use waypost_core::Timestamp;
use waypost_core::canonical::sha256;
use waypost_text::hex;

use crate::{Scratch, mode, set_mode};

fn approval<'a>() -> Message<'a> {
    let at = Timestamp::parse("2026-11-16T03:40:12.5Z").unwrap();
    Message {
        scope: Scope::Store {
            id: "7f0c00112233445566778899aabbccdd",
            place: None,
            version: 41,
            history: sha256(b"history"),
        },
        plan: "kq3",
        digest: sha256(b"digest"),
        act: Act::Approval { note: Some("go"), expires: Some(at.plus_seconds(30 * 86_400)), gates: None },
        at,
        nonce: [0x9b; 16],
        signer: Signer::Principal("ada@example.org"),
    }
}

#[test]
fn an_approval_is_these_lines() {
    let message = approval();
    assert_eq!(
        message.encode().unwrap(),
        "waypost-approval/1\n\
         store 7f0c00112233445566778899aabbccdd\n\
         plan kq3\n\
         version 41\n\
         digest sha256:0bf474896363505e5ea5e5d6ace8ebfb13a760a409b1fb467d428fc716f9f284\n\
         history sha256:259aa8ef98a8b91de574cd904138ef643240c23080cf24da4793a6f10a43fa9d\n\
         note sha256:4cd0e21a9a0795a14ec9aa5f0e7d1abff0492565770e43eafdf1e3e8afed1f33\n\
         approved-at 2026-11-16T03:40:12Z\n\
         expires 2026-12-16T03:40:12Z\n\
         nonce 9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b\n\
         signer ada@example.org\n"
    );
    let portable = Message {
        scope: Scope::Portable,
        act: Act::Approval { note: None, expires: None, gates: None },
        signer: Signer::Account("1000@host"),
        ..message
    };
    let text = portable.encode().unwrap();
    for line in ["store any", "version any", "history any", "note none", "expires never", "account 1000@host"]
    {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
}

#[test]
fn an_approval_with_gates_of_other_plans_is_bound_to_them() {
    let act = |gates| Act::Approval { note: None, expires: None, gates };
    let text = |gates| Message { act: act(gates), ..approval() }.encode().unwrap();
    let with = text(Some("gates/g deploy\n"));
    assert!(with.starts_with("waypost-approval/2\n"), "{with}");
    assert!(with.contains(&format!("\ngates sha256:{}\n", hex(&sha256(b"gates/g deploy\n")))), "{with}");
    assert_ne!(with, text(Some("gates/h deploy\n")));
    assert!(text(None).starts_with("waypost-approval/1\n") && !text(None).contains("gates"));
}

#[test]
fn an_approval_in_files_is_bound_to_their_place() {
    let scope = |place| Scope::Store { id: "7f0c", place, version: 41, history: sha256(b"history") };
    let gate = Act::Gate { task: "g", attempt: 1, outcome: "done", answer: None };
    for (act, first) in [(approval().act, "waypost-approval/3\n"), (gate, "waypost-gate/2\n")] {
        let text = |place| Message { act, scope: scope(place), ..approval() }.encode().unwrap();
        assert!(text(Some("ab")).starts_with(first) && text(Some("ab")).contains("\nplace ab\n"));
        assert_ne!(text(Some("ab")), text(Some("cd")));
        assert!(!text(None).contains("place"));
    }
}

#[test]
fn a_gate_names_its_task_attempt_outcome_and_answer() {
    let act = Act::Gate { task: "gäte 100%\n", attempt: 2, outcome: "done", answer: Some("yes") };
    let text = Message { act, ..approval() }.encode().unwrap();
    let keys: Vec<&str> =
        text.lines().map(|line| line.split_once(' ').map_or(line, |(key, _)| key)).collect();
    let expected = [
        "waypost-gate/1",
        "store",
        "plan",
        "version",
        "digest",
        "history",
        "task",
        "attempt",
        "outcome",
        "answer",
        "approved-at",
        "nonce",
        "signer",
    ];
    assert_eq!(keys, expected);
    assert!(text.contains("task g%C3%A4te 100%25%0A\n"), "{text}");
    assert!(text.is_ascii());
}

#[test]
fn a_message_has_at_most_so_many_bytes() {
    let length = |signer: &str| Message { signer: Signer::Principal(signer), ..approval() }.encode();
    let rest = length("").unwrap().len();
    assert_eq!(length(&"a".repeat(MESSAGE_BYTES_MAX - rest)).unwrap().len(), MESSAGE_BYTES_MAX);
    let said = length(&"a".repeat(MESSAGE_BYTES_MAX - rest + 1)).unwrap_err().to_string();
    assert_eq!(said, "the message to sign has 1025 bytes; the maximum is 1024");
}

#[test]
fn a_seal_is_an_hmac_that_only_the_same_key_and_message_have() {
    let scratch = Scratch::new();
    let file = scratch.home().join("shared.key");
    scratch.account.write(&file, b"0123456789abcdef0123456789abcdef").unwrap();
    let key = SealKey::read(&scratch.account, &file).unwrap().unwrap();
    let message = "plan";
    let seal = key.seal(message);
    // As `openssl dgst -sha256 -hmac` computes it.
    assert_eq!(seal, "e367852014d5220bb88fbb1162086d9d6887b1cef408e10701975f25794c5dc8");
    assert!(key.verify(message, &seal));
    for wrong in ["", "00", &seal[1..], &seal.to_uppercase(), &format!("{seal}0"), &"0".repeat(64)] {
        assert!(!key.verify(message, wrong), "{wrong}");
    }
    assert!(!key.verify("plaN", &seal));
    scratch.account.write(&file, &[2; 32]).unwrap();
    let other = SealKey::read(&scratch.account, &file).unwrap().unwrap();
    assert!(!other.verify(message, &seal));
}

#[test]
fn the_key_is_made_once_and_only_the_account_can_read_it() {
    let scratch = Scratch::new();
    let file = scratch.account.seal_key_file().unwrap();
    let seal = SealKey::of(&scratch.account).unwrap().seal("plan");
    assert_eq!((mode(&file), fs::read(&file).unwrap().len()), (0o600, 32));
    assert!(SealKey::of(&scratch.account).unwrap().verify("plan", &seal));
    let elsewhere = Scratch::new();
    assert!(!SealKey::of(&elsewhere.account).unwrap().verify("plan", &seal), "each account has its own");

    set_mode(&file, 0o660);
    assert_eq!(SealKey::of(&scratch.account).err().map(|error| error.code()), Some("insecure_file"));
    set_mode(&file, 0o600);
    fs::write(&file, "short").unwrap();
    let said = SealKey::of(&scratch.account).err().unwrap().to_string();
    assert!(said.ends_with("a seal key has 32 bytes, and this has 5"), "{said}");
}

#[test]
fn at_the_first_use_by_several_all_get_the_same_key() {
    let scratch = Scratch::new();
    let account = &scratch.account;
    let seals: Vec<String> = std::thread::scope(|scope| {
        let makers: Vec<_> =
            (0..8).map(|_| scope.spawn(|| SealKey::of(account).unwrap().seal("plan"))).collect();
        makers.into_iter().map(|maker| maker.join().unwrap()).collect()
    });
    assert!(seals.iter().all(|seal| *seal == seals[0]));
}

#[test]
fn an_account_without_a_home_has_a_key_for_the_life_of_the_process() {
    let scratch = Scratch::new();
    let homeless = Account { home: None, ..scratch.account.clone() };
    let seal = SealKey::of(&homeless).unwrap().seal("plan");
    assert!(SealKey::of(&homeless).unwrap().verify("plan", &seal));
}
