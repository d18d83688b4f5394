use serde_json::json;

use super::super::hosts::FIELDS;
use super::*;

fn entry() -> Entry {
    let arguments = vec!["mcp".to_owned()];
    Entry { launcher: Launcher::new(NAME), launcher_said: false, arguments, fields: FIELDS }
}

fn named(command: &str) -> Entry {
    Entry { launcher: Launcher::new(command), launcher_said: true, ..entry() }
}

/// Merges, then checks that a second merge changes nothing and that all other content is unchanged.
fn check_json(old: &str, entry: &Entry, expected: &str) {
    let merged = json(Some(old), "mcpServers", entry);
    assert_eq!(merged, Ok(Merged::Text(expected.to_owned())));
    assert_eq!(json(Some(expected), "mcpServers", entry), Ok(Merged::Same));
    let mut before: Value = serde_json::from_str(old).unwrap();
    let mut after: Value = serde_json::from_str(expected).unwrap();
    for value in [&mut before, &mut after] {
        if let Some(servers) = value.get_mut("mcpServers").and_then(Value::as_object_mut) {
            servers.shift_remove(NAME);
        }
    }
    if before.get("mcpServers").is_none() {
        after.as_object_mut().unwrap().shift_remove("mcpServers");
    }
    assert_eq!(before.to_string(), after.to_string(), "all else is as it was, in the same order");
}

#[test]
fn a_new_file_has_our_entry_alone() {
    let whole = "{\n  \"mcpServers\": {\n    \"waypost\": {\n      \"command\": \"waypost\",\n      \"args\": [\"mcp\"]\n    }\n  }\n}\n";
    for old in [None, Some(""), Some(" \n")] {
        assert_eq!(json(old, "mcpServers", &entry()), Ok(Merged::Text(whole.to_owned())));
    }
    check_json("{}", &entry(), whole.trim_end());
}

#[test]
fn other_servers_keys_order_and_layout_stay() {
    let old = r#"{
    "zebra": [1, 2,   3],
    "mcpServers": {
        "other": { "command": "npx", "args": ["-y", "other"], "env": {"A": "}{"} }
    },
    "apple": "\"mcpServers\": {}"
}
"#;
    let new = r#"{
    "zebra": [1, 2,   3],
    "mcpServers": {
        "other": { "command": "npx", "args": ["-y", "other"], "env": {"A": "}{"} },
        "waypost": {
            "command": "waypost",
            "args": ["mcp"]
        }
    },
    "apple": "\"mcpServers\": {}"
}
"#;
    check_json(old, &entry(), new);
}

#[test]
fn a_file_in_one_line_and_one_without_servers_are_merged() {
    let one = "{\"mcpServers\":{\"a\":{}},\"b\":1}\n";
    let merged = "{\"mcpServers\":{\n    \"a\":{},\n    \"waypost\": {\n      \"command\": \"waypost\",\n      \"args\": [\"mcp\"]\n    }\n  },\"b\":1}\n";
    check_json(one, &entry(), merged);
    let tabs = "{\n\t\"theme\": \"dark\"\n}";
    let merged = "{\n\t\"theme\": \"dark\",\n\t\"mcpServers\": {\n\t\t\"waypost\": {\n\t\t\t\"command\": \"waypost\",\n\t\t\t\"args\": [\"mcp\"]\n\t\t}\n\t}\n}";
    check_json(tabs, &entry(), merged);
}

#[test]
fn an_entry_of_ours_is_kept_unless_another_program_is_asked_for() {
    let old = r#"{"mcpServers": {"waypost": {"command": "waypost", "args": ["mcp"], "env": {"A": "1"}}}}"#;
    assert_eq!(json(Some(old), "mcpServers", &entry()), Ok(Merged::Same), "more fields are theirs");
    let own =
        r#"{"mcpServers": {"waypost": {"args": ["mcp", "--toolset", "jaato"], "command": "/opt/waypost"}}}"#;
    let kept = "its entry \"waypost\" starts \"/opt/waypost mcp --toolset jaato\", and was not changed";
    let advice = "; with --command waypost --yes it starts \"waypost mcp --toolset jaato\"";
    assert_eq!(json(Some(own), "mcpServers", &entry()), Ok(Merged::Kept(format!("{kept}{advice}"))));
    let changed = own.replace("/opt/waypost", "/usr/bin/waypost");
    let merged = json(Some(own), "mcpServers", &named("/usr/bin/waypost"));
    assert_eq!(merged, Ok(Merged::Text(changed.clone())), "only the program changes");
    let kept = kept.replace("/opt/waypost", "/usr/bin/waypost");
    assert_eq!(json(Some(&changed), "mcpServers", &named("/usr/bin/waypost")), Ok(Merged::Kept(kept)));
    let remote = r#"{"mcpServers": {"waypost": {"url": "http://localhost:7777/mcp"}}}"#;
    let kept = "its entry \"waypost\" starts no program, and was not changed".to_owned();
    assert_eq!(json(Some(remote), "mcpServers", &entry()), Ok(Merged::Kept(kept.clone())));
    let Err(left) = json(Some(remote), "mcpServers", &named("/usr/bin/waypost")) else { panic!("{remote}") };
    assert_eq!(left.why, format!("{kept}; put this in its place yourself"));
    assert!(left.paste.contains("/usr/bin/waypost"), "{}", left.paste);
    let remote = "[mcp_servers.waypost]\nurl = \"http://localhost:7777/mcp\"\n";
    assert_eq!(toml(Some(remote), "mcp_servers", &entry()), Ok(Merged::Kept(kept)));
    assert!(toml(Some(remote), "mcp_servers", &named("/usr/bin/waypost")).is_err());
}

