use std::collections::BTreeSet;
use std::path::Path;

use waypost_text::{PlanGroup, StatusSign, is_unsafe_char, status_typescript, unsafe_typescript, width};

#[test]
fn every_status_has_its_own_sign_word_and_name() {
    for (what, of) in [
        ("name", StatusSign::name as fn(StatusSign) -> &'static str),
        ("glyph", StatusSign::glyph),
        ("ascii", StatusSign::ascii),
        ("word", StatusSign::label),
    ] {
        let all: BTreeSet<&str> = StatusSign::ALL.iter().copied().map(of).collect();
        assert_eq!(all.len(), StatusSign::ALL.len(), "each status has its own {what}");
    }
}

#[test]
fn a_sign_takes_one_column_everywhere() {
    for sign in StatusSign::ALL {
        let glyph = sign.glyph();
        assert_eq!((width(glyph), glyph.chars().count()), (1, 1), "{glyph}");
        assert!(!glyph.contains(is_unsafe_char));
        assert!(sign.ascii().len() == 1 && sign.ascii().is_ascii(), "{}", sign.ascii());
    }
}

#[test]
fn the_dashboard_has_the_same_tables() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/lib");
    for (file, expected) in
        [("statusSigns.ts", status_typescript()), ("unsafeCharacters.ts", unsafe_typescript())]
    {
        let path = folder.join(file);
        if std::env::var_os("WAYPOST_UPDATE").is_some_and(|value| value == "1") {
            std::fs::write(&path, &expected).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(found, expected, "`cargo xtask generate` writes {} anew", path.display());
    }
}

#[test]
fn every_sign_belongs_to_exactly_one_group_of_a_list_of_plans() {
    for sign in StatusSign::ALL {
        let groups = PlanGroup::ALL.iter().filter(|group| group.signs().contains(sign));
        assert_eq!(groups.count(), 1, "{sign:?}");
    }
    assert!(StatusSign::Failed.plan_group() < StatusSign::Running.plan_group());
    assert!(StatusSign::Approval.plan_group() < StatusSign::Asking.plan_group());
}
