//! The account's files: where they are, who may have written them, and how they are written.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;

use waypost_account::{ACCOUNT_FILE_BYTES_MAX, Account, Records};

use crate::{Scratch, mode, set_mode};

#[track_caller]
fn check(account: &Account, file: &Path, expected: Result<Option<&str>, &str>) {
    let found = account.read(file).map_err(|error| format!("{} {error}", error.code()));
    let found = found.map(|bytes| bytes.map(|bytes| String::from_utf8(bytes).unwrap()));
    assert_eq!(found.as_ref().map(Option::as_deref).map_err(String::as_str), expected);
}

#[test]
fn files_are_found_by_the_account_and_never_by_variables() {
    let current = Account::current();
    assert_eq!(current.uid, rustix::process::geteuid().as_raw());
    assert!(!current.name.is_empty());
    let scratch = Scratch::new();
    let account = &scratch.account;
    let home = scratch.home();
    let etc = Path::new("/etc/waypost");
    assert_eq!(account.operator_config_file(), etc.join("config.toml"));
    assert_eq!(account.user_config_file(), Some(home.join(".config/waypost/config.toml")));
    let signers = [etc.join("allowed_signers"), home.join(".config/waypost/allowed_signers")];
    assert_eq!(account.signer_files(), signers);
    assert_eq!(account.seal_key_file(), Some(home.join(".local/state/waypost/seal.key")));
    let record = account.record_file(Records::Tokens, Path::new("/srv/plans")).unwrap();
    let name = "7e6f9ada0445de7972f53bf9aa54b444b16c338920934968b416676f0ee3bb4d.json";
    assert_eq!(record, home.join(".local/state/waypost/tokens").join(name));
    let homeless = Account { home: None, ..account.clone() };
    assert_eq!(homeless.user_config_file(), None);
    assert_eq!(homeless.record_file(Records::Trust, Path::new("/srv")), None);
}

#[test]
fn a_file_that_others_could_have_written_is_not_used_and_named() {
    let scratch = Scratch::new();
    let folder = scratch.home().join(".config/waypost");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("allowed_signers");
    check(&scratch.account, &file, Ok(None));
    fs::write(&file, "text").unwrap();
    for folder in [folder.as_path(), folder.parent().unwrap()] {
        set_mode(folder, 0o755);
    }
    set_mode(&file, 0o644);
    check(&scratch.account, &file, Ok(Some("text")));
    let shown = file.display().to_string();
    for (path, bad, good) in
        [(&file, 0o664, 0o644), (&file, 0o646, 0o644), (&folder, 0o777, 0o755), (&folder, 0o1777, 0o755)]
    {
        set_mode(path, bad);
        let said = format!("insecure_file {shown} is not used: others can write {}", path.display());
        check(&scratch.account, &file, Err(&said));
        set_mode(path, good);
    }
    check(&scratch.account, &file, Ok(Some("text")));
    let stranger = scratch.stranger(&folder);
    let said = stranger.read(&file).unwrap_err();
    assert_eq!(said.code(), "insecure_file");
    assert!(said.to_string().contains(" belongs to uid "), "{said}");
    assert!(!said.hint().is_empty());
}

#[test]
fn a_home_that_only_the_private_group_can_write_is_fine() {
    let scratch = Scratch::new();
    let file = scratch.home().join("file");
    fs::write(&file, "text").unwrap();
    set_mode(&file, 0o664);
    set_mode(&scratch.home(), 0o775);
    let group = fs::metadata(&file).unwrap().gid();
    let said = format!("insecure_file {0} is not used: others can write {0}", file.display());
    check(&scratch.account, &file, Err(&said));
    let account = Account { private_group: Some(group), ..scratch.account.clone() };
    check(&account, &file, Ok(Some("text")));
    let other = Account { private_group: Some(group + 1), ..scratch.account.clone() };
    check(&other, &file, Err(&said));
}

#[test]
fn links_are_judged_by_where_they_lead_and_pipes_are_not_waited_for() {
    let scratch = Scratch::new();
    let (loose, link) = (scratch.home().join("loose"), scratch.home().join("link"));
    fs::create_dir(&loose).unwrap();
    fs::write(loose.join("file"), "text").unwrap();
    set_mode(&loose.join("file"), 0o600);
    symlink(loose.join("file"), &link).unwrap();
    set_mode(&loose, 0o755);
    check(&scratch.account, &link, Ok(Some("text")));
    set_mode(&loose, 0o777);
    let said = format!("insecure_file {} is not used: others can write {}", link.display(), loose.display());
    check(&scratch.account, &link, Err(&said));
    let lost = scratch.home().join("lost");
    symlink(scratch.home().join("gone"), &lost).unwrap();
    check(
        &scratch.account,
        &lost,
        Err(&format!("account_file {}: is a link that leads nowhere", lost.display())),
    );
    let pipe = scratch.home().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    check(&scratch.account, &pipe, Err(&format!("account_file {}: is not a plain file", pipe.display())));
}

#[test]
fn a_file_has_at_most_so_many_bytes() {
    let scratch = Scratch::new();
    let file = scratch.home().join("file");
    let bytes = vec![b'a'; ACCOUNT_FILE_BYTES_MAX as usize + 1];
    scratch.account.write(&file, &bytes[1..]).unwrap();
    assert!(scratch.account.read(&file).is_ok());
    scratch.account.write(&file, &bytes).unwrap();
    let said = format!("account_file {} is larger than 4194304 bytes", file.display());
    check(&scratch.account, &file, Err(&said));
}

#[test]
fn state_files_are_written_whole_and_only_for_the_account() {
    let scratch = Scratch::new();
    let file = scratch.account.record_file(Records::Trust, Path::new("/srv")).unwrap();
    scratch.account.write(&file, b"one").unwrap();
    scratch.account.write(&file, b"two").unwrap();
    check(&scratch.account, &file, Ok(Some("two")));
    assert_eq!(mode(&file), 0o600);
    for folder in file.ancestors().skip(1).take_while(|folder| *folder != scratch.home()) {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    let entries = fs::read_dir(file.parent().unwrap()).unwrap().count();
    assert_eq!(entries, 1, "nothing is left beside it");
    let again = scratch.account.write_new(&file, b"three").unwrap_err();
    assert!(again.to_string().contains("File exists"), "{again}");
    assert_eq!(fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    set_mode(file.parent().unwrap(), 0o777);
    assert_eq!(scratch.account.write(&file, b"four").unwrap_err().code(), "insecure_file");
}
