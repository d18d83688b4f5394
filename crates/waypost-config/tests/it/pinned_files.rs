//! Files that executors pin.

use serde_json::json;
use waypost_config::{Definitions, PINNED_BYTES_MAX, PINNED_FILES_MAX};

use crate::config::load;

#[test]
fn what_a_pinned_file_contains_is_part_of_the_definition() {
    use std::os::unix::ffi::OsStrExt;

    let root = std::env::temp_dir().join(format!("waypost-pins-{}", std::process::id()));
    std::fs::create_dir_all(root.join("scripts")).unwrap();
    let text =
        "[executors.run]\nkind = \"process\"\ncommand = [\"make\"]\npin = [\"Makefile\", \"scripts/*.sh\"]\n";
    let mut config = load(text).unwrap();
    config.pinned_files.workspace.clone_from(&root);
    let pins = || Definitions::of(&config).executors["run"]["process"]["pin"].clone();
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    assert_eq!(pins(), json!({ "Makefile": "no such file", "scripts/*.sh": "no such file" }));
    write("Makefile", "all:\n");
    let first = pins();
    assert!(first["Makefile"].as_str().unwrap().starts_with("sha256:"), "{first}");
    // The same size, and within one tick of the clock.
    write("Makefile", "ALL:\n");
    let second = pins();
    assert_ne!(first, second);
    write("scripts/a.sh", "");
    write("scripts/b.txt", "");
    assert_eq!(pins().as_object().unwrap().keys().collect::<Vec<_>>(), ["Makefile", "scripts/a.sh"]);
    // Large files are read again only when they were changed.
    write("scripts/large.sh", &"x".repeat(100_000));
    let large = pins()["scripts/large.sh"].clone();
    assert_eq!(pins()["scripts/large.sh"], large);
    write("scripts/large.sh", &"x".repeat(100_001));
    assert_ne!(pins()["scripts/large.sh"], large);
    // A link is what it leads to, and where that is.
    let link = |target: &str| {
        let _absent = std::fs::remove_file(root.join("scripts/link.sh"));
        std::os::unix::fs::symlink(target, root.join("scripts/link.sh")).unwrap();
        pins()["scripts/link.sh"].as_str().unwrap().to_owned()
    };
    write("one", "same");
    write("two", "same");
    let one = link("../one");
    assert!(one.starts_with("sha256:") && one.ends_with(" (link to one)"), "{one}");
    assert_ne!(link("../two"), one, "another target");
    write("one", "other");
    assert_ne!(link("../one"), one, "the same target with another content");
    assert!(link("/etc/passwd").ends_with(" (link to /etc/passwd)"));
    assert_eq!(link("/etc"), "not a plain file");
    // So is a folder: what a script finds beside it is not what it was.
    let plain = pins()["scripts/a.sh"].as_str().unwrap().to_owned();
    std::fs::create_dir_all(root.join("other")).unwrap();
    std::fs::rename(root.join("scripts"), root.join("other/scripts")).unwrap();
    std::os::unix::fs::symlink("other/scripts", root.join("scripts")).unwrap();
    assert_eq!(pins()["scripts/a.sh"], format!("{plain} (link to other/scripts/a.sh)"));
    std::fs::remove_file(root.join("scripts")).unwrap();
    std::fs::rename(root.join("other/scripts"), root.join("scripts")).unwrap();
    // No pattern matches what is not UTF-8.
    let odd = root.join("scripts").join(std::ffi::OsStr::from_bytes(b"\xff.sh"));
    std::fs::write(&odd, "").unwrap();
    assert_eq!(pins()["scripts/*.sh"], "there is a file whose name is not UTF-8");
    std::fs::remove_file(odd).unwrap();
    // Nothing has a hash beyond what is allowed.
    std::fs::File::create(root.join("scripts/huge.sh")).unwrap().set_len(PINNED_BYTES_MAX).unwrap();
    assert_eq!(pins()["scripts/huge.sh"], format!("more than {PINNED_BYTES_MAX} bytes"));
    std::fs::remove_file(root.join("scripts/huge.sh")).unwrap();
    (0..PINNED_FILES_MAX).for_each(|number| write(&format!("scripts/{number}.sh"), ""));
    assert_eq!(pins(), json!({ "scripts/*.sh": format!("more than {PINNED_FILES_MAX} files") }));
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn two_stars_pin_the_files_of_all_folders() {
    let root = std::env::temp_dir().join(format!("waypost-pins-folders-{}", std::process::id()));
    std::fs::create_dir_all(root.join("lib/inner")).unwrap();
    let other = root.with_extension("other");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("far.sh"), "").unwrap();
    for name in ["lib/run.sh", "lib/inner/more.sh"] {
        std::fs::write(root.join(name), "").unwrap();
    }
    std::os::unix::fs::symlink(&other, root.join("lib/link")).unwrap();
    for pattern in ["lib/**", "lib/**/*", "**"] {
        let text =
            format!("[executors.run]\nkind = \"process\"\ncommand = [\"make\"]\npin = [{pattern:?}]\n");
        let mut config = load(&text).unwrap();
        config.pinned_files.workspace.clone_from(&root);
        let pins = config.pinned_files.of("executors.run").unwrap();
        let names: Vec<&str> = pins.keys().map(String::as_str).collect();
        assert_eq!(names, ["lib/inner/more.sh", "lib/link/far.sh", "lib/run.sh"], "{pattern}");
    }
    [root, other].iter().for_each(|folder| std::fs::remove_dir_all(folder).unwrap());
}

