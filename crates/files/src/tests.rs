//! The folder's contents, as a reader sees them, after each way that a write can end.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn replaces_whole_and_leaves_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    write(&path, b"old and longer").unwrap();
    write(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(folder.path()), ["a.json"]);
}

#[test]
fn failed_and_dropped_writes_leave_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    write(&path, b"old").unwrap();
    let failed = write_with(&path, |file| {
        file.write_all(b"half of")?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert_eq!(failed.unwrap_err().to_string(), format!("cannot write {}", path.display()));
    let mut file = NewFile::create(&path).unwrap();
    file.write_all(b"half of").unwrap();
    drop(file);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(folder.path()), ["a"]);
}

#[test]
fn streams_and_rewrites_its_head() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let mut file = NewFile::create(&path).unwrap();
    file.write_all(b"0000 records").unwrap();
    file.rewrite_head(b"0012").unwrap();
    file.write_all(b" in all").unwrap();
    assert!(!path.exists());
    assert_eq!(file.commit().unwrap(), 19);
    assert_eq!(fs::read(&path).unwrap(), b"0012 records in all");
}

#[test]
fn a_new_file_replaces_nothing_not_even_one_that_appears_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    let early = NewFile::create_new(&path).unwrap();
    write(&path, b"somebody's").unwrap();
    assert!(matches!(NewFile::create_new(&path), Err(WriteError::Exists { .. })));
    assert!(matches!(early.commit(), Err(WriteError::Exists { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"somebody's");
    assert_eq!(names(folder.path()), ["a"]);
}

/// The mode of a file that `File::create` makes says what the umask is.
#[test]
fn the_mode_is_that_of_any_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let mode = |name| fs::metadata(folder.path().join(name)).unwrap().permissions().mode();
    File::create(folder.path().join("plain")).unwrap();
    write(&folder.path().join("ours"), b"x").unwrap();
    assert_eq!(mode("ours"), mode("plain"));
}

#[test]
fn links_are_followed() {
    let folder = tempfile::tempdir().unwrap();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    write(&file, b"old").unwrap();
    symlink(&file, &link).unwrap();
    write(&link, b"new").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
}

#[test]
fn devices_are_written_to_directly() {
    let null = Path::new("/dev/null");
    let mut file = NewFile::create(null).unwrap();
    file.write_all(b"12345").unwrap();
    file.rewrite_head(b"67").unwrap();
    assert_eq!(file.commit().unwrap(), 5);
    assert!(!fs::metadata(null).unwrap().is_file());
    assert!(check_writable(null).is_ok());
    assert_eq!(write(Path::new("/dev/full"), b"x").unwrap_err().into_io().raw_os_error(), Some(28));
}

#[test]
fn folders_and_missing_folders_are_refused() {
    let here = tempfile::tempdir().unwrap();
    let refused = |path: &Path, kind| {
        assert_eq!(write(path, b"x").unwrap_err().into_io().kind(), kind);
        assert_eq!(check_writable(path).unwrap_err().into_io().kind(), kind);
    };
    refused(here.path(), io::ErrorKind::IsADirectory);
    refused(Path::new("/no/such/folder/a"), io::ErrorKind::NotFound);
    assert!(check_writable(&here.path().join("a")).is_ok());
    assert_eq!(names(here.path()), [""; 0]);
}

#[test]
fn a_bare_name_is_in_the_folder_one_is_in() {
    assert_eq!(folder(Path::new("a")), Path::new("."));
    assert_eq!(folder(Path::new("/a")), Path::new("/"));
    assert_eq!(folder(Path::new("b/a")), Path::new("b"));
}
