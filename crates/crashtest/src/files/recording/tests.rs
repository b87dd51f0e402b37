//! A recording is read again as it was written; a damaged one is rejected.

use std::io::Cursor;
use std::sync::Arc;

use super::*;
use crate::cut::Flushes;
use crate::files::rules::Persistence;
use crate::files::served::Served;
use crate::files::step::Kind;
use crate::files::surviving::SurvivingFiles;
use crate::history::History as _;
use crate::state::State;

const RULES: Persistence = Persistence::Xfs;

fn create(name: &str, kind: Kind) -> Operation {
    Operation::Create { folder: Ino::ROOT, name: name.to_owned(), kind }
}

/// A recording of a few operations, as it stands in its file.
fn recorded() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording");
    let served = Served::recorded(Recorder::create(&path).unwrap());
    let did = |operation, data: &[u8]| served.lock().operate(operation, data).unwrap();
    let old = did(create("old", Kind::File), &[]).unwrap();
    did(Operation::Write { file: old, offset: 0 }, b"prepared");
    served.note(Entry::Begun);
    let sub = did(create("sub", Kind::Folder), &[]).unwrap();
    let new = Operation::Create { folder: sub, name: "new".to_owned(), kind: Kind::File };
    let file = did(new, &[]).unwrap();
    // Line ends and quotes among the bytes are bytes.
    did(Operation::Write { file, offset: 4_090 }, b"\n\"}\n torn between two pages");
    served.lock().sync(Syncs::Data(file)).unwrap();
    served.lock().sync(Syncs::Data(file)).unwrap(); // with nothing between, it is the same
    served.note(Entry::Acknowledged("one".to_owned()));
    let (from, to) = ((sub, "new".to_owned()), (Ino::ROOT, "old".to_owned()));
    did(Operation::Rename { from, to, how: Renaming::Exchange }, &[]);
    did(Operation::Zero { file, offset: 0, bytes: 4_095 }, &[]);
    let link =
        Operation::Symlink { folder: sub, name: "link".to_owned(), target: "../old".to_owned() };
    did(link, &[]);
    served.lock().set_owner(file, Owner { mode: 0o600, uid: 7, gid: 8 });
    served.lock().sync_all(Path::new(""));
    served.take_recorder().unwrap().unwrap().end(&path).unwrap();
    std::fs::read(path).unwrap()
}

#[test]
fn read_calls_are_the_recorded_ones() {
    let bytes = recorded();
    let RecordedFiles { history, owners } =
        read_from(Cursor::new(&bytes), FileHistory::new(RULES)).unwrap();
    let words: Vec<&str> =
        (0..history.event_count()).map(|event| history.word(event as u32)).collect();
    assert_eq!(
        words,
        [
            "creation of old",
            "write of 8 B at 0 of old",
            "mkdir sub",
            "creation of sub/new",
            "write of 27 B at 4090 of sub/new",
            "write of 27 B at 4090 of sub/new",
            "fdatasync of sub/new",
            "acknowledged one",
            "exchange of sub/new and old",
            "zeroing of 4095 B at 0 of old",
            "symbolic link sub/link to ../old",
            "sync",
        ]
    );
    assert_eq!((history.begin(), history.syncs().len()), (2, 2));
    assert!(history.syncs().iter().all(|sync| sync.time_ns > 0));
    assert_eq!(owners[&Ino(4)], Owner { mode: 0o600, uid: 7, gid: 8 });
    // Where nothing is lost, the files are as they were at the end.
    let closed = State::new(history.closed(), Vec::new());
    assert_eq!(history.check(&closed), Ok(()));
    let served = Served::of_states(owners);
    served.show(SurvivingFiles::new(Arc::new(history), &closed));
    let shown = served.lock();
    let tree = shown.tree();
    let (sub, file) = (tree.lookup(Ino::ROOT, "sub").unwrap(), Ino(4));
    assert_eq!(tree.lookup(Ino::ROOT, "old"), Some(file));
    let moved = tree.lookup(sub, "new").unwrap();
    assert_eq!(tree.read(moved, 0, 100).unwrap(), b"prepared");
    assert_eq!(tree.read(file, 4_093, 9).unwrap(), b"\0\0torn be");
    let link = tree.lookup(sub, "link").unwrap();
    assert_eq!((tree.kind(link), tree.target(link).as_deref()), (Kind::Symlink, Some("../old")));
    assert_eq!(shown.owner(file).mode, 0o600);
}

#[test]
fn fuzzing_begins_with_a_recording() {
    let seed = crate::fuzz::files_seed();
    assert_eq!(crate::fuzz::files(&seed), Ok(()));
}

#[test]
fn a_promise_that_no_line_holds_is_refused_when_it_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::recorded(Recorder::create(&folder.path().join("recording")).unwrap());
    served.note(Entry::Acknowledged("a".repeat(1 << 20)));
    assert_eq!(served.take_recorder().unwrap_err().kind(), io::ErrorKind::InvalidInput);
}

