//! Extended attributes under each of the rules, and the errors of their calls.

use std::collections::BTreeSet;

use super::*;
use crate::CrashTest;
use crate::choose::every_state;
use crate::cut::Flushes;
use crate::files::{Fs, Persistence};
use crate::history::History as _;
use crate::summary::RunVerdict;

const ONE: &str = "user.one";
const TWO: &str = "trusted.two";

/// A file with one extended attribute, and whatever else is durable.
fn set_up(fs: &Fs) {
    fs.write("f", "text").unwrap();
    fs.set_xattr("f", ONE, "old").unwrap();
}

/// The values of an attribute, or a dash: of `path`, in each state that a power cut at the end of the work may leave.
fn left(rules: Persistence, path: &str, work: impl Fn(&Fs)) -> BTreeSet<String> {
    let fs = Fs::recorded(FileHistory::new(rules));
    set_up(&fs);
    fs.set_begin(&[]);
    work(&fs);
    let history = Arc::new(fs.into_history());
    let cuts = history.cuts(Flushes::All, &|_| true);
    let states = every_state(cuts.last().unwrap(), 1_000).unwrap();
    let keys: BTreeSet<u128> = states.iter().map(|state| history.keys().of(state)).collect();
    let folders = states.iter().map(|state| {
        let fs = Fs::shown(SurvivingFiles::new(Arc::clone(&history), state));
        let value = |name| {
            let text = |bytes| String::from_utf8(bytes).unwrap();
            fs.xattr(path, name).map_or_else(|_| "-".to_owned(), text)
        };
        let names = fs.list_xattrs(path).unwrap_or_default();
        assert_eq!(names.len(), [ONE, TWO].into_iter().filter(|name| value(name) != "-").count());
        format!("{} {}", value(ONE), value(TWO))
    });
    let folders: BTreeSet<String> = folders.collect();
    assert!(keys.len() >= folders.len(), "states with other attributes are others");
    folders
}