#[test]
fn comments_and_commas_after_the_last_item_stay() {
    let old = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"x\": \"/* no comment */\"}, /* the last */\n  },\n  \"b\": 1, // too\n}\n";
    let merged = json(Some(old), "mcpServers", &entry());
    let Ok(Merged::Text(text)) = merged else { panic!("{merged:?}") };
    for kept in ["// mine\n", "\"/* no comment */\"", "/* the last */", "\"b\": 1, // too\n}\n"] {
        assert!(text.contains(kept), "{kept} in {text}");
    }
    assert!(
        text.contains("\"waypost\": {\n      \"command\": \"waypost\",\n      \"args\": [\"mcp\"],\n    },"),
        "{text}"
    );
    assert_eq!(json(Some(&text), "mcpServers", &entry()), Ok(Merged::Same));
    let added = json(Some("{ // ours\n}"), "mcpServers", &entry());
    assert!(matches!(&added, Ok(Merged::Text(text)) if text.starts_with("{ // ours\n")), "{added:?}");
}

#[test]
fn of_keys_that_stand_twice_the_last_counts_as_it_does_for_parsers() {
    let old = r#"{"mcpServers": {"a": {}}, "mcpServers": {"b": {}}}"#;
    let merged = json(Some(old), "mcpServers", &entry());
    let Ok(Merged::Text(text)) = merged else { panic!("{merged:?}") };
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["mcpServers"]["waypost"]["command"], "waypost", "{text}");
    assert_eq!(json(Some(&text), "mcpServers", &entry()), Ok(Merged::Same));
    let own = r#"{"mcpServers": {"waypost": {"command": "/a"}, "waypost": {"command": "/b", "command": "/c", "args": ["mcp"]}}}"#;
    let changed = own.replace("/c", "/d");
    assert_eq!(json(Some(own), "mcpServers", &named("/d")), Ok(Merged::Text(changed)));
}

#[test]
fn what_is_not_plain_json_is_left_to_its_owner() {
    for old in ["[]", "{\"mcpServers\": []}", "{\"mcpServers\": {}, \"mcpServers\": []}", "{", "{a: 1}"] {
        let refused = json(Some(old), "mcpServers", &entry()).unwrap_err();
        let pasted: Value = serde_json::from_str(&format!("{{{}}}", refused.paste)).unwrap();
        assert_eq!(pasted, json!({ "waypost": { "command": "waypost", "args": ["mcp"] } }), "{old}");
    }
    let pasted = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"x\": \"/* no comment */\"}, /* ours: */\n    \"waypost\": {\"command\": \"waypost\", \"args\": [\"mcp\"]}, // \"\n  },\n}";
    assert_eq!(json(Some(pasted), "mcpServers", &entry()), Ok(Merged::Same), "what was pasted is seen");
}

#[test]
fn what_cannot_be_read_is_named_with_its_line() {
    let why = |old: &str| json(Some(old), "mcpServers", &entry()).unwrap_err().why;
    let cut = why("{\n  \"mcpServers\": {\n    \"other\": {");
    assert!(cut.starts_with("line 3, column ") && cut.contains("as if it was cut off"), "{cut}");
    assert!(cut.ends_with("fix it and put this into its \"mcpServers\" yourself"), "{cut}");
    let wrong = why("{\n  mcpServers: {}\n}");
    assert!(wrong.starts_with("line 2, column 3 (\"mcpServers: {}\"): it is not JSON;"), "{wrong}");
    let behind = why("{\n  \"a\": 1, // mine\n  \"b\": = 2\n}");
    assert!(behind.starts_with("line 3, column "), "a comment is not what is wrong: {behind}");
    let table = toml(Some("a = 1\nb = = 2\n"), "mcp_servers", &entry()).unwrap_err().why;
    assert!(table.starts_with("line 2: it is not TOML: "), "{table}");
}

