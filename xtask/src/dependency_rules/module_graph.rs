//! The modules of a crate and the imports between them, from the text of its sources; and the cycles among them.
//!
//! A module is a file. An edge is a path (including `use` trees) in code outside tests, from one module to the module
//! that defines what the path names: re-exports are followed to the definition. So a parent that declares its children
//! or re-exports their items does not depend on them, but one that uses them itself does. Method calls are not seen,
//! because they do not name their type.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use crate::rust_source::{Crate, Definition, Kind, Token, definitions, tokens, without_tests};

/// A place where one module names another's item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Import {
    pub(crate) file: String,
    pub(crate) line: usize,
    /// The path as written.
    pub(crate) path: String,
}

pub(crate) struct ModuleGraph {
    /// Names like `plans::cache`; the root is `crate`.
    names: Vec<String>,
    edges: BTreeMap<(usize, usize), Vec<Import>>,
}

/// Modules that import each other in a ring, each with its import of the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cycle {
    pub(crate) modules: Vec<String>,
    pub(crate) imports: Vec<Import>,
}

struct Module<'a> {
    path: &'a [String],
    file: &'a str,
    /// Names defined at the top level of the file.
    defined: HashSet<&'a str>,
    uses: Vec<Use<'a>>,
    /// Paths outside `use` declarations.
    references: Vec<(Vec<&'a str>, usize)>,
    /// Names that occur outside `use` declarations.
    mentioned: HashSet<&'a str>,
}

/// One leaf of a `use` tree.
#[derive(Debug)]
struct Use<'a> {
    path: Vec<&'a str>,
    /// The name in this module; `None` for a glob.
    name: Option<&'a str>,
    line: usize,
    is_reexport: bool,
}

#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// An item that this module defines.
    Item(usize),
}

impl ModuleGraph {
    pub(crate) fn new(source: &Crate) -> Self {
        let all: Vec<Vec<Token<'_>>> = source.files.iter().map(|file| tokens(&file.text)).collect();
        let code: Vec<_> = all.iter().map(|tokens| without_tests(tokens)).collect();
        let test_modules: Vec<Vec<&str>> = source
            .files
            .iter()
            .zip(&code)
            .flat_map(|(file, (_, tests))| {
                let parent = || file.module.iter().map(String::as_str);
                tests.iter().map(move |name| parent().chain([*name]).collect())
            })
            .collect();
        let is_test = |module: &[String]| {
            test_modules.iter().any(|test| {
                module.len() >= test.len() && module.iter().zip(test).all(|(name, other)| name == other)
            })
        };
        let modules: Vec<Module<'_>> = source
            .files
            .iter()
            .zip(&code)
            .filter(|(file, _)| !is_test(&file.module))
            .map(|(file, (code, _))| Module::read(&file.module, &file.path, code))
            .collect();
        let by_path = modules.iter().enumerate().map(|(at, module)| (module.path.to_vec(), at)).collect();
        let resolver = Resolver { modules: &modules, by_path };
        let mut edges: BTreeMap<(usize, usize), Vec<Import>> = BTreeMap::new();
        for from in 0..modules.len() {
            for (to, import) in resolver.imports(from) {
                edges.entry((from, to)).or_default().push(import);
            }
        }
        let names = modules.iter().map(|module| match module.path {
            [] => "crate".to_owned(),
            path => path.join("::"),
        });
        Self { names: names.collect(), edges }
    }

    /// Returns each set of modules in which every module reaches every other, largest first.
    pub(crate) fn knots(&self) -> Vec<Vec<String>> {
        let pairs: BTreeSet<(usize, usize)> = self.edges.keys().copied().collect();
        let mut knots: Vec<Vec<String>> = components(self.names.len(), &pairs)
            .into_iter()
            .map(|knot| knot.into_iter().map(|module| self.names[module].clone()).collect())
            .collect();
        knots.sort_by_key(|knot| Reverse(knot.len()));
        knots
    }

