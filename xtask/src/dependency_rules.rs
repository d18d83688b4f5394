//! Which crate may depend on which, and that the modules inside each crate form no cycles. `ARCHITECTURE.md` describes
//! the layers; these tests enforce them. `cargo xtask cycles [CRATE]` lists the cycles between modules.

#[cfg(test)]
mod machine_access;
mod module_graph;

use anyhow::{Result, ensure};

use self::module_graph::{Cycle, ModuleGraph};
use crate::rust_source::crates;

/// `cargo xtask cycles [CRATE…]`: prints the knots, and cycles with the imports to remove.
pub(crate) fn run(wanted: &[&str]) -> Result<()> {
    let crates = crates()?;
    let unknown = wanted.iter().find(|name| !crates.iter().any(|one| one.name == **name));
    ensure!(unknown.is_none(), "no crate is named {}", unknown.unwrap_or(&""));
    for one in crates.iter().filter(|one| wanted.is_empty() || wanted.contains(&one.name.as_str())) {
        let graph = ModuleGraph::new(one);
        let largest = graph.knots().first().map_or(1, Vec::len);
        println!("{}: {} modules, largest knot {largest}", one.name, one.files.len());
        print!("{}", describe(&graph));
    }
    Ok(())
}

/// Describes the knots with their modules, and the cycles with the imports that close them.
fn describe(graph: &ModuleGraph) -> String {
    let knots =
        graph.knots().into_iter().map(|knot| format!("  knot of {}: {}\n", knot.len(), knot.join(", ")));
    let cycles = graph.cycles().into_iter().map(|Cycle { modules, imports }| {
        let mut text = format!("  cycle: {} → {}\n", modules.join(" → "), modules[0]);
        for (at, import) in imports.iter().enumerate() {
            let advice = if at + 1 == imports.len() { "   ← most cycles pass here" } else { "" };
            text.push_str(&format!("    {}:{}  {}{advice}\n", import.file, import.line, import.path));
        }
        text
    });
    knots.chain(cycles).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::exec::{cargo, output, root};

    /// Crates whose modules form cycles, with the size of the largest knot. Every other crate must have none. The
    /// numbers may only decrease, and the list should stay empty.
    const KNOTS: &[(&str, usize)] = &[];

    /// The allowed dependencies of each crate. A crate or a dependency that is not listed fails the test.
    const ALLOWED: &[(&str, &[&str])] = &[
        ("waypost-text", &[]),
        ("waypost-core", &[]),
        ("waypost-account", &["waypost-core"]),
        ("waypost-formats", &["waypost-core"]),
        ("waypost-git", &["waypost-core"]),
        ("waypost-operation", &["waypost-core"]),
        ("waypost-store", &["waypost-core"]),
        ("waypost-config", &["waypost-core"]),
        ("waypost-net", &["waypost-config"]),
        (
            "waypost-service",
            &[
                "waypost-account",
                "waypost-config",
                "waypost-core",
                "waypost-formats",
                "waypost-git",
                "waypost-operation",
                "waypost-store",
            ],
        ),
        ("waypost-exec", &["waypost-config", "waypost-core", "waypost-git", "waypost-net", "waypost-store"]),
        ("waypost-llm", &["waypost-config", "waypost-core", "waypost-net"]),
        (
            "waypost-run",
            &[
                "waypost-config",
                "waypost-core",
                "waypost-exec",
                "waypost-net",
                "waypost-service",
                "waypost-store",
            ],
        ),
        ("waypost-planner", &["waypost-core", "waypost-llm", "waypost-service", "waypost-store"]),
        (
            "waypost-mcp",
            &[
                "waypost-config",
                "waypost-core",
                "waypost-formats",
                "waypost-exec",
                "waypost-llm",
                "waypost-planner",
                "waypost-run",
                "waypost-service",
                "waypost-store",
            ],
        ),
        (
            "waypost-http",
            &[
                "waypost-account",
                "waypost-config",
                "waypost-core",
                "waypost-formats",
                "waypost-service",
                "waypost-store",
            ],
        ),
        (
            "waypost-tui",
            &[
                "waypost-config",
                "waypost-core",
                "waypost-formats",
                "waypost-exec",
                "waypost-run",
                "waypost-service",
                "waypost-store",
            ],
        ),
        (
            "waypost-cli",
            &[
                "waypost-account",
                "waypost-config",
                "waypost-core",
                "waypost-formats",
                "waypost-git",
                "waypost-exec",
                "waypost-planner",
                "waypost-service",
                "waypost-store",
            ],
        ),
        (
            "waypost",
            &[
                "waypost-account",
                "waypost-cli",
                "waypost-config",
                "waypost-core",
                "waypost-formats",
                "waypost-git",
                "waypost-exec",
                "waypost-http",
                "waypost-llm",
                "waypost-mcp",
                "waypost-planner",
                "waypost-run",
                "waypost-service",
                "waypost-store",
                "waypost-tui",
            ],
        ),
        ("waypost-testkit", &["waypost-core"]),
        (
            "xtask",
            &[
                "waypost-config",
                "waypost-core",
                "waypost-formats",
                "waypost-run",
                "waypost-service",
                "waypost-store",
                "waypost-testkit",
                "waypost-tui",
            ],
        ),
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
                if ours.contains(on)
                    && !allowed.contains(&on)
                    && !(for_tests && ["waypost-operation", "waypost-testkit"].contains(&on))
                    && on != "waypost-text"
                {
                    wrong.push(format!("{name} → {on}"));
                }
            }
        }
        assert!(wrong.is_empty(), "arrows that the architecture does not have: {wrong:?}");
    }

    #[test]
    fn the_core_knows_no_clock_files_threads_or_network() {
        // Lints forbid the calls; this forbids the crates that would provide them.
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
            "sha2",
            "smallvec",
            "strsim",
            "strum",
            "thiserror",
            "waypost-text",
        ];
        assert_eq!(
            names,
            BTreeSet::from(known),
            "a new dependency of the core wants a decision in docs/decisions"
        );
    }

    /// Returns the packages whose level a profile sets, each with its level.
    fn levels<'a>(manifest: &'a str, profile: &str) -> BTreeMap<&'a str, &'a str> {
        let (_, rest) = manifest.split_once(&format!("[profile.{profile}.package]\n")).unwrap();
        let lines = rest.lines().take_while(|line| !line.starts_with('['));
        lines.filter_map(|line| line.split_once(".opt-level = ")).collect()
    }

    #[test]
    fn nothing_is_distributed_that_is_not_optimized() {
        // The distributed profile inherits the levels of the first build, package by package.
        let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let distributed = levels(&manifest, "dist");
        let plain = levels(&manifest, "release").into_iter().filter(|(_, level)| *level == "0");
        let plain: Vec<&str> = plain.map(|(package, _)| package).collect();
        assert!(plain.contains(&"waypost-tui"), "the manifest was read: {plain:?}");
        let wrong: Vec<_> = plain.into_iter().filter(|package| !distributed.contains_key(package)).collect();
        assert!(wrong.is_empty(), "give these a level in [profile.dist.package]: {wrong:?}");
    }

    /// Compares the sizes of the largest knots (1: no cycle) with the allowed ones.
    fn ratchet(found: &BTreeMap<&str, usize>, allowed: &[(&str, usize)]) -> Vec<String> {
        let mut wrong = Vec::new();
        for (&name, &size) in found {
            let limit = allowed.iter().find(|(known, _)| *known == name).map_or(1, |(_, limit)| *limit);
            if size > limit {
                wrong.push(format!("{name}: the largest knot has {size} modules, allowed are {limit}"));
            } else if size < limit {
                wrong.push(format!("{name}: the largest knot has only {size} modules: lower the number"));
            }
        }
        let gone = allowed.iter().filter(|(name, _)| !found.contains_key(name));
        wrong.extend(gone.map(|(name, _)| format!("{name}: no such crate: take it off the list")));
        wrong
    }

    #[test]
    fn the_modules_of_a_crate_import_each_other_without_cycles() {
        let crates = crates().unwrap();
        assert!(crates.iter().any(|one| one.name == "waypost-core"), "the sources were read");
        let graphs: BTreeMap<&str, ModuleGraph> =
            crates.iter().map(|one| (one.name.as_str(), ModuleGraph::new(one))).collect();
        let largest = |graph: &ModuleGraph| graph.knots().first().map_or(1, Vec::len);
        let found = graphs.iter().map(|(name, graph)| (*name, largest(graph))).collect();
        let wrong = ratchet(&found, KNOTS);
        let details =
            graphs.iter().filter(|(name, _)| wrong.iter().any(|line| line.starts_with(&format!("{name}:"))));
        let details: String = details.map(|(name, graph)| format!("{name}\n{}", describe(graph))).collect();
        assert!(wrong.is_empty(), "{}\n\n{details}", wrong.join("\n"));
    }

    #[test]
    fn a_knot_may_neither_grow_nor_shrink_unnoticed() {
        let check = |size: usize, allowed: &[(&str, usize)], expected: &[&str]| {
            assert_eq!(ratchet(&BTreeMap::from([("a", size)]), allowed), expected);
        };
        check(1, &[], &[]);
        check(4, &[("a", 4)], &[]);
        check(2, &[], &["a: the largest knot has 2 modules, allowed are 1"]);
        check(5, &[("a", 4)], &["a: the largest knot has 5 modules, allowed are 4"]);
        check(3, &[("a", 4)], &["a: the largest knot has only 3 modules: lower the number"]);
        check(1, &[("a", 4)], &["a: the largest knot has only 1 modules: lower the number"]);
        check(1, &[("b", 2)], &["b: no such crate: take it off the list"]);
    }
}
