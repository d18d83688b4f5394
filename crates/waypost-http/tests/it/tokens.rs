//! Tokens on their own: who makes them, what is kept, what is found.

use std::os::unix::fs::PermissionsExt;

use waypost_account::{TrustRecord, TrustRecords};
use waypost_core::{Actor, Timestamp};
use waypost_http::{NewToken, Role, TOKENS_MAX, Token, TokenError, TokenFiles, Tokens};
use waypost_service::{Caller, Presence};

use super::{Folder, ada, for_agent, token_files, tokens_in};

fn at() -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000)
}

#[test]
fn a_token_is_found_by_its_text_and_only_its_digest_is_kept() {
    let folder = Folder::new();
    let tokens = tokens_in(folder.path());
    let (token, text) = tokens.make(for_agent("planner"), &ada(), at()).unwrap();
    assert_eq!(tokens.find(&text).unwrap().as_ref(), Some(&token));
    let kept = std::fs::read_to_string(tokens.path().unwrap()).unwrap();
    assert!(!kept.contains(&text) && !kept.contains(text.trim_start_matches("waypost_")), "{kept}");
    let mode = std::fs::metadata(tokens.path().unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for wrong in
        ["", "waypost_", &text[..text.len() - 1], &format!("{text}0"), &token.sha256, &"x".repeat(10_000)]
    {
        assert_eq!(tokens.find(wrong).unwrap(), None, "{wrong}");
    }
}

#[test]
fn a_revoked_token_is_found_no_more_not_even_by_who_knew_it() {
    let folder = Folder::new();
    let (here, there) = (tokens_in(folder.path()), tokens_in(folder.path()));
    let person = Actor::person("ada");
    let (token, text) = here.make(for_agent("planner"), &ada(), at()).unwrap();
    let (other, _) = here.make(for_agent("planner"), &ada(), at()).unwrap();
    assert!(there.find(&text).unwrap().is_some());
    assert_eq!(here.revoke(&token.id, &person).unwrap(), token);
    assert_eq!(there.find(&text).unwrap(), None);
    assert_eq!(there.list().unwrap(), [other]);
    assert!(matches!(here.revoke(&token.id, &person), Err(TokenError::NotOne(0, _))));
    assert!(matches!(here.revoke("", &person), Err(TokenError::NotOne(1, _))), "nothing names none");
}

#[test]
fn only_a_person_makes_and_revokes_tokens() {
    let folder = Folder::new();
    let tokens = tokens_in(folder.path());
    let (token, _) = tokens.make(for_agent("planner"), &ada(), at()).unwrap();
    for other in [Actor::agent("planner"), Actor::worker("w"), Actor::system("lease")] {
        assert!(matches!(
            tokens.make(for_agent("planner"), &Caller::new(other.clone()), at()),
            Err(TokenError::OnlyAPerson(_))
        ));
        assert!(matches!(tokens.revoke(&token.id, &other), Err(TokenError::OnlyAPerson(_))));
    }
    assert_eq!(tokens.list().unwrap(), [token]);
}

#[test]
fn tokens_made_at_the_same_time_are_all_kept() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for agent in 0..8 {
            let tokens = tokens_in(folder.path());
            scope.spawn(move || {
                for _ in 0..5 {
                    tokens.make(for_agent(&format!("agent-{agent}")), &ada(), at()).unwrap();
                }
            });
        }
    });
    assert_eq!(tokens_in(folder.path()).list().unwrap().len(), 40);
}

#[test]
fn there_are_so_many_tokens_and_not_one_more() {
    let folder = Folder::new();
    let tokens = tokens_in(folder.path());
    let (token, _) = tokens.make(for_agent("planner"), &ada(), at()).unwrap();
    let all: Vec<Token> = vec![token; TOKENS_MAX - 1];
    std::fs::write(tokens.path().unwrap(), serde_json::json!({ "tokens": all }).to_string()).unwrap();
    tokens.make(for_agent("last"), &ada(), at()).unwrap();
    assert!(matches!(tokens.make(for_agent("one more"), &ada(), at()), Err(TokenError::TooMany)));
}

#[test]
fn a_file_that_is_no_list_of_tokens_is_named_and_left_alone() {
    let folder = Folder::new();
    let tokens = tokens_in(folder.path());
    std::fs::create_dir_all(tokens.path().unwrap().parent().unwrap()).unwrap();
    std::fs::write(tokens.path().unwrap(), "{\"tokens\": 7}").unwrap();
    let said = tokens.list().unwrap_err().to_string();
    assert!(said.contains(".json is not a list of tokens"), "{said}");
    assert!(tokens.make(for_agent("planner"), &ada(), at()).is_err());
    assert_eq!(std::fs::read_to_string(tokens.path().unwrap()).unwrap(), "{\"tokens\": 7}");
}

