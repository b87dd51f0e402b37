//! The recording that calls make.

use nix::libc;

use super::*;
use crate::files::history::FileHistory;
use crate::files::recording::{Recorder, read};
use crate::files::rules::Persistence;

/// The node of a new file of a new recording, and what was recorded once `does` was done.
fn recorded(does: impl FnOnce(&Served, INodeNo)) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let served = Served::recorded(Recorder::create(&path).unwrap());
    let (folder, name, kind) = (Ino::ROOT, "f".to_owned(), Kind::File);
    let file = served.lock().operate(Operation::Create { folder, name, kind }, &[]).unwrap();
    let node = served.lock().attributes(file.unwrap()).ino;
    does(&served, node);
    served.take_recorder().unwrap().unwrap().end(&path).unwrap();
    let history = read(&path, FileHistory::new(Persistence::Xfs)).unwrap().history;
    (1..history.event_count() as u32).map(|event| history.word(event).to_owned()).collect()
}

#[test]
fn a_synchronous_write_is_synced_once_and_behind_it() {
    let words = recorded(|served, node| {
        served.write_node(node, 0, b"plain", OpenFlags(libc::O_RDWR)).unwrap();
        served.write_node(node, 0, b"data", OpenFlags(libc::O_RDWR | libc::O_DSYNC)).unwrap();
        served.write_node(node, 0, b"whole", OpenFlags(libc::O_RDWR | libc::O_SYNC)).unwrap();
        // Some kernels ask for it, too.
        served.sync_node(node, Syncs::Whole).unwrap();
    });
    assert_eq!(
        words,
        [
            "write of 5 B at 0 of f",
            "write of 4 B at 0 of f",
            "fdatasync of f",
            "write of 5 B at 0 of f",
            "fsync of f",
        ]
    );
}

#[test]
fn calls_fail_by_the_rules_of_drives_and_a_failed_sync_gives_up() {
    let words = recorded(|served, node| {
        let rules = ["write:nth=2", "flush:nth=1", "read:nth=1"];
        served.set_faults(&rules.map(|rule| rule.parse().unwrap()));
        let write = || served.write_node(node, 0, b"data", OpenFlags(libc::O_RDWR));
        write().unwrap();
        let is_eio = |result: io::Result<()>| result.unwrap_err().raw_os_error() == Some(libc::EIO);
        assert!(is_eio(write()), "the second write fails, and changes nothing");
        assert!(is_eio(served.sync_node(node, Syncs::Whole)));
        served.sync_node(node, Syncs::Whole).unwrap();
        let failed: Vec<u64> = served.take_faults().iter().map(|report| report.failed).collect();
        assert_eq!(failed, [1, 1, 0]);
        write().unwrap();
    });
    let want =
        ["write of 4 B at 0 of f", "failed fsync of f", "fsync of f", "write of 4 B at 0 of f"];
    assert_eq!(words, want);
}

#[test]
fn ranges_are_allocated_punched_and_zeroed_as_fallocate_says() {
    let words = recorded(|served, node| {
        let flags = |flags: FallocateFlags| flags.bits();
        let (keep, punch, zero) = (
            FallocateFlags::FALLOC_FL_KEEP_SIZE,
            FallocateFlags::FALLOC_FL_PUNCH_HOLE,
            FallocateFlags::FALLOC_FL_ZERO_RANGE,
        );
        served.write_node(node, 0, &[1; 9_000], OpenFlags(libc::O_RDWR)).unwrap();
        served.allocate(node, 0, 50_000, flags(keep)).unwrap();
        served.allocate(node, 4_096, 4_096, flags(punch | keep)).unwrap();
        served.allocate(node, 8_192, 4_096, flags(zero)).unwrap();
        served.allocate(node, 0, 20_000, 0).unwrap();
        let shown = served.lock();
        let bytes = shown.tree().read(shown.ino(node).unwrap(), 4_090, 30_000).unwrap();
        assert_eq!(bytes.len(), 20_000 - 4_090);
        assert!(
            bytes[..6].iter().all(|byte| *byte == 1) && bytes[6..].iter().all(|byte| *byte == 0)
        );
        drop(shown);
        for moved in
            [FallocateFlags::FALLOC_FL_COLLAPSE_RANGE, FallocateFlags::FALLOC_FL_INSERT_RANGE]
        {
            let error = served.allocate(node, 0, 4_096, flags(moved)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP));
        }
    });
    let calls: Vec<&str> = words.iter().map(|word| word.split(' ').next().unwrap()).collect();
    // Pages each by itself; the length that a range brings is set.
    let want = ["write", "write", "write", "zeroing", "zeroing", "truncation", "truncation"];
    assert_eq!(calls, want, "{words:?}");
}