    /// Returns cycles, each with its busiest import last: the one through which most cycles pass after the removal of
    /// the earlier ones. Removing all of these imports leaves no cycle.
    pub(crate) fn cycles(&self) -> Vec<Cycle> {
        let mut pairs: BTreeSet<(usize, usize)> = self.edges.keys().copied().collect();
        let mut found = Vec::new();
        loop {
            let next = neighbours(self.names.len(), &pairs);
            let rings: BTreeSet<Vec<usize>> =
                (0..next.len()).filter_map(|node| cycle_through(node, &next)).collect();
            let mut passed: BTreeMap<(usize, usize), usize> = BTreeMap::new();
            for step in rings.iter().flat_map(|ring| steps(ring)) {
                *passed.entry(step).or_default() += 1;
            }
            let importers = |module: usize| pairs.iter().filter(|(_, to)| *to == module).count();
            let busiest = passed
                .into_iter()
                .max_by_key(|(step, count)| (*count, Reverse(self.edges[step].len()), importers(step.1)));
            let Some((busiest, _)) = busiest else { return found };
            let through = rings.into_iter().filter(|ring| steps(ring).contains(&busiest));
            let Some(mut ring) = through.min_by_key(Vec::len) else { return found };
            let after = ring.iter().position(|module| *module == busiest.1).unwrap_or_default();
            ring.rotate_left(after);
            found.push(Cycle {
                modules: ring.iter().map(|&module| self.names[module].clone()).collect(),
                imports: steps(&ring).iter().map(|step| self.edges[step][0].clone()).collect(),
            });
            pairs.remove(&busiest);
        }
    }

    #[cfg(test)]
    fn pairs(&self) -> Vec<String> {
        self.edges.keys().map(|(from, to)| format!("{} -> {}", self.names[*from], self.names[*to])).collect()
    }
}