#[test]
fn a_token_that_can_approve_is_made_by_a_present_person() {
    let folder = Folder::new();
    let tokens = tokens_in(folder.path());
    let person = NewToken { role: Role::Person, ..for_agent("ada") };
    let asks = NewToken { elicitation: true, ..for_agent("planner") };
    let named = Caller::new(Actor::person("bob"));
    let unattended = Caller::new(Actor::person("ada")).present(Presence::unattended());
    for new in [person, asks] {
        for by in [&named, &unattended] {
            assert!(matches!(tokens.make(new, by, at()), Err(TokenError::NeedsTerminal)));
        }
        for by in [Actor::agent("planner"), Actor::worker("w")] {
            assert!(matches!(tokens.make(new, &Caller::new(by), at()), Err(TokenError::OnlyAPerson(_))));
        }
    }
    assert_eq!(tokens.list().unwrap(), []);
    tokens.make(for_agent("planner"), &unattended, at()).unwrap();
    tokens.make(person, &ada(), at()).unwrap();
    assert!(tokens.make(asks, &ada(), at()).unwrap().0.elicitation);
}

/// Writes tokens to a file, as an earlier version or whoever can write there.
fn write(file: &std::path::Path, tokens: &[Token]) {
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, serde_json::json!({ "tokens": tokens }).to_string()).unwrap();
}

/// A token of another folder, and its text.
fn foreign(new: NewToken<'_>) -> (Token, String) {
    tokens_in(Folder::new().path()).make(new, &ada(), at()).unwrap()
}

#[test]
fn of_a_trusted_workspaces_old_file_everything_counts_but_what_can_approve() {
    let folder = Folder::new();
    let files = token_files(folder.path());
    let tokens = Tokens::new(files.clone());
    assert!(tokens.warnings().is_empty());
    let (person, persons_text) = foreign(NewToken { role: Role::Person, ..for_agent("ada") });
    let (agent, text) = foreign(NewToken { elicitation: true, ..for_agent("planner") });
    write(&files.old, &[person, agent.clone()]);
    assert_eq!(tokens.find(&text).unwrap(), None, "it may have come with a clone");
    assert!(tokens.warnings()[0].contains("nobody has trusted this workspace"), "{:?}", tokens.warnings());
    let root = files.old.parent().unwrap().parent().unwrap();
    let record =
        TrustRecord::new(root, &std::collections::BTreeMap::new(), at(), Actor::person("ada"), "terminal");
    assert!(TrustRecords::of(&files.account).write(&record).unwrap());
    assert_eq!(tokens.find(&persons_text).unwrap(), None);
    assert_eq!(tokens.find(&text).unwrap(), Some(Token { elicitation: false, ..agent.clone() }));
    let warnings = tokens.warnings().join("\n");
    assert!(warnings.contains("make a new one: waypost token new --role person"), "{warnings}");
    let refused = tokens.revoke(&agent.id, &Actor::person("ada"));
    assert!(matches!(refused, Err(TokenError::NotOurs(file)) if file == files.old));
    std::fs::write(&files.old, "nonsense").unwrap();
    let (own, own_text) = tokens.make(for_agent("planner"), &ada(), at()).unwrap();
    assert_eq!(tokens.find(&own_text).unwrap(), Some(own), "others get in although it is spoilt");
    assert!(tokens.warnings()[0].contains("is not a list of tokens"), "{:?}", tokens.warnings());
    // A pipe there keeps nobody waiting.
    std::fs::remove_file(&files.old).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(&files.old).status().unwrap().success());
    assert_eq!(tokens.find(&text).unwrap(), None);
}

#[test]
fn the_operators_tokens_count_unless_others_can_write_the_file() {
    let folder = Folder::new();
    let files = token_files(folder.path());
    let (person, text) = foreign(NewToken { role: Role::Person, ..for_agent("ada") });
    write(&files.operator, std::slice::from_ref(&person));
    let tokens = Tokens::new(files.clone());
    assert_eq!(tokens.find(&text).unwrap(), Some(person));
    std::fs::set_permissions(&files.operator, std::fs::Permissions::from_mode(0o666)).unwrap();
    let tokens = Tokens::new(files);
    assert_eq!(tokens.find(&text).unwrap(), None);
    assert!(tokens.warnings()[0].contains("others can write"), "{:?}", tokens.warnings());
}

#[test]
fn an_account_without_a_home_keeps_tokens_only_while_the_process_runs() {
    let folder = Folder::new();
    let tokens = Tokens::new(TokenFiles { own: None, sessions: None, ..token_files(folder.path()) });
    assert!(matches!(tokens.make(for_agent("planner"), &ada(), at()), Err(TokenError::NoHome)));
    let lent = tokens.lend(Role::Person, "ada", &Actor::person("ada"), at()).unwrap();
    assert_eq!(tokens.list().unwrap(), [lent]);
}

#[test]
fn tokens_made_before_the_store_are_found_after_it_and_by_every_path_to_it() {
    let folder = Folder::new();
    let TokenFiles { account, own, .. } = token_files(folder.path());
    let real = folder.path().join("work/.waypost");
    std::os::unix::fs::symlink(&real, folder.path().join("link")).unwrap();
    std::fs::write(real.join("waypost.db"), "").unwrap();
    let at = |store: String| TokenFiles::of(&account, &store, &real).own;
    assert_eq!(at(format!("sqlite:{}", real.join("waypost.db").display())), own);
    assert_eq!(at(format!("sqlite:{}", folder.path().join("link/waypost.db").display())), own);
    assert_ne!(at(format!("sqlite:{}", real.join("other.db").display())), own);
    let secret = |password: &str| at(format!("postgres://ada:{password}@db/plans"));
    assert_eq!(secret("one"), secret("two"));
    assert_ne!(secret("one"), at("postgres://ada@db/others".to_owned()));
}