#[test]
fn a_mark_at_the_beginning_stays_and_is_in_nobodys_way() {
    let merged = json(Some("\u{feff}{\"a\": 1}"), "mcpServers", &entry());
    let Ok(Merged::Text(text)) = merged else { panic!("{merged:?}") };
    let plain = text.strip_prefix('\u{feff}').unwrap();
    assert_eq!(serde_json::from_str::<Value>(plain).unwrap()["mcpServers"]["waypost"]["command"], "waypost");
    assert_eq!(json(Some(&text), "mcpServers", &entry()), Ok(Merged::Same));
    let Ok(Merged::Text(text)) = toml(Some("\u{feff}a = 1\n"), "mcp_servers", &entry()) else { panic!() };
    assert!(text.starts_with("\u{feff}a = 1\n") && text.contains("[mcp_servers.waypost]"), "{text:?}");
}

#[test]
fn lines_that_end_as_on_windows_stay_so() {
    let merged = json(Some("{\r\n  \"a\": 1\r\n}\r\n"), "mcpServers", &entry());
    let Ok(Merged::Text(text)) = merged else { panic!("{merged:?}") };
    assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    let Ok(Merged::Text(text)) = section(Some("# Ours\r\n"), "a\nb\n") else { panic!() };
    assert_eq!(text, "# Ours\r\n\r\na\r\nb\r\n");
}

#[test]
fn a_table_is_added_to_toml_and_comments_stay() {
    let old = "# mine\nmodel = \"x\" # the best\n\n[mcp_servers.other]\ncommand = 'npx' # other";
    let new = format!("{old}\n\n[mcp_servers.waypost]\ncommand = \"waypost\"\nargs = [\"mcp\"]\n");
    assert_eq!(toml(Some(old), "mcp_servers", &entry()), Ok(Merged::Text(new.clone())));
    assert_eq!(toml(Some(&new), "mcp_servers", &entry()), Ok(Merged::Same));
    let whole = "[mcp_servers.waypost]\ncommand = \"waypost\"\nargs = [\"mcp\"]\n";
    assert_eq!(toml(None, "mcp_servers", &entry()), Ok(Merged::Text(whole.to_owned())));
}

#[test]
fn an_entry_in_toml_is_seen_however_it_is_written() {
    let own = "mcp_servers.\"waypost\" = { command = '/opt/w', args = [\"mcp\"] } # mine\n";
    let kept = "its entry \"waypost\" starts \"/opt/w mcp\", and was not changed; with --command waypost --yes it starts \"waypost mcp\"";
    assert_eq!(toml(Some(own), "mcp_servers", &entry()), Ok(Merged::Kept(kept.to_owned())));
    let changed = "mcp_servers.\"waypost\" = { command = \"/usr/w\", args = [\"mcp\"] } # mine\n";
    assert_eq!(toml(Some(own), "mcp_servers", &named("/usr/w")), Ok(Merged::Text(changed.to_owned())));
}

