//! Which paths the file tools read and write. A tool's file is written by a model, and other programs run or obey files by their
//! names: so only names of plans are open, not all names but some. Opens no file.

use waypost_formats::Dialect;

use crate::tool_error::ToolError;

/// Waypost's own folder, and the scratch folder in it.
pub(crate) const SCRATCH: [&str; 2] = [".waypost", "files"];
/// Folders of agent hosts, whose plans are open.
const HOSTS: [&str; 4] = [".claude", ".codex", ".cursor", ".gemini"];
const HOST_PLANS: &str = "plans";
/// The endings of files that tools write.
const ENDINGS: [&str; 9] = ["md", "json", "yaml", "yml", "mmd", "dot", "graphml", "svg", "txt"];
/// The endings of files that hold text for people, which is read as it is.
const TEXT_ENDINGS: [&str; 2] = ["md", "txt"];
/// The ending of files that hold a plan for programs, which is read only as one.
const JSON_ENDING: &str = "json";
/// The last word of a plan's name.
const PLAN_WORDS: [&str; 2] = ["plan", "todo"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Folder {
    /// Below `.waypost/files`.
    Scratch,
    /// Below the plans of an agent host.
    HostPlans,
    /// Below the workspace, without a leading dot anywhere.
    Workspace,
}

/// A path that is open to tools by its folders.
#[derive(Debug)]
pub(crate) struct FilePath<'a> {
    /// The path as the caller wrote it, for messages.
    pub(crate) said: &'a str,
    pub(crate) folder: Folder,
    /// All its components below the workspace, the last of which is the file's name.
    pub(crate) names: Vec<String>,
}

impl<'a> FilePath<'a> {
    /// Refuses components with a leading dot, except for the folders that are open.
    pub(crate) fn new(said: &'a str, names: Vec<String>) -> Result<Self, ToolError> {
        let is = |at: usize, name: &str| names.get(at).is_some_and(|found| found == name);
        let (folder, depth) = if names.len() > 2 && is(0, SCRATCH[0]) && is(1, SCRATCH[1]) {
            (Folder::Scratch, 2)
        } else if names.len() > 2 && HOSTS.iter().any(|host| is(0, host)) && is(1, HOST_PLANS) {
            (Folder::HostPlans, 2)
        } else {
            (Folder::Workspace, 0)
        };
        let path = Self { said, folder, names };
        match path.names.iter().skip(depth).find(|name| name.starts_with('.')) {
            Some(name) => Err(ToolError::new(
                format!("{said}: tools neither read nor write {name}, because its name begins with a dot"),
                path.accepted_names(),
            )),
            None => Ok(path),
        }
    }

    pub(crate) fn name(&self) -> &str {
        self.names.last().map(String::as_str).unwrap_or_default()
    }

    /// The stem and the ending of the file's name, in lower case.
    fn parts(&self) -> (String, String) {
        let name = self.name().to_ascii_lowercase();
        let (stem, ending) = name.rsplit_once('.').unwrap_or((name.as_str(), ""));
        (stem.to_owned(), ending.to_owned())
    }

    /// Whether a tool may create the file.
    pub(crate) fn may_be_created(&self) -> bool {
        let (stem, ending) = self.parts();
        match self.folder {
            Folder::Scratch => ENDINGS.contains(&ending.as_str()),
            Folder::HostPlans => ending == "md" || is_plan(&stem) && ENDINGS.contains(&ending.as_str()),
            Folder::Workspace => is_plan(&stem) && ENDINGS.contains(&ending.as_str()),
        }
    }

    /// The error for a file that no tool writes.
    pub(crate) fn not_written(&self) -> ToolError {
        let message = format!("{} is not written by tools: it is not named like a plan", self.said);
        ToolError::new(message, self.accepted_names())
    }

    /// Names that would be accepted, close to the one that was not.
    pub(crate) fn accepted_names(&self) -> String {
        let name = self.name().trim_start_matches('.');
        let (_, ending) = self.parts();
        let ending = if ENDINGS.contains(&ending.as_str()) { ending.as_str() } else { "md" };
        let stem: String = name.split('.').next().unwrap_or_default().chars().take(40).collect();
        let stem = if stem.is_empty() { "my".to_owned() } else { stem };
        let new = if is_plan(&stem.to_ascii_lowercase()) { stem.clone() } else { format!("{stem}-plan") };
        format!("name it {}/{stem}.{ending}, or create {new}.{ending}", SCRATCH.join("/"))
    }

    /// Refuses a file that is not text for people.
    pub(crate) fn check_text(&self) -> Result<(), ToolError> {
        if TEXT_ENDINGS.contains(&self.parts().1.as_str()) {
            return Ok(());
        }
        let message = format!("{} is not read as text: its name does not end in .md or .txt", self.said);
        Err(ToolError::new(message, "name a file that ends in .md or .txt"))
    }

    /// Refuses a file whose ending is none that a plan is read from.
    pub(crate) fn check_plan(&self) -> Result<(), ToolError> {
        let (_, ending) = self.parts();
        if ending == JSON_ENDING || TEXT_ENDINGS.contains(&ending.as_str()) {
            return Ok(());
        }
        let message = format!("{} is not read: its name does not end in .md, .txt or .json", self.said);
        Err(ToolError::new(message, "name a file that ends in .md, .txt or .json"))
    }

