//! Worked examples of the rules of Btrfs: each shows a state that is there, or is not, by one rule.

use super::tests::{put, set, shown};
use super::*;
use crate::files::OpenOptions;
use crate::files::Persistence::{Btrfs, Ext4, Posix, Xfs};

/// The verdict on a work that must leave `is_sound`, after a preparation that writes `old` to `name`.
fn holds(rules: Persistence, work: fn(&Fs), is_sound: fn(&Fs) -> bool) -> bool {
    let check = |fs: &Fs, _: &[String]| is_sound(fs).then_some(()).ok_or("unsound");
    let mut test = CrashTest::files(work, check).persistence(rules).setup(|fs| {
        put(fs, "name", "old");
    });
    test.run().unwrap().models[0].findings.is_empty()
}

/// A length comes with the bytes of some page: a file of one page has all of them or none.
#[test]
fn a_file_that_is_renamed_and_not_synced_is_empty_or_whole() {
    let replaced = |fs: &Fs| {
        put(fs, "tmp", "new");
        fs.rename("tmp", "name").unwrap();
    };
    assert_eq!(shown(Btrfs, "name", replaced), set(&["old", "", "new"]));
    // Of several pages one brings the length that the file has then: the others may be zeroes.
    let longer = |fs: &Fs| drop(put(fs, "tmp", &"n".repeat(8_192)));
    let states = shown(Btrfs, "tmp", longer);
    let half = |zeroes: &str, rest: &str| zeroes.repeat(4_096) + &rest.repeat(4_096);
    let all = ["-".to_owned(), String::new(), "n".repeat(4_096), "n".repeat(8_192)];
    let mut all: std::collections::BTreeSet<String> = all.into();
    all.extend([half("0", "n"), half("n", "0")]);
    assert_eq!(states, all);
}

/// New blocks are entered by a transaction, which enters earlier names, too.
#[test]
fn bytes_are_overwritten_behind_earlier_names() {
    let work = |fs: &Fs| {
        put(fs, "other", "1");
        let file = OpenOptions::new().write(true).open(fs, "name").unwrap();
        file.write_all_at(b"new", 0).unwrap();
    };
    let in_order = |fs: &Fs| fs.read_to_string("name").unwrap() == "old" || fs.exists("other");
    assert!(holds(Btrfs, work, in_order));
    assert!(!holds(Xfs, work, in_order) && !holds(Ext4, work, in_order));
}

/// The log of a file does not have what other calls did before.
#[test]
fn a_sync_of_a_file_keeps_no_other_name() {
    let work = |fs: &Fs| {
        put(fs, "first", "1");
        put(fs, "file", "new").sync_all().unwrap();
    };
    let in_order = |fs: &Fs| !fs.exists("file") || fs.exists("first");
    assert!(!holds(Btrfs, work, in_order));
    assert!(holds(Xfs, work, in_order) && holds(Ext4, work, in_order));
    // Without a sync, names are a prefix of the calls.
    let unsynced = |fs: &Fs| {
        put(fs, "first", "1");
        put(fs, "file", "new");
    };
    assert!(holds(Btrfs, unsynced, in_order) && !holds(Posix, unsynced, in_order));
}

/// A log may hold an earlier rename that nothing has synced, and holds both of its names.
#[test]
fn a_rename_is_whole_in_a_log() {
    let work = |fs: &Fs| {
        put(fs, "first", "1");
        fs.rename("name", "moved").unwrap();
        put(fs, "file", "new").sync_all().unwrap();
        fs.acknowledge("file");
    };
    let has_one = |fs: &Fs| fs.exists("name") != fs.exists("moved");
    assert!(holds(Btrfs, work, has_one));
    assert!(!holds(Posix, work, has_one));
    let is_first = |fs: &Fs| !fs.exists("moved") || fs.exists("first");
    assert!(!holds(Btrfs, work, is_first), "it may be taken along by itself");
}

/// A log that gives a name to another file has the rename of the file that had it.
#[test]
fn a_log_loses_no_file_whose_name_it_takes() {
    let work = |fs: &Fs| {
        fs.rename("name", "kept").unwrap();
        put(fs, "name", "new").sync_all().unwrap();
        fs.acknowledge("new");
    };
    let is_there = |fs: &Fs| {
        ["name", "kept"].iter().any(|name| fs.read_to_string(name).is_ok_and(|text| text == "old"))
    };
    assert!(holds(Btrfs, work, is_there));
}

/// The log of a file has no removal of another one's name, unless a log had that file.
#[test]
fn a_log_removes_names_that_logs_have() {
    let removed = |fs: &Fs| {
        put(fs, "first", "1");
        fs.remove_file("name").unwrap();
        put(fs, "file", "new").sync_all().unwrap();
        fs.acknowledge("file");
    };
    let in_order = |fs: &Fs| fs.exists("name") || fs.exists("first");
    assert!(holds(Btrfs, removed, in_order));
    assert!(!holds(Posix, removed, in_order));
    let logged = |fs: &Fs| {
        fs.open("name").unwrap().sync_all().unwrap();
        put(fs, "first", "1");
        fs.remove_file("name").unwrap();
        put(fs, "file", "new").sync_all().unwrap();
    };
    assert!(!holds(Btrfs, logged, in_order));
}

/// A new folder is in the log of a file in it.
#[test]
fn a_synced_file_in_a_new_folder_is_there() {
    let work = |fs: &Fs| {
        fs.create_dir("one").unwrap();
        fs.create_dir("one/two").unwrap();
        put(fs, "one/two/file", "new").sync_all().unwrap();
        fs.acknowledge("file");
    };
    let check = |fs: &Fs, acks: &[String]| {
        let is_there = fs.read_to_string("one/two/file").is_ok_and(|text| text == "new");
        (acks.is_empty() || is_there).then_some(()).ok_or("lost it")
    };
    let mut test = CrashTest::files(work, check).persistence(Btrfs);
    test.run().unwrap().assert_held();
}

/// The log of a file keeps its content when the file is written to again.
#[test]
fn a_synced_content_stays_until_a_transaction() {
    let work = |fs: &Fs| {
        let file = put(fs, "file", "synced");
        file.sync_all().unwrap();
        fs.acknowledge("synced");
        put(fs, "other", "1");
        file.write_all_at(b"later!", 0).unwrap();
        file.set_len(3).unwrap();
    };
    let states = shown(Btrfs, "file", work);
    assert_eq!(states, set(&["-", "", "synced", "later!", "syn", "lat"]));
    let check = |fs: &Fs, acks: &[String]| {
        let text = fs.read_to_string("file").unwrap_or_default();
        let is_kept = ["synced", "later!", "syn", "lat"].contains(&text.as_str());
        (acks.is_empty() || is_kept).then_some(()).ok_or(format!("lost: {text}"))
    };
    CrashTest::files(work, check).persistence(Btrfs).run().unwrap().assert_held();
}
