//! Drives of one recording lose power together or alone, and no sync of one is one of another.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::sync::Arc;

use nix::errno::Errno;

use crate::cut::Flushes;
use crate::files::atom::Ino;
use crate::files::history::FileHistory;
use crate::files::operation::Operation;
use crate::files::recording::{HEAD, Recorder, read_from};
use crate::files::rules::Persistence;
use crate::files::served::Served;
use crate::files::step::Kind;
use crate::files::surviving::SurvivingFiles;
use crate::files::tree::Renaming;
use crate::history::History as _;
use crate::search::Search;
use crate::state::State;

const ONE: Ino = Ino(2);
const TWO: Ino = Ino(3);

/// Two drives, a new file on each, and what comes then; the two files have the numbers 4 and 5.
fn recorded(rules: Persistence, more: &[&str]) -> Arc<FileHistory> {
    let lines = [
        r#"{"drives":2}"#,
        r#""begun""#,
        r#"{"did":{"create":{"folder":2,"name":"a","kind":"file"}}}"#,
        r#"{"did":{"create":{"folder":3,"name":"b","kind":"file"}}}"#,
    ];
    let lines = lines.iter().chain(more).chain(&[r#""ended""#]);
    let lines: Vec<String> = lines.map(|line| format!("[1,{line}]")).collect();
    let text = format!("{HEAD}\n{}\n", lines.join("\n"));
    let read = read_from(Cursor::new(text.into_bytes()), FileHistory::new(rules));
    Arc::new(read.unwrap().history)
}

/// Whether each of the files is there, in all states of the last moment.
fn left(history: &Arc<FileHistory>) -> BTreeSet<(bool, bool)> {
    let cuts = history.cuts(Flushes::All, &|at| at == history.closed());
    let is_there = |state: State| {
        let left = SurvivingFiles::new(Arc::clone(history), &state);
        (left.lookup(ONE, "a").is_some(), left.lookup(TWO, "b").is_some())
    };
    Search::new(&**history, &cuts, 1).map(is_there).collect()
}

const EVERY: [(bool, bool); 4] = [(false, false), (false, true), (true, false), (true, true)];

#[test]
fn each_drive_has_its_own_journal() {
    for rules in Persistence::ALL {
        // With one journal for both, the later file would never be there alone.
        assert_eq!(left(&recorded(rules, &[])), BTreeSet::from(EVERY), "{rules:?}");
    }
}

#[test]
fn syncs_are_those_of_one_drive() {
    let with_first = BTreeSet::from([EVERY[2], EVERY[3]]);
    let with_second = BTreeSet::from([EVERY[1], EVERY[3]]);
    for rules in [Persistence::Xfs, Persistence::Ext4] {
        assert_eq!(left(&recorded(rules, &[r#"{"synced":{"whole":4}}"#])), with_first);
        assert_eq!(left(&recorded(rules, &[r#"{"synced":{"whole":5}}"#])), with_second);
    }
    for rules in Persistence::ALL {
        assert_eq!(left(&recorded(rules, &[r#"{"synced":{"drive":2}}"#])), with_first);
        assert_eq!(left(&recorded(rules, &[r#"{"synced":{"drive":3}}"#])), with_second);
        let all = left(&recorded(rules, &[r#"{"synced":"everything"}"#]));
        assert_eq!(all, BTreeSet::from([EVERY[3]]));
    }
}

#[test]
fn losses_are_told_by_drive() {
    let history = recorded(Persistence::Xfs, &[r#"{"synced":{"whole":4}}"#]);
    let cuts = history.cuts(Flushes::All, &|at| at == history.closed());
    let states = Search::new(&*history, &cuts, 1).filter(|state| !state.lost.is_empty());
    let words: Vec<_> = states.map(|state| history.lost_words(&state)).collect();
    let creation = "drive 2 lost: creation of 2/b, and later entries of the journal";
    assert_eq!(words, [["drive 1 lost: nothing", creation]]);
}

#[test]
fn nothing_leads_from_one_drive_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let served = Served::recorded(Recorder::create(&folder.path().join("recording")).unwrap());
    served.make_drives(2).unwrap();
    let did =
        |operation| served.lock().operate(operation, &[]).map_err(|error| error.raw_os_error());
    let create =
        |folder, name: &str| Operation::Create { folder, name: name.to_owned(), kind: Kind::File };
    let file = did(create(ONE, "a")).unwrap().unwrap();
    let rename = |from: (Ino, &str), to: (Ino, &str)| Operation::Rename {
        from: (from.0, from.1.to_owned()),
        to: (to.0, to.1.to_owned()),
        how: Renaming::Replace,
    };
    let refused = |errno: Errno| Err(Some(errno as i32));
    let link = Operation::Link { file, folder: TWO, name: "a".to_owned() };
    assert_eq!(did(link), refused(Errno::EXDEV));
    assert_eq!(did(rename((ONE, "a"), (TWO, "a"))), refused(Errno::EXDEV));
    assert_eq!(did(rename((ONE, "a"), (ONE, "c"))), Ok(None));
    // Beside the drives there is nothing, and they stay.
    assert_eq!(did(create(Ino::ROOT, "a")), refused(Errno::EROFS));
    assert_eq!(did(rename((Ino::ROOT, "1"), (Ino::ROOT, "3"))), refused(Errno::EROFS));
    let remove = Operation::Remove { folder: Ino::ROOT, name: "2".to_owned(), kind: Kind::Folder };
    assert_eq!(did(remove), refused(Errno::EROFS));
}

#[test]
fn drives_in_the_midst_of_a_recording_are_refused() {
    for count in [0, 1, 17, u32::MAX] {
        let text = format!("{HEAD}\n[1,{{\"drives\":{count}}}]\n[1,\"ended\"]\n");
        let error = read_from(Cursor::new(text.into_bytes()), FileHistory::new(Persistence::Xfs))
            .unwrap_err();
        assert!(error.contains("2 to 16 drives stand at the beginning"), "{error}");
    }
    let file = r#"{"did":{"create":{"folder":1,"name":"a","kind":"file"}}}"#;
    let text = format!("{HEAD}\n[1,{file}]\n[1,{{\"drives\":2}}]\n[1,\"ended\"]\n");
    assert!(read_from(Cursor::new(text.into_bytes()), FileHistory::new(Persistence::Xfs)).is_err());
}