impl<'a> Module<'a> {
    fn read(path: &'a [String], file: &'a str, code: &[Token<'a>]) -> Self {
        let defined =
            definitions(code).into_iter().filter(|definition: &Definition<'_>| definition.depth == 0);
        let mut module = Self {
            path,
            file,
            defined: defined.map(|definition| definition.name).collect(),
            uses: Vec::new(),
            references: Vec::new(),
            mentioned: HashSet::new(),
        };
        let (mut at, mut depth) = (0, 0);
        // Depths of the braces of inline modules: `super` leads out of these first.
        let mut inline: Vec<usize> = Vec::new();
        while let Some(token) = code.get(at) {
            match (token.kind, token.text) {
                (Kind::Sign, "{") => {
                    depth += 1;
                    if at >= 2 && code[at - 2].is("mod") {
                        inline.push(depth);
                    }
                }
                (Kind::Sign, "}") => {
                    inline.pop_if(|own| *own == depth);
                    depth -= 1;
                }
                (Kind::Name, "use") if !code.get(at + 1).is_some_and(|next| next.is("<")) => {
                    let mut leaves = Vec::new();
                    let is_reexport = is_public(&code[..at]);
                    at = use_tree(code, at + 1, &[], is_reexport, &mut leaves);
                    for leaf in &mut leaves {
                        outwards(&mut leaf.path, inline.len());
                    }
                    module.uses.append(&mut leaves);
                    continue;
                }
                (Kind::Name, _) => {
                    let (mut path, end) = path_at(code, at);
                    module.mentioned.insert(token.text);
                    let is_visibility = at >= 2 && code[at - 1].is("in") && code[at - 2].is("(");
                    let continues = at > 0 && (code[at - 1].is("::") || code[at - 1].is("."));
                    if path.len() > 1 && !is_visibility && !continues {
                        outwards(&mut path, inline.len());
                        module.references.push((path, token.line));
                        at = end;
                        continue;
                    }
                }
                (Kind::Text, text)
                    if ["crate::", "super::", "self::"].iter().any(|start| text.starts_with(start)) =>
                {
                    // `#[serde(with = "crate::…")]`
                    let path: Vec<&str> = text.split("::").collect();
                    let is_name = |name: &&str| {
                        !name.is_empty() && name.chars().all(|one| one.is_alphanumeric() || one == '_')
                    };
                    if path.iter().all(is_name) {
                        module.references.push((path, token.line));
                    }
                }
                (Kind::Sign | Kind::Text, _) => {}
            }
            at += 1;
        }
        module
    }
}

/// Drops one `super` for each inline module around the path: an inline module belongs to the file's module.
fn outwards(path: &mut Vec<&str>, inline: usize) {
    for _ in 0..inline {
        match path.first() {
            Some(&"super") => path[0] = "self",
            _ => return,
        }
        if path.get(1) == Some(&"super") {
            path.remove(0);
        }
    }
}

fn is_public(before: &[Token<'_>]) -> bool {
    match before {
        [.., last] if last.is("pub") => true,
        [.., last] if last.is(")") => {
            let opening = before.iter().rposition(|token| token.is("("));
            opening.is_some_and(|at| at > 0 && before[at - 1].is("pub"))
        }
        _ => false,
    }
}

/// Returns the path that begins at a token, and where it ends.
fn path_at<'a>(code: &[Token<'a>], mut at: usize) -> (Vec<&'a str>, usize) {
    let mut path = vec![code[at].text];
    while let [_, sign, name, ..] = &code[at..]
        && sign.is("::")
        && name.kind == Kind::Name
    {
        path.push(name.text);
        at += 2;
    }
    (path, at + 1)
}

/// Reads one branch of a `use` tree and returns where it ends: after its semicolon, or at a comma or brace of the
/// enclosing tree.
fn use_tree<'a>(
    code: &[Token<'a>],
    mut at: usize,
    prefix: &[&'a str],
    is_reexport: bool,
    leaves: &mut Vec<Use<'a>>,
) -> usize {
    let mut path = prefix.to_vec();
    let (mut glob, mut group, mut alias, mut line) = (false, false, None, 0);
    while let Some(token) = code.get(at) {
        match (token.kind, token.text) {
            (Kind::Sign, ";") => {
                at += 1;
                break;
            }
            (Kind::Sign, "," | "}") if !prefix.is_empty() || group => break,
            (Kind::Sign, "*") => (glob, line) = (true, token.line),
            (Kind::Sign, "{") => {
                group = true;
                at += 1;
                while let Some(token) = code.get(at)
                    && !token.is("}")
                {
                    // A group without a path before it is still a level of its own.
                    let prefix: &[&str] = if path.is_empty() { &["self"] } else { &path };
                    at = match token.is(",") {
                        true => at + 1,
                        false => use_tree(code, at, prefix, is_reexport, leaves),
                    };
                }
            }
            (Kind::Name, "as") => {
                alias = code.get(at + 1).map(|token| token.text);
                at += 1;
            }
            (Kind::Name, name) => {
                path.push(name);
                line = token.line;
            }
            _ => {}
        }
        at += 1;
    }
    if !group {
        if path.len() > 1 {
            path.pop_if(|last| *last == "self");
        }
        let name = (!glob).then(|| alias.or(path.last().copied())).flatten();
        leaves.push(Use { path, name, line, is_reexport });
    }
    at
}

struct Resolver<'a> {
    modules: &'a [Module<'a>],
    by_path: HashMap<Vec<String>, usize>,
}

