//! Tokens on their own: who makes them, what is kept, what is found.

use std::os::unix::fs::PermissionsExt;

use waypost_core::{Actor, Timestamp};
use waypost_http::{TOKENS_MAX, Token, TokenError, Tokens};

use super::Folder;

fn at() -> Timestamp {
    Timestamp::from_micros(1_767_225_600_000_000)
}

#[test]
fn a_token_is_found_by_its_text_and_only_its_digest_is_kept() {
    let folder = Folder::new();
    let tokens = Tokens::of(folder.path());
    let (token, text) = tokens.make("planner", &Actor::person("ada"), at()).unwrap();
    assert_eq!(tokens.find(&text).unwrap().as_ref(), Some(&token));
    let kept = std::fs::read_to_string(tokens.path()).unwrap();
    assert!(!kept.contains(&text) && !kept.contains(text.trim_start_matches("waypost_")), "{kept}");
    let mode = std::fs::metadata(tokens.path()).unwrap().permissions().mode();
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
    let (here, there) = (Tokens::of(folder.path()), Tokens::of(folder.path()));
    let ada = Actor::person("ada");
    let (token, text) = here.make("planner", &ada, at()).unwrap();
    let (other, _) = here.make("planner", &ada, at()).unwrap();
    assert!(there.find(&text).unwrap().is_some());
    assert_eq!(here.revoke(&token.id, &ada).unwrap(), token);
    assert_eq!(there.find(&text).unwrap(), None);
    assert_eq!(there.list().unwrap(), [other]);
    assert!(matches!(here.revoke(&token.id, &ada), Err(TokenError::NotOne(0, _))));
    assert!(matches!(here.revoke("", &ada), Err(TokenError::NotOne(1, _))), "nothing names none");
}

#[test]
fn only_a_person_makes_and_revokes_tokens() {
    let folder = Folder::new();
    let tokens = Tokens::of(folder.path());
    let (token, _) = tokens.make("planner", &Actor::person("ada"), at()).unwrap();
    for other in [Actor::agent("planner"), Actor::worker("w"), Actor::system("lease")] {
        assert!(matches!(tokens.make("planner", &other, at()), Err(TokenError::OnlyAPerson(_))));
        assert!(matches!(tokens.revoke(&token.id, &other), Err(TokenError::OnlyAPerson(_))));
    }
    assert_eq!(tokens.list().unwrap(), [token]);
}

#[test]
fn tokens_made_at_the_same_time_are_all_kept() {
    let folder = Folder::new();
    std::thread::scope(|scope| {
        for agent in 0..8 {
            let tokens = Tokens::of(folder.path());
            scope.spawn(move || {
                for _ in 0..5 {
                    tokens.make(&format!("agent-{agent}"), &Actor::person("ada"), at()).unwrap();
                }
            });
        }
    });
    assert_eq!(Tokens::of(folder.path()).list().unwrap().len(), 40);
}

#[test]
fn there_are_so_many_tokens_and_not_one_more() {
    let folder = Folder::new();
    let tokens = Tokens::of(folder.path());
    let ada = Actor::person("ada");
    let (token, _) = tokens.make("planner", &ada, at()).unwrap();
    let all: Vec<Token> = vec![token; TOKENS_MAX - 1];
    std::fs::write(tokens.path(), serde_json::json!({ "tokens": all }).to_string()).unwrap();
    tokens.make("last", &ada, at()).unwrap();
    assert!(matches!(tokens.make("one more", &ada, at()), Err(TokenError::TooMany)));
}

#[test]
fn a_file_that_is_no_list_of_tokens_is_named_and_left_alone() {
    let folder = Folder::new();
    let tokens = Tokens::of(folder.path());
    std::fs::write(tokens.path(), "{\"tokens\": 7}").unwrap();
    let said = tokens.list().unwrap_err().to_string();
    assert!(said.contains("tokens.json is not a list of tokens"), "{said}");
    assert!(tokens.make("planner", &Actor::person("ada"), at()).is_err());
    assert_eq!(std::fs::read_to_string(tokens.path()).unwrap(), "{\"tokens\": 7}");
}
