//! Worked examples of the rules of Btrfs: each shows a state that is there, or is not, by one rule.

use std::collections::BTreeSet;

use super::tests::{put, set, shown};
use super::*;
use crate::files::OpenOptions;
use crate::files::Persistence::{Btrfs, Ext4, Posix, Xfs};
use crate::files::atom::Ino;
use crate::files::membership::{SeenFiles, allows};
use crate::files::step::Kind;

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
    let mut all: BTreeSet<String> = all.into();
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

/// The log of a file has no rename of another one, and holds both names of its own.
#[test]
fn a_rename_is_whole_in_a_log() {
    let work = |fs: &Fs| {
        put(fs, "first", "1");
        fs.rename("name", "moved").unwrap();
        put(fs, "file", "new").sync_all().unwrap();
        fs.acknowledge("file");
    };
    let has_one = |fs: &Fs| fs.exists("name") != fs.exists("moved");
    let is_first = |fs: &Fs| !fs.exists("moved") || fs.exists("first");
    assert!(holds(Btrfs, work, has_one) && holds(Btrfs, work, is_first));
    assert!(!holds(Posix, work, has_one));
    let synced = |fs: &Fs| {
        put(fs, "first", "1");
        fs.rename("name", "moved").unwrap();
        fs.open("moved").unwrap().sync_all().unwrap();
    };
    assert!(holds(Btrfs, synced, has_one) && holds(Btrfs, synced, is_first));
    assert!(!holds(Posix, synced, is_first));
}

/// A file that the log has takes its next name into the log, whatever is synced next: a manifest goes no earlier than the name
/// that leads to the next one.
#[test]
fn a_log_has_later_names_of_its_files() {
    let work = |fs: &Fs| {
        put(fs, "old", "1").sync_all().unwrap();
        put(fs, "old", "2").sync_all().unwrap();
        put(fs, "next", "new").sync_all().unwrap();
        fs.rename("next", "name").unwrap();
        fs.remove_file("old").unwrap();
        put(fs, "file", "1").sync_all().unwrap();
    };
    let is_led_to = |fs: &Fs| {
        !fs.exists("file")
            || fs.exists("old")
            || fs.read_to_string("name").is_ok_and(|text| text == "new")
    };
    assert!(holds(Btrfs, work, is_led_to) && !holds(Posix, work, is_led_to));
}

/// A transaction that ends between a write and the sync may have all of a file: the sync logs nothing then, and no log has the
/// file's next name.
#[test]
fn a_sync_may_find_nothing_to_log() {
    let work = |fs: &Fs| {
        put(fs, "next", "new").sync_all().unwrap();
        fs.rename("next", "name").unwrap();
        put(fs, "file", "1").sync_all().unwrap();
    };
    let is_new =
        |fs: &Fs| !fs.exists("file") || fs.read_to_string("name").is_ok_and(|text| text == "new");
    assert!(!holds(Btrfs, work, is_new));
    let changed = |fs: &Fs| {
        let file = put(fs, "next", "new");
        put(fs, "other", "1");
        file.set_len(3).unwrap();
        file.sync_all().unwrap();
        fs.rename("next", "name").unwrap();
        fs.sync_dir(".").unwrap();
        put(fs, "file", "1").sync_all().unwrap();
    };
    assert!(holds(Btrfs, changed, is_new), "the folder's sync has the name");
}

/// Works whose files real Btrfs has left: their calls, the files, and whether the rules say exactly so.
fn known_works() -> (&'static str, impl Iterator<Item = (&'static str, &'static str, bool)>) {
    let text = include_str!("btrfs.txt");
    let setup = text.lines().find_map(|line| line.strip_prefix("setup:")).unwrap();
    let works = text.lines().filter_map(|line| {
        let (calls, left) = line.split_once("=>").or_else(|| line.split_once("~>"))?;
        Some((calls, left, line.contains("=>")))
    });
    (setup, works)
}