impl Resolver<'_> {
    /// Returns the modules whose items a module names, with the places.
    fn imports(&self, from: usize) -> Vec<(usize, Import)> {
        let module = &self.modules[from];
        let mut found = Vec::new();
        let mut add = |to: usize, path: &[&str], line: usize| {
            if to != from {
                found.push((to, Import { file: module.file.to_owned(), line, path: path.join("::") }));
            }
        };
        for one in &module.uses {
            let Some(target) = self.resolve(from, &one.path) else { continue };
            match (target, one.name) {
                // Imports only the name of a module. Its items count where they are used.
                (Target::Module(_), Some(_)) => {}
                (Target::Module(to), None) => {
                    for name in &module.mentioned {
                        if let Some(Target::Item(to)) = self.find(to, name, &mut HashSet::new()) {
                            let path: Vec<&str> = one.path.iter().chain([name]).copied().collect();
                            add(to, &path, one.line);
                        }
                    }
                }
                (Target::Item(to), name) => {
                    let is_below = self.modules[to].path.starts_with(module.path);
                    let is_used = name.is_none_or(|name| module.mentioned.contains(name));
                    if !(one.is_reexport && is_below) || is_used {
                        add(to, &one.path, one.line);
                    }
                }
            }
        }
        for (path, line) in &module.references {
            let is_local = |name: &&str| match *name {
                "crate" | "self" | "super" => true,
                name => {
                    self.child(from, name).is_some()
                        || matches!(self.find(from, name, &mut HashSet::new()), Some(Target::Module(_)))
                }
            };
            if path.first().is_some_and(is_local)
                && let Some(Target::Item(to) | Target::Module(to)) = self.resolve(from, path)
            {
                add(to, path, *line);
            }
        }
        found.sort_by(|one, other| {
            (one.0, one.1.line, &one.1.path).cmp(&(other.0, other.1.line, &other.1.path))
        });
        found.dedup();
        found
    }

    fn child(&self, module: usize, name: &str) -> Option<usize> {
        let mut path = self.modules[module].path.to_vec();
        path.push(name.to_owned());
        self.by_path.get(&path).copied()
    }

    fn parent(&self, module: usize) -> Option<usize> {
        let (_, above) = self.modules[module].path.split_last()?;
        self.by_path.get(above).copied()
    }

    /// Returns what a path in this module names; `None` if it leads out of the crate.
    fn resolve(&self, from: usize, path: &[&str]) -> Option<Target> {
        self.resolve_path(from, path, &mut HashSet::new())
    }

    fn resolve_path(
        &self,
        from: usize,
        path: &[&str],
        seen: &mut HashSet<(usize, String)>,
    ) -> Option<Target> {
        let (mut current, mut rest) = match path {
            ["crate", rest @ ..] => (*self.by_path.get(&[][..])?, rest),
            ["self", rest @ ..] => (from, rest),
            ["super", ..] => (from, path),
            [name, rest @ ..] => match self.find(from, name, seen)? {
                Target::Module(module) => (module, rest),
                item @ Target::Item(_) => return Some(item),
            },
            [] => return None,
        };
        while let [name, after @ ..] = rest {
            rest = after;
            match *name {
                "self" => {}
                "super" => current = self.parent(current)?,
                name => match self.find(current, name, seen) {
                    Some(Target::Module(module)) => current = module,
                    Some(item) => return Some(item),
                    // Generated by a macro, or imported there from another crate.
                    None => return Some(Target::Item(current)),
                },
            }
        }
        Some(Target::Module(current))
    }

    /// Returns what a name means in a module: a child, its own definition, or an import.
    fn find(&self, module: usize, name: &str, seen: &mut HashSet<(usize, String)>) -> Option<Target> {
        if let Some(child) = self.child(module, name) {
            return Some(Target::Module(child));
        }
        if self.modules[module].defined.contains(name) {
            return Some(Target::Item(module));
        }
        if !seen.insert((module, name.to_owned())) {
            return None;
        }
        let uses = &self.modules[module].uses;
        let named = uses.iter().filter(|one| one.name == Some(name) && one.path.as_slice() != [name]);
        for one in named {
            if let Some(target) = self.resolve_path(module, &one.path, seen) {
                return Some(target);
            }
        }
        uses.iter().filter(|one| one.name.is_none()).find_map(|one| {
            match self.resolve_path(module, &one.path, seen)? {
                Target::Module(other) if other != module => self.find(other, name, seen),
                Target::Module(_) | Target::Item(_) => None,
            }
        })
    }
}

/// Returns the sets of more than one node in which every node reaches every other (Tarjan).
fn components(count: usize, pairs: &BTreeSet<(usize, usize)>) -> Vec<Vec<usize>> {
    let mut search = Search { next: neighbours(count, pairs), ..Search::default() };
    search.index = vec![None; count];
    search.low = vec![0; count];
    for node in 0..count {
        if search.index[node].is_none() {
            search.visit(node);
        }
    }
    search.found
}