/// A write into a punched hole gets a new block, whose entry stands behind the journal's.
#[test]
fn bytes_in_a_punched_hole_are_behind_the_journal() {
    use crate::cut::Flushes;
    use crate::files::surviving::SurvivingFiles;
    use crate::files::tree::Tree;
    use crate::history::History as _;
    let shows_new_without_rename = |punches: bool| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording");
        let served = Served::recorded(Recorder::create(&path).unwrap());
        let make = |name: &str| {
            let (folder, name, kind) = (Ino::ROOT, name.to_owned(), Kind::File);
            served.lock().operate(Operation::Create { folder, name, kind }, &[]).unwrap().unwrap()
        };
        let (file, _) = (make("f"), make("a"));
        let write = |byte| {
            served.lock().operate(Operation::Write { file, offset: 0 }, &[byte; 4_096]).unwrap()
        };
        write(1);
        served.lock().sync_all(std::path::Path::new(""));
        let (from, to) = ((Ino::ROOT, "a".to_owned()), (Ino::ROOT, "b".to_owned()));
        served.lock().operate(Operation::Rename { from, to, how: Renaming::New }, &[]).unwrap();
        if punches {
            served.lock().operate(Operation::Zero { file, offset: 0, bytes: 4_096 }, &[]).unwrap();
        }
        write(2);
        served.take_recorder().unwrap().unwrap().end(&path).unwrap();
        let history = Arc::new(read(&path, FileHistory::new(Persistence::Xfs)).unwrap().history);
        let cuts = history.cuts(Flushes::All, &|_| true);
        let states = crate::choose::every_state(cuts.last().unwrap(), 1_000).unwrap();
        states.into_iter().any(|state| {
            let tree = Tree::over(SurvivingFiles::new(Arc::clone(&history), &state));
            let is_new = tree.read(file, 0, 1).unwrap() == [2];
            is_new && tree.lookup(Ino::ROOT, "b").is_none()
        })
    };
    assert!(shows_new_without_rename(false), "what is written in place waits for nothing");
    assert!(!shows_new_without_rename(true));
}

#[test]
fn data_and_holes_are_found() {
    drop(recorded(|served, node| {
        served.write_node(node, 8_192, &[1; 100], OpenFlags(libc::O_RDWR)).unwrap();
        served.allocate(node, 0, 1 << 40, 0).unwrap();
        let shown = served.lock();
        let (tree, file) = (shown.tree(), shown.ino(node).unwrap());
        let seek =
            |from, is_data| tree.seek(file, from, is_data).map_err(|error| error.raw_os_error());
        assert_eq!((seek(0, true), seek(0, false)), (Ok(8_192), Ok(0)));
        assert_eq!((seek(8_200, true), seek(8_200, false)), (Ok(8_200), Ok(12_288)));
        assert_eq!(seek(12_288, true), Err(Some(libc::ENXIO)));
        assert_eq!(seek(1 << 40, false), Err(Some(libc::ENXIO)));
        assert_eq!((shown.attributes(file).blocks, shown.attributes(file).nlink), (8, 1));
    }));
}

#[test]
fn names_that_are_no_utf8_are_refused_as_a_file_system_may() {
    use std::os::unix::ffi::OsStrExt;
    let name = OsStr::from_bytes(b"\xff");
    let error = utf8(name).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::EILSEQ));
}

#[test]
fn attributes_are_recorded_with_their_bytes_and_flags_are_heeded() {
    let words = recorded(|served, node| {
        let name = OsStr::new("user.a");
        let set = |value: &[u8], flags| served.set_xattr(node, name, value, flags);
        let code = |done: io::Result<()>| done.unwrap_err().raw_os_error();
        assert_eq!(code(set(b"one", libc::XATTR_REPLACE)), Some(libc::ENODATA));
        set(b"one", libc::XATTR_CREATE).unwrap();
        assert_eq!(code(set(b"two", libc::XATTR_CREATE)), Some(libc::EEXIST));
        let modified = served.lock().attributes(Ino(2)).mtime;
        set(b"three", libc::XATTR_REPLACE).unwrap();
        assert_eq!(served.lock().attributes(Ino(2)).mtime, modified);
        assert_eq!(&*served.xattr(node, name).unwrap(), b"three");
        set(b"", 0).unwrap();
        served.set_xattr(node, OsStr::new("security.b"), &[0, 10, 255], 0).unwrap();
        assert_eq!(served.xattrs(node).unwrap(), b"security.b\0user.a\0");
        served.remove_xattr(node, name).unwrap();
        assert_eq!(code(served.remove_xattr(node, name)), Some(libc::ENODATA));
        let acl = OsStr::new("system.posix_acl_access");
        assert_eq!(code(served.set_xattr(node, acl, &[], 0)), Some(libc::EOPNOTSUPP));
    });
    assert_eq!(
        words,
        [
            "setxattr of user.a, 3 B, on f",
            "setxattr of user.a, 5 B, on f",
            "setxattr of user.a, 0 B, on f",
            "setxattr of security.b, 3 B, on f",
            "removexattr of user.a on f",
        ]
    );
}
