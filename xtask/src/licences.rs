//! Checks the dependencies against `deny.toml`: allowed licences, banned crates, no git sources. `cargo deny check bans
//! licenses sources` reads the same file and checks more, but takes longer to build than everything else here.

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::exec::{cargo, output, root};

    /// Returns the quoted texts between `start` and the next `]`.
    fn list<'a>(text: &'a str, start: &str) -> BTreeSet<&'a str> {
        let from = text.find(start).unwrap_or_else(|| panic!("deny.toml has {start:?}")) + start.len();
        let part = &text[from..from + text[from..].find(']').unwrap()];
        let lines = part.lines().filter(|line| !line.trim_start().starts_with('#'));
        lines.flat_map(|line| line.split('"').skip(1).step_by(2)).collect()
    }

    /// Whether all parts of one alternative of a licence expression are allowed.
    fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
        let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
        plain
            .split(" OR ")
            .any(|alternative| alternative.split(" AND ").all(|part| allowed.contains(part.trim())))
    }

    #[test]
    fn every_dependency_has_a_licence_that_we_allow_and_none_is_banned() {
        let rules = std::fs::read_to_string(root().join("deny.toml")).unwrap();
        let allowed = list(&rules, "\nallow = [");
        let banned = list(&rules, "\ndeny = [");
        assert!(
            allowed.contains("MIT") && banned.contains("openssl-sys"),
            "deny.toml was read: {allowed:?} {banned:?}"
        );
        // Not offline: the crates of other platforms are read as well, and a build does not fetch those.
        let mut metadata = cargo();
        metadata.args(["metadata", "--format-version", "1", "--all-features"]);
        for target in list(&rules, "\ntargets = [") {
            metadata.args(["--filter-platform", target]);
        }
        let text = output(&mut metadata).unwrap();
        let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
        let packages = metadata["packages"].as_array().unwrap();
        assert!(packages.len() > 20, "the dependencies were read");
        let mut wrong = Vec::new();
        for package in packages {
            let name = package["name"].as_str().unwrap();
            let licence = package["license"].as_str().unwrap_or("(none)");
            if !is_allowed(licence, &allowed) {
                wrong.push(format!("{name}: {licence}"));
            }
            if banned.contains(name) {
                wrong.push(format!("{name} is banned"));
            }
            let source = package["source"].as_str().unwrap_or("");
            if source.starts_with("git+") {
                wrong.push(format!("{name} comes from a git repository"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