#[derive(Default)]
struct Search {
    next: Vec<Vec<usize>>,
    index: Vec<Option<usize>>,
    low: Vec<usize>,
    stack: Vec<usize>,
    count: usize,
    found: Vec<Vec<usize>>,
}

impl Search {
    fn visit(&mut self, node: usize) {
        let own = self.count;
        self.count += 1;
        (self.index[node], self.low[node]) = (Some(own), own);
        self.stack.push(node);
        for other in self.next[node].clone() {
            match self.index[other] {
                None => {
                    self.visit(other);
                    self.low[node] = self.low[node].min(self.low[other]);
                }
                Some(index) if self.stack.contains(&other) => self.low[node] = self.low[node].min(index),
                Some(_) => {}
            }
        }
        if self.low[node] == own {
            let from = self.stack.iter().position(|other| *other == node).unwrap_or_default();
            let mut component = self.stack.split_off(from);
            component.sort_unstable();
            if component.len() > 1 {
                self.found.push(component);
            }
        }
    }
}

fn neighbours(count: usize, pairs: &BTreeSet<(usize, usize)>) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); count];
    for (from, to) in pairs {
        next[*from].push(*to);
    }
    next
}

/// Returns the edges of a ring; the last leads back to its first node.
fn steps(ring: &[usize]) -> Vec<(usize, usize)> {
    ring.iter().copied().zip(ring.iter().copied().cycle().skip(1)).collect()
}

