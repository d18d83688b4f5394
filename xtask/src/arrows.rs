//! Which crate may depend on which. The picture is in `ARCHITECTURE.md`; this is the test that holds it.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::run::{cargo, output};

    /// What each crate may depend on. A crate that is not here, or an arrow that is not here, fails the test.
    const ALLOWED: &[(&str, &[&str])] = &[
        ("waypost-text", &[]),
        ("waypost-core", &["waypost-text"]),
        ("waypost-dialects", &["waypost-core", "waypost-text"]),
        ("waypost-store", &["waypost-core"]),
        ("waypost-engine", &["waypost-core", "waypost-planner", "waypost-store", "waypost-text"]),
        ("waypost-planner", &["waypost-core", "waypost-text"]),
        (
            "waypost-mcp",
            &["waypost-core", "waypost-dialects", "waypost-engine", "waypost-store", "waypost-text"],
        ),
        (
            "waypost-http",
            &["waypost-core", "waypost-dialects", "waypost-engine", "waypost-store", "waypost-text"],
        ),
        (
            "waypost-tui",
            &["waypost-core", "waypost-dialects", "waypost-engine", "waypost-store", "waypost-text"],
        ),
        (
            "waypost",
            &[
                "waypost-core",
                "waypost-dialects",
                "waypost-engine",
                "waypost-http",
                "waypost-mcp",
                "waypost-planner",
                "waypost-store",
                "waypost-text",
                "waypost-tui",
            ],
        ),
        ("waypost-testkit", &["waypost-core"]),
        ("xtask", &["waypost-core", "waypost-dialects", "waypost-store", "waypost-testkit", "waypost-tui"]),
    ];

    #[test]
    fn crates_depend_on_each_other_only_as_the_architecture_says() {
        let text =
            output(cargo().args(["metadata", "--format-version", "1", "--no-deps", "--offline"])).unwrap();
        let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        let ours: BTreeSet<&str> = packages.iter().map(|package| package["name"].as_str().unwrap()).collect();
        assert!(ours.contains("waypost-core"), "the workspace was read: {ours:?}");
        let mut wrong = Vec::new();
        for package in packages {
            let name = package["name"].as_str().unwrap();
            let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
                wrong.push(format!("{name} is not in the architecture"));
                continue;
            };
            for dependency in package["dependencies"].as_array().unwrap() {
                let on = dependency["name"].as_str().unwrap();
                let for_tests = dependency["kind"].as_str() == Some("dev");
                if ours.contains(on) && !allowed.contains(&on) && !(for_tests && on == "waypost-testkit") {
                    wrong.push(format!("{name} → {on}"));
                }
            }
        }
        assert!(wrong.is_empty(), "arrows that the architecture does not have: {wrong:?}");
    }

    #[test]
    fn the_core_knows_no_clock_files_threads_or_network() {
        // The lints forbid the calls; this forbids the crates that would bring them.
        let text =
            output(cargo().args(["metadata", "--format-version", "1", "--no-deps", "--offline"])).unwrap();
        let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
        let core =
            metadata["packages"].as_array().unwrap().iter().find(|package| package["name"] == "waypost-core");
        let normal =
            core.unwrap()["dependencies"].as_array().unwrap().iter().filter(|on| on["kind"].is_null());
        let names: BTreeSet<&str> = normal.map(|on| on["name"].as_str().unwrap()).collect();
        let known = [
            "bitcode",
            "hashbrown",
            "jiff",
            "rustc-hash",
            "serde",
            "serde_json",
            "smallvec",
            "thiserror",
            "waypost-text",
        ];
        assert_eq!(
            names,
            BTreeSet::from(known),
            "a new dependency of the core wants a decision in docs/decisions"
        );
    }
}