/// States of one recording under each of the rules: the standard promises least.
#[test]
fn one_recording_is_read_for_any_rules() {
    let bytes = recorded();
    let lost = |rules| {
        let history = read_from(Cursor::new(&bytes), FileHistory::new(rules)).unwrap().history;
        let cuts = history.cuts(Flushes::All, &|_| true);
        cuts.iter().map(|cut| cut.unsettled.len()).sum::<usize>()
    };
    assert!(lost(Persistence::Posix) > lost(Persistence::Xfs));
}

#[test]
fn recordings_cut_off_or_changed_are_refused_or_others() {
    let bytes = recorded();
    for length in 0..bytes.len() {
        let cut_off = read_from(Cursor::new(&bytes[..length]), FileHistory::new(RULES));
        // The last line may lack its end only if it is there.
        assert!(cut_off.is_err(), "{length} of {} bytes are taken for a recording", bytes.len());
    }
    for at in 0..bytes.len() {
        for change in [1, 0x20, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            drop(read_from(Cursor::new(&changed), FileHistory::new(RULES))); // no panic is what is asked
        }
    }
}

#[test]
fn hostile_operations_are_errors() {
    let read = |lines: &[&str]| {
        let text = format!("{HEAD}\n{}\n[0,\"ended\"]\n", lines.join("\n"));
        read_from(Cursor::new(text.into_bytes()), FileHistory::new(RULES))
            .map(|recorded| recorded.history)
    };
    let file = r#"[1,{"did":{"create":{"folder":1,"name":"a","kind":"file"}}}]"#;
    assert!(read(&[file]).is_ok());
    for line in [
        r#"[1,{"did":{"write":{"file":7,"offset":0}}}]"#,
        r#"[1,{"did":{"write":{"file":1,"offset":0}}}]"#,
        r#"[1,{"did":{"create":{"folder":2,"name":"b","kind":"file"}}}]"#,
        r#"[1,{"did":{"create":{"folder":1,"name":"..","kind":"file"}}}]"#,
        r#"[1,{"did":{"create":{"folder":1,"name":"a/b","kind":"file"}}}]"#,
        r#"[1,{"did":{"set_length":{"file":2,"bytes":18446744073709551615}}}]"#,
        r#"[1,{"synced":{"whole":9}}]"#,
        r#"[1,{"did":{"write":{"file":2,"offset":0}}},4294967295]"#,
        r#"[1,{"did":{"write":{"file":2,"offset":0}}},100]"#,
        r#"[1,{"unknown":1}]"#,
        "",
    ] {
        let error = read(&[file, line]).unwrap_err();
        assert!(error.starts_with("line 3: "), "{line}: {error}");
    }
    // A file of eight terabytes is a hole; to zero it takes no time.
    let long = r#"[1,{"did":{"set_length":{"file":2,"bytes":8796093022208}}}]"#;
    let zero = r#"[1,{"did":{"zero":{"file":2,"offset":0,"bytes":8796093022208}}}]"#;
    assert!(read(&[file, long, zero]).is_ok());
    // A folder that was removed lies in one that lies in it.
    let circle = [
        r#"[1,{"did":{"create":{"folder":1,"name":"a","kind":"folder"}}}]"#,
        r#"[1,{"did":{"create":{"folder":2,"name":"x","kind":"folder"}}}]"#,
        r#"[1,{"did":{"remove":{"folder":2,"name":"x","kind":"folder"}}}]"#,
        r#"[1,{"did":{"rename":{"from":[1,"a"],"to":[3,"a"],"how":"replace"}}}]"#,
        r#"[1,{"did":{"create":{"folder":3,"name":"b","kind":"file"}}}]"#,
    ];
    drop(read(&circle)); // no endless path is what is asked
}

/// Nodes of an earlier state are none of this one, and what was done to it is forgotten.
#[test]
fn nothing_of_a_state_is_in_the_next() {
    let RecordedFiles { history, owners } =
        read_from(Cursor::new(&recorded()), FileHistory::new(RULES)).unwrap();
    let history = Arc::new(history);
    let served = Served::of_states(owners);
    let at = |event| SurvivingFiles::new(Arc::clone(&history), &State::new(event, Vec::new()));
    served.show(at(history.closed()));
    let node = served.lock().attributes(Ino(2)).ino;
    assert_eq!(served.lock().ino(node).unwrap(), Ino(2));
    let owner = served.lock().owner(Ino(2));
    served.lock().operate(Operation::Write { file: Ino(2), offset: 0 }, b"recovered").unwrap();
    served.lock().operate(create("more", Kind::File), &[]).unwrap();
    served.lock().set_owner(Ino(2), Owner { mode: 0, uid: 1, gid: 1 });
    served.show(at(history.closed()));
    let shown = served.lock();
    assert_eq!(shown.ino(node).unwrap_err().raw_os_error(), Some(nix::libc::ESTALE));
    assert_eq!(shown.owner(Ino(2)), owner);
    assert_eq!(shown.tree().lookup(Ino::ROOT, "more"), None);
    assert_eq!(shown.tree().read(Ino(2), 0, 99).unwrap(), b"prepared");
}
