//! `waypost completions`: prints the script that lets a shell ask this program for completions. `waypost man` writes the
//! manual pages.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;
use clap_complete::env::Shells;

use waypost_cli::context::Context;
use waypost_cli::error::{Failure, Outcome};

/// The variable by which a shell asks for completions.
pub(crate) const VARIABLE: &str = "WAYPOST_COMPLETE";
/// The name under which shells find this program.
const NAME: &str = "waypost";
/// A file that zsh loads by itself is called instead of being sourced, so that it has to complete the first word too.
const ZSH_CALLED: &str = "
if [ \"$funcstack[1]\" = \"_waypost\" ]; then
    _clap_dynamic_completer_waypost \"$@\"
fi
";

const EXAMPLES: &str = "\
Completes commands, options, and what the store and the configuration know: plans, tasks, executors, queues.

Examples:
  waypost completions bash > ~/.local/share/bash-completion/completions/waypost
  waypost completions zsh > ~/.zfunc/_waypost     # a folder in fpath
  waypost completions fish > ~/.config/fish/completions/waypost.fish";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Completions {
    /// Shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let name = self.shell.to_string();
        let mut script = Vec::new();
        let shells = Shells::builtins();
        let shell = shells.completer(&name);
        let shell = shell.ok_or_else(|| Failure::usage(format!("{name} has no completions"), ""))?;
        shell
            .write_registration(VARIABLE, NAME, NAME, NAME, &mut script)
            .map_err(|error| Failure::failed(error.to_string(), ""))?;
        let script = String::from_utf8(script).map_err(|error| Failure::failed(error.to_string(), ""))?;
        context.out.text(script.trim_start());
        if self.shell == Shell::Zsh {
            context.out.text(ZSH_CALLED);
        }
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Folder to write the pages to
    folder: PathBuf,
}

impl Man {
    pub(crate) fn run(self, context: &mut Context) -> Outcome {
        let failed = |error: std::io::Error| Failure {
            hint: "name a folder that is empty, and that you can write".to_owned(),
            ..Failure::file(&self.folder, &error)
        };
        fs::create_dir_all(&self.folder).map_err(failed)?;
        let definition = (context.program.definition)();
        let version = definition.get_version().unwrap_or_default().to_owned();
        clap_mangen::generate_to(definition, &self.folder).map_err(failed)?;
        for page in fs::read_dir(&self.folder).map_err(failed)? {
            let path = page.map_err(failed)?.path();
            let is_ours = |name: &str| name.starts_with(NAME) && name.ends_with(".1");
            if path.file_name().and_then(|name| name.to_str()).is_some_and(is_ours) {
                let text = fs::read_to_string(&path).map_err(failed)?;
                fs::write(&path, finished_page(&text, &version)).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// Names the sections and the source of a generated page as other pages do.
fn finished_page(text: &str, version: &str) -> String {
    let line = |line: &str| match line {
        ".SH EXTRA" => ".SH \"NOTES AND EXAMPLES\"\n".to_owned(),
        line if line.starts_with(".TH ") => {
            let name = line.split_whitespace().nth(1).unwrap_or(NAME);
            format!(".TH {name} 1 \"\" \"{NAME} {version}\"\n")
        }
        line => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}