/// Returns the shortest cycle through a node, beginning with its smallest node.
fn cycle_through(node: usize, next: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut before: Vec<Option<usize>> = vec![None; next.len()];
    let mut queue = VecDeque::from([node]);
    while let Some(current) = queue.pop_front() {
        for &other in &next[current] {
            if other == node {
                let mut ring = vec![current];
                while let Some(&last) = ring.last()
                    && last != node
                {
                    ring.push(before[last]?);
                }
                let least = ring.iter().enumerate().min_by_key(|(_, node)| **node).map_or(0, |(at, _)| at);
                ring.reverse();
                let length = ring.len();
                ring.rotate_left(length - 1 - least);
                return Some(ring);
            }
            if before[other].is_none() {
                before[other] = Some(current);
                queue.push_back(other);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::rust_source::{SourceFile, module_of};

    fn graph(files: &[(&str, &str)]) -> ModuleGraph {
        let files = files.iter().map(|(path, text)| SourceFile {
            path: (*path).to_owned(),
            module: module_of(Path::new(path)),
            text: (*text).to_owned(),
        });
        ModuleGraph::new(&Crate { name: "sample".to_owned(), files: files.collect() })
    }

    fn check(files: &[(&str, &str)], expected: &[&str]) {
        assert_eq!(graph(files).pairs(), expected, "{files:?}");
    }

    #[test]
    fn paths_and_use_trees_are_edges() {
        check(
            &[
                ("a.rs", "use crate::{b::{B, self as other}, c::*}; fn x() -> C { B }"),
                ("b.rs", "pub struct B; fn y() { crate::c::C }"),
                ("c.rs", "pub struct C;"),
                ("lib.rs", "mod a; mod b; mod c;"),
            ],
            &["a -> b", "a -> c", "b -> c"],
        );
    }

    #[test]
    fn a_parent_may_declare_and_re_export_what_its_children_build_on() {
        let child = ("a/x.rs", "use super::Base; pub struct X(Base);");
        check(&[("a.rs", "mod x; pub use x::X; pub struct Base;"), child, ("lib.rs", "")], &["a::x -> a"]);
        check(
            &[("a.rs", "mod x; pub(crate) use self::x::*; pub struct Base;"), child, ("lib.rs", "")],
            &["a::x -> a"],
        );
        let knotted =
            [("a.rs", "mod x; pub use x::X; pub struct Base; fn f(_: X) {}"), child, ("lib.rs", "")];
        check(&knotted, &["a -> a::x", "a::x -> a"]);
        check(
            &[("a.rs", "mod x; pub struct Base; fn f() { x::X::new() }"), child, ("lib.rs", "")],
            &["a -> a::x", "a::x -> a"],
        );
    }

    #[test]
    fn re_exports_and_imported_modules_are_followed_to_the_definition() {
        check(
            &[
                ("a.rs", "mod x; pub use x::X;"),
                ("a/x.rs", "pub struct X;"),
                ("b.rs", "use crate::a; fn f(_: a::X) {}"),
                ("c.rs", "use crate::Everything as X; fn f(_: X) {}"),
                ("d.rs", "use super::a::*; fn f(_: X) {}"),
                ("lib.rs", "mod a; pub use a::X as Everything;"),
            ],
            &["b -> a::x", "c -> a::x", "d -> a::x"],
        );
    }

    #[test]
    fn a_sibling_reached_through_the_imports_of_the_parent_is_the_edge() {
        check(
            &[
                ("a.rs", "use crate::b::B; fn f(_: B) {}"),
                ("a/x.rs", "use super::B;"),
                ("b.rs", "pub struct B;"),
                ("lib.rs", ""),
            ],
            &["a -> b", "a::x -> b"],
        );
    }

    #[test]
    fn tests_visibilities_other_crates_and_modules_in_the_file_are_no_edges() {
        check(
            &[
                (
                    "a.rs",
                    "use std::fs; use b_crate::c::D; pub(in crate::b) struct A; mod inner { use super::A; } \
                     #[cfg(test)] mod tests { use crate::b::B; } #[cfg(test)] mod far; // crate::b::B\n\
                     const TEXT: &str = \"see crate::b::B\";",
                ),
                ("a/far.rs", "use crate::b::B;"),
                ("b.rs", "pub struct B;"),
                ("lib.rs", ""),
            ],
            &[],
        );
    }

    #[test]
    fn paths_in_attributes_and_macros_are_edges() {
        check(
            &[
                ("a.rs", "struct A { #[serde(with = \"crate::b\")] x: u8 }"),
                ("b.rs", "fn f() { println!(\"{}\", super::c::VALUE) }"),
                ("c.rs", "pub const VALUE: u8 = 1;"),
                ("lib.rs", ""),
            ],
            &["a -> b", "b -> c"],
        );
    }

    #[test]
    fn the_root_is_a_module_like_others() {
        let files = [
            ("a.rs", "use crate::Shared; pub fn run() {}"),
            ("main.rs", "mod a; struct Shared; fn main() { a::run() }"),
        ];
        check(&files, &["a -> crate", "crate -> a"]);
        assert_eq!(graph(&files).knots(), [["a", "crate"]]);
    }

    #[test]
    fn a_cycle_names_its_modules_and_the_imports_that_close_it() {
        let found = graph(&[
            ("a.rs", "use crate::b::B;\nuse crate::b::Other;\npub struct A;"),
            ("b.rs", "pub struct B;\npub struct Other;\n\nfn f() { crate::c::g() }"),
            ("c.rs", "\nuse crate::a::A;"),
            ("d.rs", "use crate::a::A;"),
            ("lib.rs", ""),
        ]);
        assert_eq!(found.knots(), [["a", "b", "c"]]);
        let [cycle] = &found.cycles()[..] else { panic!("{:?}", found.cycles()) };
        assert_eq!(cycle.modules, ["a", "b", "c"]);
        let places: Vec<String> = cycle
            .imports
            .iter()
            .map(|import| format!("{}:{} {}", import.file, import.line, import.path))
            .collect();
        assert_eq!(places, ["a.rs:1 crate::b::B", "b.rs:4 crate::c::g", "c.rs:2 crate::a::A"]);
    }

    #[test]
    fn every_cycle_of_a_knot_is_named() {
        let found = graph(&[
            ("a.rs", "use crate::b::B; use crate::c::C; pub struct A;"),
            ("b.rs", "use crate::a::A; pub struct B;"),
            ("c.rs", "use crate::a::A; pub struct C;"),
            ("lib.rs", ""),
        ]);
        assert_eq!(found.knots(), [["a", "b", "c"]]);
        assert_eq!(found.cycles().len(), 2);
    }
}
