//! Lists the files of the dashboard for `src/assets.rs`, which embeds them: how many chunks the build of `web/` makes is
//! decided there.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=assets");
    let folder = |name: &str| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let assets = folder("CARGO_MANIFEST_DIR").join("assets");
    let mut files = Vec::new();
    list(&assets, &mut files)?;
    files.sort();
    let mut text = String::from("[\n");
    for file in &files {
        let name = file.strip_prefix(&assets).unwrap_or(file).to_string_lossy().replace('\\', "/");
        let path = format!("/{name}");
        let _ = writeln!(text, "    ({path:?}, {:?}, include_bytes!({file:?})),", media_type(file)?);
    }
    text.push_str("]\n");
    fs::write(folder("OUT_DIR").join("assets.rs"), text)
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, files)?;
        } else {
            files.push(path);
        }
    }
    Ok(())
}

fn media_type(file: &Path) -> io::Result<&'static str> {
    match file.extension().and_then(|extension| extension.to_str()) {
        Some("html") => Ok("text/html; charset=utf-8"),
        Some("svg") => Ok("image/svg+xml"),
        Some("js") => Ok("text/javascript"),
        Some("css") => Ok("text/css"),
        Some("txt") => Ok("text/plain; charset=utf-8"),
        _ => Err(io::Error::other(format!("{}: no media type is known for this file", file.display()))),
    }
}