fn perform(fs: &Fs, calls: &str) {
    for call in calls.split(';') {
        let words: Vec<&str> = call.split_whitespace().collect();
        match words[..] {
            ["put", path, text] => drop(put(fs, path, text)),
            ["mkdir", path] => fs.create_dir(path).unwrap(),
            ["rmdir", path] => fs.remove_dir(path).unwrap(),
            ["rm", path] => fs.remove_file(path).unwrap(),
            ["mv", from, to] => fs.rename(from, to).unwrap(),
            ["swap", one, other] => fs.exchange(one, other).unwrap(),
            ["ln", file, link] => fs.hard_link(file, link).unwrap(),
            ["fsync", path] if fs.metadata(path).unwrap().is_dir() => fs.sync_dir(path).unwrap(),
            ["fsync", path] => fs.open(path).unwrap().sync_all().unwrap(),
            _ => panic!("{call}"),
        }
    }
}

fn seen(left: &str) -> SeenFiles {
    let mut seen = SeenFiles::default();
    for part in left.split_whitespace() {
        match part.split_once('=') {
            Some((path, text)) => seen.insert(path, text.as_bytes()),
            None => seen.insert_folder(part.trim_end_matches('/')),
        }
    }
    seen
}

/// By real Btrfs (`campaigns/btrfs_log.py`), which ended no transaction of its own accord: where a state has none, it has
/// exactly these names, and the rules allow what the files held.
#[test]
fn the_log_has_the_names_of_real_btrfs() {
    let (setup, works) = known_works();
    let (mut strange, mut count) = (Vec::new(), 0);
    for (calls, left, is_exact) in works {
        count += 1;
        let fs = Fs::recorded(FileHistory::new(Btrfs));
        perform(&fs, setup);
        fs.set_begin(&[]);
        perform(&fs, calls);
        let history = Arc::new(fs.into_history());
        let cuts = history.cuts(Flushes::All, &|_| true);
        let cut = cuts.last().unwrap();
        let journal = cut.unsettled.iter().find(|part| part.atom == 0);
        let lost = journal.map(|part| (part.atom, *part.versions.last().unwrap()));
        let paths = paths(&history, &State::new(cut.at, lost.into_iter().collect()));
        let real: BTreeSet<&str> =
            left.split_whitespace().map(|part| part.split('=').next().unwrap()).collect();
        let is_it = paths.iter().map(String::as_str).eq(real);
        if is_it != is_exact || !allows(&history, cut, &seen(left)) {
            strange.push(format!("{calls} => {left}\n   by the rules {paths:?}"));
        }
    }
    assert!(strange.is_empty(), "{} of {count}: {strange:#?}", strange.len());
    assert!(count > 300, "{count} works");
}

/// The paths of a state, folders with a slash.
fn paths(history: &Arc<FileHistory>, state: &State) -> BTreeSet<String> {
    let left = SurvivingFiles::new(Arc::clone(history), state);
    let (mut paths, mut folders) = (BTreeSet::new(), vec![(String::new(), Ino::ROOT)]);
    while let Some((above, folder)) = folders.pop() {
        for (name, ino) in left.entries(folder) {
            let is_folder = left.kind(ino) == Kind::Folder;
            let path = format!("{above}{name}{}", if is_folder { "/" } else { "" });
            folders.extend(is_folder.then(|| (path.clone(), ino)));
            paths.insert(path);
        }
    }
    paths
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

/// The log of a file has no removal of another one's name, unless a log had that file and no transaction has the name.
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
        put(fs, "name", "newer").sync_all().unwrap();
        put(fs, "first", "1");
        fs.remove_file("name").unwrap();
        put(fs, "file", "new").sync_all().unwrap();
    };
    assert!(holds(Btrfs, logged, in_order));
    let new = |fs: &Fs| {
        put(fs, "second", "new").sync_all().unwrap();
        put(fs, "first", "1");
        fs.remove_file("second").unwrap();
        put(fs, "file", "new").sync_all().unwrap();
    };
    let in_order = |fs: &Fs| fs.exists("second") || fs.exists("first") || !fs.exists("file");
    assert!(!holds(Btrfs, new, in_order));
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