fn all(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

fn set_both(fs: &Fs) {
    fs.set_xattr("f", ONE, "new").unwrap();
    fs.set_xattr("f", TWO, "2").unwrap();
}

#[test]
fn attributes_are_in_the_journal_or_each_by_itself() {
    let each = all(&["old -", "new -", "old 2", "new 2"]);
    let in_order = all(&["old -", "new -", "new 2"]);
    assert_eq!(left(Persistence::Posix, "f", set_both), each);
    assert_eq!(left(Persistence::Xfs, "f", set_both), in_order);
    assert_eq!(left(Persistence::Ext4, "f", set_both), in_order);
    assert_eq!(left(Persistence::Btrfs, "f", set_both), in_order);
}

#[test]
fn fsync_of_its_file_saves_an_attribute_and_fdatasync_does_not() {
    let synced = |fs: &Fs| {
        set_both(fs);
        fs.open("f").unwrap().sync_all().unwrap();
    };
    let of_another = |fs: &Fs| {
        set_both(fs);
        fs.write("g", "text").unwrap();
        fs.open("g").unwrap().sync_all().unwrap();
    };
    let data_synced = |fs: &Fs| {
        set_both(fs);
        fs.open("f").unwrap().sync_data().unwrap();
    };
    let removed = |fs: &Fs| {
        synced(fs);
        fs.remove_xattr("f", ONE).unwrap();
    };
    for rules in Persistence::ALL {
        assert_eq!(left(rules, "f", synced), all(&["new 2"]), "{rules:?}");
        // Btrfs logs the whole of a file whose attributes have changed.
        let by_data = if rules == Persistence::Btrfs { synced } else { set_both };
        assert_eq!(left(rules, "f", data_synced), left(rules, "f", by_data), "{rules:?}");
        assert_eq!(left(rules, "f", removed), all(&["new 2", "- 2"]), "{rules:?}");
        // The journal has all that lies before it with the sync of a new file; a log of Btrfs has that file.
        let count = match rules {
            Persistence::Posix => 4,
            Persistence::Btrfs => 3,
            Persistence::Xfs | Persistence::Ext4 => 1,
        };
        assert_eq!(left(rules, "f", of_another).len(), count, "{rules:?}");
        let everything = |fs: &Fs| {
            set_both(fs);
            fs.sync().unwrap();
        };
        assert_eq!(left(rules, "f", everything), all(&["new 2"]), "{rules:?}");
    }
}

#[test]
fn an_attribute_goes_with_its_file_and_folders_have_some() {
    let replaced = |fs: &Fs| {
        fs.write("tmp", "text").unwrap();
        fs.set_xattr("tmp", TWO, "2").unwrap();
        fs.open("tmp").unwrap().sync_all().unwrap();
        fs.rename("tmp", "f").unwrap();
    };
    let of_folder = |fs: &Fs| {
        fs.set_xattr("/", ONE, "1").unwrap();
        fs.sync_dir("/").unwrap();
        fs.set_xattr("/", TWO, "2").unwrap();
    };
    for rules in Persistence::ALL {
        assert_eq!(left(rules, "f", replaced), all(&["old -", "- 2"]), "{rules:?}");
        assert_eq!(left(rules, "/", of_folder), all(&["1 -", "1 2"]), "{rules:?}");
    }
}

/// The promise is an attribute, and its sync is needed: the finding says which attribute of which file is lost.
#[test]
fn a_lost_attribute_is_named_and_the_audit_finds_its_sync() {
    let work = |does_sync: bool| {
        move |fs: &Fs| {
            fs.set_xattr("f", ONE, "new").unwrap();
            if does_sync {
                fs.open("f").unwrap().sync_all().unwrap();
            }
            fs.acknowledge("new");
        }
    };
    let check = |fs: &Fs, acks: &[String]| {
        let value = fs.xattr("f", ONE).unwrap();
        let is_kept = acks.is_empty() || value == b"new";
        is_kept.then_some(()).ok_or("lost the attribute")
    };
    for rules in Persistence::ALL {
        let test =
            |does_sync| CrashTest::files(work(does_sync), check).setup(set_up).persistence(rules);
        assert_eq!(test(true).run().unwrap().verdict, RunVerdict::Held, "{rules:?}");
        let lost = test(false).run().unwrap();
        assert_eq!(lost.verdict, RunVerdict::Broken, "{rules:?}");
        let words = format!("{:?}", lost.models[0].findings);
        assert!(words.contains("lost: setxattr of user.one, 3 B, on f"), "{words}");
        let audited = test(true).audit(100).unwrap();
        let calls: Vec<_> =
            audited.flushes.iter().map(|it| (it.call.as_str(), it.noticed.is_some())).collect();
        assert_eq!(calls, [("fsync of f", true)], "{rules:?}");
    }
}

#[test]
fn calls_on_attributes_fail_as_those_of_linux() {
    let fs = Fs::recorded(FileHistory::new(Persistence::Xfs));
    set_up(&fs);
    let code = |done: std::io::Result<()>| done.unwrap_err().raw_os_error().unwrap();
    let (noent, toobig, inval, range, nodata, notsup, nospc) = (2, 7, 22, 34, 61, 95, 28);
    assert_eq!(code(fs.xattr("nothing", ONE).map(drop)), noent);
    assert_eq!(code(fs.xattr("f", TWO).map(drop)), nodata);
    assert_eq!(code(fs.remove_xattr("f", TWO)), nodata);
    assert_eq!(code(fs.set_xattr("f", "system.posix_acl_access", "")), notsup);
    assert_eq!(code(fs.set_xattr("f", "plain", "")), notsup);
    assert_eq!(code(fs.set_xattr("f", "user.", "")), inval);
    assert_eq!(code(fs.set_xattr("f", &format!("user.{}", "x".repeat(251)), "")), range);
    assert_eq!(code(fs.set_xattr("f", TWO, vec![7; 65_537])), toobig);
    fs.set_xattr("f", TWO, vec![7; 65_536]).unwrap();
    fs.set_xattr("f", ONE, "").unwrap();
    assert_eq!(fs.xattr("f", ONE).unwrap(), b"");
    // The list of names has a longest length, too.
    let name = |number: u32| format!("user.{}{number:03}", "x".repeat(246));
    let filled = (0..300).map(|number| fs.set_xattr("f", &name(number), "")).find(Result::is_err);
    assert_eq!(code(filled.unwrap()), nospc);
    assert_eq!(
        fs.list_xattrs("f").unwrap().iter().map(|name| name.len() + 1).sum::<usize>() / 255,
        256
    );
}