#[test]
fn pins_are_relative_to_where_the_program_runs() {
    let root = std::env::temp_dir().join(format!("waypost-pins-directory-{}", std::process::id()));
    std::fs::create_dir_all(root.join("sub")).unwrap();
    std::fs::write(root.join("sub/Makefile"), "all:\n").unwrap();
    let body = "command = [\"make\"]\ndirectory = \"sub\"\npin = [\"Makefile\"]\n";
    let mut config = load(&format!("[executors.run]\nkind = \"process\"\n{body}[checks.c]\n{body}")).unwrap();
    config.pinned_files.workspace.clone_from(&root);
    let definitions = Definitions::of(&config);
    for pins in [&definitions.executors["run"]["process"]["pin"], &definitions.checks["c"]["process"]["pin"]]
    {
        assert!(pins["sub/Makefile"].as_str().unwrap().starts_with("sha256:"), "{pins}");
    }
    // The same file of a copy has the same hash.
    let copy = root.join("copy");
    std::fs::create_dir_all(copy.join("sub")).unwrap();
    let of_copy = || config.pinned_files.of_copy("executors.run", &copy);
    assert_ne!(of_copy(), config.pinned_files.of("executors.run"));
    std::fs::copy(root.join("sub/Makefile"), copy.join("sub/Makefile")).unwrap();
    assert_eq!(of_copy(), config.pinned_files.of("executors.run"));
    std::fs::remove_dir_all(&root).unwrap();
}

#[test]
fn the_file_that_says_where_a_job_goes_is_pinned_if_agents_can_write_it() {
    let root = std::env::temp_dir().join(format!("waypost-kubeconfig-pins-{}", std::process::id()));
    std::fs::create_dir_all(root.join(".kube")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(root.join(name), text).unwrap();
    let pins = |kubeconfig: &str| {
        let text = format!(
            "[executors.d]\nkind = \"dispatch\"\n[executors.d.workers.k]\ntarget = \"kubernetes\"\nimage = \"i\"\nkubeconfig = {kubeconfig:?}\n"
        );
        let mut config = load(&text).unwrap();
        config.pinned_files.workspace.clone_from(&root);
        Definitions::of(&config).executors["d/k"]["kubernetes"]["pin"].clone()
    };
    write(".kube/config", "server: https://prod.example.org");
    let inside = root.join(".kube/config");
    for kubeconfig in [".kube/config", inside.to_str().unwrap()] {
        let before = pins(kubeconfig);
        assert!(before[".kube/config"].as_str().unwrap().starts_with("sha256:"), "{before}");
        write(".kube/config", &format!("server: https://evil.example.org/{}", kubeconfig.len()));
        assert_ne!(pins(kubeconfig), before);
    }
    let own = pins(".kube/config");
    write("elsewhere", &std::fs::read_to_string(&inside).unwrap());
    std::fs::remove_file(&inside).unwrap();
    std::os::unix::fs::symlink("../elsewhere", &inside).unwrap();
    assert_ne!(pins(".kube/config"), own, "a link is another file");
    assert_eq!(pins("/etc/kubernetes/admin.conf"), json!({}), "credentials outside are rotated");
    std::fs::remove_dir_all(&root).unwrap();
}