#[test]
fn an_entry_that_starts_no_server_becomes_one_that_does() {
    let changed = |old: &str| toml(Some(old), "mcp_servers", &named("waypost"));
    let table = "[mcp_servers.waypost]\ncommand = \"old\" # mine\n";
    let new = "[mcp_servers.waypost]\ncommand = \"waypost\"\nargs = [\"mcp\"] # mine\n";
    assert_eq!(changed(table), Ok(Merged::Text(new.to_owned())));
    let inline = "mcp_servers.waypost = { command = \"old\" }\n";
    let new = "mcp_servers.waypost = { command = \"waypost\", args = [\"mcp\"] }\n";
    assert_eq!(changed(inline), Ok(Merged::Text(new.to_owned())));
    let merged =
        json(Some(r#"{"mcpServers": {"waypost": {"command": "old"}}}"#), "mcpServers", &named("npx"));
    let Ok(Merged::Text(text)) = merged else { panic!("{merged:?}") };
    let read: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({ "command": "npx", "args": ["-y", "waypost", "mcp"] });
    assert_eq!(read["mcpServers"]["waypost"], expected);
}

#[test]
fn toml_that_cannot_take_a_table_is_left_to_its_owner() {
    let (inline, array) =
        ("mcp_servers = { other = { command = \"npx\" } }\n", "[[mcp_servers]]\nname = \"a\"\n");
    let refused = toml(Some(inline), "mcp_servers", &entry()).unwrap_err();
    assert_eq!(refused.paste, r#"waypost = { command = "waypost", args = ["mcp"] }"#);
    for old in [array, "mcp_servers = 1\n", "a = = b\n"] {
        let refused = toml(Some(old), "mcp_servers", &entry()).unwrap_err();
        assert!(refused.paste.starts_with("[mcp_servers.waypost]\n"), "{refused:?}");
    }
    let refused = toml(Some(array), "mcp_servers", &entry()).unwrap_err();
    assert!(refused.why.contains("\"mcp_servers\" is an array of tables"), "{refused:?}");
}

#[test]
fn another_launcher_keeps_the_arguments_of_our_own_program() {
    let old = r#"{"mcpServers": {"waypost": {"command": "waypost", "args": ["mcp", "--agent", "x"]}}}"#;
    let Ok(Merged::Text(npx)) = json(Some(old), "mcpServers", &named("npx")) else { panic!() };
    let read: Value = serde_json::from_str(&npx).unwrap();
    let expected = json!({ "command": "npx", "args": ["-y", "waypost", "mcp", "--agent", "x"] });
    assert_eq!(read["mcpServers"]["waypost"], expected);
    let kept =
        "its entry \"waypost\" starts \"npx -y waypost mcp --agent x\", and was not changed".to_owned();
    assert_eq!(json(Some(&npx), "mcpServers", &named("npx")), Ok(Merged::Kept(kept)));
    let Ok(Merged::Text(uvx)) = json(Some(&npx), "mcpServers", &named("uvx")) else { panic!() };
    let read: Value = serde_json::from_str(&uvx).unwrap();
    let expected = json!({ "command": "uvx", "args": ["waypost", "mcp", "--agent", "x"] });
    assert_eq!(read["mcpServers"]["waypost"], expected);
    let table = "[mcp_servers.waypost]\nargs = [\"mcp\"] # ours\ncommand = \"waypost\"\n";
    let changed = "[mcp_servers.waypost]\nargs = [\"-y\", \"waypost\", \"mcp\"] # ours\ncommand = \"npx\"\n";
    assert_eq!(toml(Some(table), "mcp_servers", &named("npx")), Ok(Merged::Text(changed.to_owned())));
    assert_eq!(toml(Some(changed), "mcp_servers", &named("npx")), Ok(Merged::Same));
}

#[test]
fn a_host_may_have_one_list_for_the_command_and_other_names() {
    let list = Fields {
        before: &[("type", "\"local\"")],
        command: "command",
        arguments: None,
        after: &[("enabled", "true")],
    };
    let of = |name: &str, said| Entry {
        launcher: Launcher::new(name),
        launcher_said: said,
        fields: list,
        ..entry()
    };
    let Ok(Merged::Text(text)) = json(None, "mcp", &of(NAME, false)) else { panic!() };
    let read: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({ "type": "local", "command": ["waypost", "mcp"], "enabled": true });
    assert_eq!(read["mcp"]["waypost"], expected);
    assert_eq!(json(Some(&text), "mcp", &of(NAME, false)), Ok(Merged::Same));
    let Ok(Merged::Text(text)) = json(Some(&text), "mcp", &of("npx", true)) else { panic!() };
    let read: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(read["mcp"]["waypost"]["command"], json!(["npx", "-y", "waypost", "mcp"]));
    let names = Fields { command: "cmd", arguments: Some("args"), ..list };
    let yaml = yaml("extensions", &Entry { fields: names, ..entry() });
    assert_eq!(
        yaml,
        "extensions:\n  waypost:\n    type: \"local\"\n    cmd: \"waypost\"\n    args: [\"mcp\"]\n    enabled: true\n"
    );
}

fn marked(text: &str) -> String {
    format!("{BEGIN}\n{text}\n{END}\n")
}

#[test]
fn the_section_is_added_then_replaced_and_never_touches_the_rest() {
    let (one, two) = (marked("one"), marked("two"));
    assert_eq!(section(None, &one), Ok(Merged::Text(one.clone())));
    for (old, gap) in [("# Ours", "\n\n"), ("# Ours\n", "\n"), ("# Ours\n\n", "")] {
        let added = format!("{old}{gap}{one}");
        assert_eq!(section(Some(old), &one), Ok(Merged::Text(added.clone())));
        assert_eq!(section(Some(&added), &one), Ok(Merged::Same));
    }
    let between = format!("before {BEGIN}\n  {one}after\n");
    let expected = format!("before {BEGIN}\n  {two}after\n");
    assert_eq!(section(Some(&between), &two), Ok(Merged::Text(expected)));
}

#[test]
fn marks_that_do_not_pair_are_left_to_their_owner() {
    let twice = format!("{0}{0}", marked("x"));
    let turned = format!("{END}\n{BEGIN}\n");
    for old in [twice.as_str(), &turned, &format!("{BEGIN}\ntext\n"), &format!("text\n{END}\n")] {
        assert!(section(Some(old), &marked("y")).unwrap_err().why.contains("do not pair"), "{old}");
    }
}