    /// Refuses to read JSON as text: the whole file would become the text of a plan, whatever it holds.
    pub(crate) fn check_format(&self, text: &str, format: Option<Dialect>) -> Result<(), ToolError> {
        let is_json = match format.or_else(|| waypost_formats::sniff(text, Some(self.name()))) {
            Some(dialect) => !is_text(dialect),
            // JSON in no known format is refused by those who read it.
            None => text.trim_start().starts_with(['{', '[']),
        };
        if is_json || self.parts().1 != JSON_ENDING {
            return Ok(());
        }
        let message = format!("{} is read only as a plan in JSON, and this is not one", self.said);
        Err(ToolError::new(message, "name a file that ends in .md or .txt, or a plan in JSON"))
    }
}

/// Whether the stem of a name, in lower case, ends in a word for plans: `plan`, `release-plan`, `my.todo`.
fn is_plan(stem: &str) -> bool {
    PLAN_WORDS.iter().any(|word| {
        stem.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with(['.', '_', '-']))
    })
}

/// Whether a format is text for people.
fn is_text(dialect: Dialect) -> bool {
    match dialect {
        Dialect::Markdown | Dialect::Checklist | Dialect::Backlog => true,
        Dialect::Native
        | Dialect::Clido
        | Dialect::Jaato
        | Dialect::Frctl
        | Dialect::Agora
        | Dialect::PlanDocument
        | Dialect::TaskMaster
        | Dialect::Beads
        | Dialect::Mermaid
        | Dialect::Dot
        | Dialect::Graphml
        | Dialect::Svg => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(said: &str) -> Result<FilePath<'_>, ToolError> {
        FilePath::new(said, said.split('/').map(str::to_owned).collect())
    }

    #[test]
    fn names_of_plans_may_be_created_and_others_only_in_the_scratch_folder() {
        for said in [
            "plan.md",
            "TODO.txt",
            "docs/Release-Plan.MD",
            "a.plan.json",
            "x_todo.yml",
            "-plan.svg",
            ".claude/plans/idea.md",
            ".cursor/plans/a/b.plan.json",
            ".waypost/files/a/compose.yaml",
            ".waypost/files/Makefile.md",
        ] {
            assert!(path(said).unwrap().may_be_created(), "{said}");
        }
        for said in [
            "Makefile",
            "package.json",
            "compose.yaml",
            "CLAUDE.md",
            "build.rs",
            "plan",
            "plan.sh",
            "plan.md.sh",
            "airplan.md",
            "plans.md",
            "plan.md ",
            "plan.toml",
            ".codex/plans/settings.json",
            ".waypost/files/run.sh",
            ".waypost/files/Makefile",
        ] {
            assert!(!path(said).unwrap().may_be_created(), "{said}");
        }
    }

    #[test]
    fn a_leading_dot_closes_a_path_at_any_depth() {
        for said in [
            ".env",
            ".envrc",
            ".github/workflows/x-plan.yml",
            ".zed/settings.json",
            "a/.git/plan.md",
            "..plan.md",
            ".waypost/plan.md",
            ".waypost/files",
            ".Waypost/files/plan.md",
            "sub/.waypost/files/a.md",
            ".waypost/files/.envrc",
            ".claude/settings.json",
            ".claude/plans",
            ".claude/plans/.hidden/a.md",
            ".vscode/plans/a.md",
        ] {
            let refused = path(said).err().map(|refused| refused.message).unwrap_or_default();
            assert!(refused.contains("begins with a dot"), "{said}: {refused}");
        }
    }

    #[test]
    fn a_refusal_names_what_would_be_accepted() {
        for (said, expected) in [
            ("Makefile", "name it .waypost/files/Makefile.md, or create Makefile-plan.md"),
            ("a/compose.yaml", "name it .waypost/files/compose.yaml, or create compose-plan.yaml"),
            ("plan.sh", "name it .waypost/files/plan.md, or create plan.md"),
        ] {
            let found = path(said).unwrap();
            assert_eq!(found.not_written().hint, expected);
            assert!(path(expected.rsplit(' ').next().unwrap()).unwrap().may_be_created());
        }
        assert_eq!(path("..").unwrap_err().hint, "name it .waypost/files/my.md, or create my-plan.md");
    }

    #[test]
    fn json_is_never_read_as_text() {
        let check = |said: &str, text: &str, format| path(said).unwrap().check_format(text, format).is_ok();
        assert!(check("p.json", r#"{"tasks":[]}"#, None));
        assert!(check("p.json", r#"{"key":"secret"}"#, None), "it is no plan, which its reader says");
        assert!(!check("keys.json", r#"{"key":"secret"}"#, Some(Dialect::Markdown)));
        assert!(!check("keys.json", "- [ ] secret", None));
        assert!(!check("keys.JSON", "secret", None));
        assert!(!check("keys.json", "\u{feff}secret", None));
        assert!(
            check("notes.md", "- [ ] task", None) && check("notes.txt", "words", Some(Dialect::Markdown))
        );
        assert!(path("keys.json").unwrap().check_text().is_err());
        for said in ["notes.md", "notes.TXT"] {
            assert!(path(said).unwrap().check_text().is_ok() && path(said).unwrap().check_plan().is_ok());
        }
        for said in ["keys.yaml", "keys", "id_rsa.pem", "a.svg"] {
            assert!(path(said).unwrap().check_plan().is_err(), "{said}");
        }
    }
}
