//! Worked examples of the rules, and tests of the tests.

use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};

use super::*;
use crate::choose::choose;
use crate::files::Persistence::{Btrfs, Ext4, Posix, Xfs};
use crate::files::{File, OpenOptions};
use crate::summary::{RunVerdict, Stop};

/// The contents of a file in the states of a work, after a preparation that writes `old` to it: its
/// text with `0` for a zero byte, or a dash if it is not there.
pub(super) fn shown(rules: Persistence, path: &str, work: fn(&Fs)) -> BTreeSet<String> {
    let check = |_: &Fs, _: &[String]| Ok::<(), String>(());
    let mut test = CrashTest::files(work, check).persistence(rules).setup(|fs| {
        put(fs, "name", "old");
    });
    let history = Arc::new(test.record().unwrap());
    let cuts = history.cuts(Flushes::All, &|_| true);
    let states =
        (0..400).flat_map(|round| cuts.iter().filter_map(move |cut| choose(cut, round, 1)));
    let text = |state: State| {
        let fs = Fs::shown(SurvivingFiles::new(Arc::clone(&history), &state));
        fs.read_to_string(path).map_or_else(|_| "-".to_owned(), |text| text.replace('\0', "0"))
    };
    states.map(text).collect()
}

pub(super) fn set(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

pub(super) fn put(fs: &Fs, path: &str, text: &str) -> File {
    let file = fs.create(path).unwrap();
    file.write_all_at(text.as_bytes(), 0).unwrap();
    file
}

/// The update that is wrong most often: a file replaces another before its bytes are synced.
#[test]
fn a_file_that_is_renamed_and_not_synced_may_be_empty_or_zeroes() {
    let replaced = |fs: &Fs| {
        put(fs, "tmp", "new");
        fs.rename("tmp", "name").unwrap();
    };
    assert_eq!(shown(Xfs, "name", replaced), set(&["old", "", "new"]));
    // `auto_da_alloc` brings the length, and since `dioread_nolock` not the bytes.
    assert_eq!(shown(Ext4, "name", replaced), set(&["old", "000", "new"]));
    assert_eq!(shown(Posix, "name", replaced), set(&["old", "", "000", "new"]));
    // It does so only for a name that is replaced.
    let first = |fs: &Fs| {
        put(fs, "tmp", "new");
        fs.rename("tmp", "other").unwrap();
    };
    assert_eq!(shown(Ext4, "other", first), set(&["-", "", "000", "new"]));
}

#[test]
fn a_file_that_is_synced_before_it_is_renamed_is_old_or_new() {
    let replaced = |fs: &Fs| {
        put(fs, "tmp", "new").sync_all().unwrap();
        fs.rename("tmp", "name").unwrap();
    };
    for rules in Persistence::ALL {
        assert_eq!(shown(rules, "name", replaced), set(&["old", "new"]), "{rules:?}");
    }
    let durable = |fs: &Fs| {
        put(fs, "tmp", "new").sync_all().unwrap();
        fs.rename("tmp", "name").unwrap();
        fs.sync_dir("/").unwrap();
        fs.acknowledge("new");
    };
    for rules in Persistence::ALL {
        let check = |fs: &Fs, acks: &[String]| {
            let text = fs.read_to_string("name").unwrap();
            let is_whole = text == "new" || text == "old" && acks.is_empty();
            is_whole.then_some(()).ok_or(format!("lost {acks:?}: {text}"))
        };
        let setup = |fs: &Fs| drop(put(fs, "name", "old"));
        let summary = CrashTest::files(durable, check).setup(setup).persistence(rules).run();
        summary.unwrap().assert_held();
    }
}

/// `auto_da_alloc` knows two kinds of updates: a rename over a file, and a file that is cut to nothing and written again.
#[test]
fn closing_after_a_cut_to_nothing_brings_the_length_on_ext4_only() {
    let rewritten = |fs: &Fs| {
        drop(put(fs, "name", "new"));
        fs.rename("name", "moved").unwrap();
    };
    assert_eq!(shown(Xfs, "moved", rewritten), set(&["-", "", "new"]));
    assert_eq!(shown(Ext4, "moved", rewritten), set(&["-", "000", "new"]));
}

/// ext4_setattr truncates also what is empty already.
#[test]
fn closing_after_an_empty_file_was_cut_brings_the_length_on_ext4() {
    let durable = |fs: &Fs| {
        fs.create("empty").unwrap().sync_all().unwrap();
        fs.acknowledge("made");
        drop(put(fs, "empty", "new"));
        fs.create("other").unwrap().sync_all().unwrap();
        fs.acknowledge("written");
    };
    let rules = |rules| {
        let check = |fs: &Fs, acks: &[String]| {
            let length = fs.metadata("empty").map_or(0, |of| of.len());
            if acks.len() == 2 && length == 0 { Err("its length is lost") } else { Ok(()) }
        };
        CrashTest::files(durable, check).persistence(rules).run().unwrap()
    };
    rules(Ext4).assert_held();
    assert_eq!(rules(Xfs).verdict, RunVerdict::Broken);
}

#[test]
fn closing_after_a_cut_to_less_brings_no_length() {
    let rewritten = |fs: &Fs| {
        let file = OpenOptions::new().write(true).open(fs, "name").unwrap();
        file.set_len(1).unwrap();
        file.write_all_at(b"new", 0).unwrap();
        drop(file);
        fs.rename("name", "moved").unwrap();
    };
    let lengths: BTreeSet<usize> =
        shown(Ext4, "moved", rewritten).iter().map(String::len).collect();
    assert!(lengths.contains(&3) && shown(Ext4, "moved", rewritten).contains("n"), "{lengths:?}");
}

/// A length that was set is a part of its own, though the file has grown again since then.
#[test]
fn a_shorter_length_may_be_all_that_is_left() {
    let rewritten = |fs: &Fs| {
        let file = OpenOptions::new().write(true).open(fs, "name").unwrap();
        file.set_len(1).unwrap();
        file.write_all_at(b"new", 1).unwrap();
    };
    for rules in Persistence::ALL {
        assert!(shown(rules, "name", rewritten).contains("o"), "{rules:?}");
    }
}

/// A page that is written out below the end of a file that has grown brings the length that ends with it, but never one
/// that is shorter than a durable one.
#[test]
fn a_durable_length_stays() {
    let appended = |fs: &Fs| {
        let file = OpenOptions::new().write(true).open(fs, "name").unwrap();
        file.write_all_at(&[1; 9_000], 0).unwrap();
        file.sync_all().unwrap();
        fs.acknowledge("9000 bytes");
        file.write_all_at(&[2; 9_000], 9_000).unwrap();
        file.write_all_at(&[3; 100], 0).unwrap();
    };
    let check = |fs: &Fs, acks: &[String]| {
        let length = fs.metadata("name").unwrap().len();
        (acks.is_empty() || length >= 9_000).then_some(()).ok_or(format!("lost: {length} bytes"))
    };
    for rules in Persistence::ALL {
        let setup = |fs: &Fs| drop(put(fs, "name", "old"));
        let summary = CrashTest::files(appended, check).setup(setup).persistence(rules).run();
        summary.unwrap().assert_held();
    }
}

#[test]
fn the_name_of_a_synced_file_is_there_with_a_journal_only() {
    let made = |fs: &Fs| {
        put(fs, "first", "1");
        put(fs, "file", "new").sync_all().unwrap();
        fs.acknowledge("file");
    };
    for rules in Persistence::ALL {
        let check = |fs: &Fs, acks: &[String]| {
            let is_there = acks.is_empty()
                || fs.exists("file") && (matches!(rules, Posix | Btrfs) || fs.exists("first"));
            is_there.then_some(()).ok_or("lost it")
        };
        let summary = CrashTest::files(made, check).persistence(rules).run().unwrap();
        let want = if rules == Posix { RunVerdict::Broken } else { RunVerdict::Held };
        assert_eq!(summary.verdict, want, "{rules:?}");
    }
}

#[test]
fn a_removed_name_is_gone_once_its_file_is_synced() {
    let removed = |fs: &Fs| {
        let file = fs.open("name").unwrap();
        fs.remove_file("name").unwrap();
        file.sync_all().unwrap();
        fs.acknowledge("removed");
    };
    let check = |fs: &Fs, acks: &[String]| {
        (acks.is_empty() || !fs.exists("name")).then_some(()).ok_or("lost the removal")
    };
    for rules in Persistence::ALL {
        // Btrfs logs no file that has no name.
        let is_kept = matches!(rules, Xfs | Ext4);
        let want = if is_kept { RunVerdict::Held } else { RunVerdict::Broken };
        let setup = |fs: &Fs| drop(put(fs, "name", "old"));
        let mut test = CrashTest::files(removed, check).setup(setup).persistence(rules);
        assert_eq!(test.run().unwrap().verdict, want, "{rules:?}");
    }
}

#[test]
fn fdatasync_brings_bytes_and_length_and_no_rename() {
    let renamed = |fs: &Fs| {
        let file = put(fs, "tmp", "new");
        fs.rename("tmp", "name").unwrap();
        file.sync_data().unwrap();
        fs.acknowledge("new");
    };
    for rules in Persistence::ALL {
        assert!(shown(rules, "name", renamed).contains("old"), "{rules:?}");
    }
    let appended = |fs: &Fs| {
        let file = OpenOptions::new().append(true).data_sync(true).open(fs, "name").unwrap();
        (&file).write_all(b"er").unwrap();
        fs.acknowledge("older");
    };
    let check = |fs: &Fs, acks: &[String]| {
        let text = fs.read_to_string("name").unwrap();
        (acks.is_empty() || text == "older").then_some(()).ok_or(format!("lost {text}"))
    };
    for rules in Persistence::ALL {
        let setup = |fs: &Fs| drop(put(fs, "name", "old"));
        let summary = CrashTest::files(appended, check).setup(setup).persistence(rules).run();
        summary.unwrap().assert_held();
    }
}

#[test]
fn a_write_of_no_bytes_syncs_nothing() {
    let work = |fs: &Fs| {
        let file = OpenOptions::new().write(true).sync(true).open(fs, "name").unwrap();
        file.write_all_at(b"", 0).unwrap();
        file.write_all_at(b"new", 0).unwrap();
    };
    let check = |fs: &Fs, _: &[String]| fs.read("name").map(|_| ());
    let setup = |fs: &Fs| drop(put(fs, "name", "old"));
    assert_eq!(CrashTest::files(work, check).setup(setup).run().unwrap().flushes, 1);
}

/// Rebello et al., ATC 2020: the second fsync returns success and has written nothing.
#[test]
fn a_sync_after_a_failed_one_writes_nothing() {
    let retried = |fs: &Fs| {
        let file = OpenOptions::new().write(true).open(fs, "name").unwrap();
        file.write_all_at(b"new", 0).unwrap();
        if file.sync_all().is_err() {
            file.sync_all().unwrap();
        }
        fs.acknowledge("new");
    };
    let check = |fs: &Fs, acks: &[String]| {
        let text = fs.read_to_string("name").unwrap();
        (acks.is_empty() || text == "new").then_some(()).ok_or(format!("lost {text}"))
    };
    let setup = |fs: &Fs| drop(put(fs, "name", "old"));
    let mut sound = CrashTest::files(retried, check).setup(setup);
    sound.run().unwrap().assert_held();
    let mut failing = CrashTest::files(retried, check).setup(setup).fails(Call::Sync, 1, 5);
    let summary = failing.run().unwrap();
    assert_eq!(summary.verdict, RunVerdict::Broken);
    assert_eq!(summary.models[0].findings[0].verdict, Verdict::Lost);
    // Written again, it is durable.
    let rewritten = |fs: &Fs| {
        let file = OpenOptions::new().write(true).open(fs, "name").unwrap();
        file.write_all_at(b"new", 0).unwrap();
        if file.sync_all().is_err() {
            file.write_all_at(b"new", 0).unwrap();
            file.sync_all().unwrap();
        }
        fs.acknowledge("new");
    };
    let mut again = CrashTest::files(rewritten, check).setup(setup).fails(Call::Sync, 1, 5);
    again.run().unwrap().assert_held();
}

#[test]
fn names_change_at_once_where_there_is_a_journal() {
    let exchanged = |fs: &Fs| {
        put(fs, "other", "new").sync_all().unwrap();
        fs.exchange("name", "other").unwrap();
        fs.hard_link("name", "third").unwrap();
    };
    for rules in [Xfs, Ext4] {
        assert_eq!(shown(rules, "name", exchanged), set(&["old", "new"]));
        assert_eq!(shown(rules, "third", exchanged), set(&["-", "new"]));
    }
    // By the standard alone either name may be changed without the other.
    let check = |fs: &Fs, _: &[String]| {
        let texts = ["name", "other"].map(|name| fs.read_to_string(name).unwrap_or_default());
        (texts[0] != texts[1]).then_some(()).ok_or("one file has both names")
    };
    let setup = |fs: &Fs| drop(put(fs, "name", "old"));
    let mut test = CrashTest::files(exchanged, check).setup(setup).persistence(Posix);
    assert_eq!(test.run().unwrap().verdict, RunVerdict::Broken);
}

/// Names below a folder.
fn count(fs: &Fs, path: &str, depth: usize) -> usize {
    assert!(depth < 10, "a circle at {path}");
    let below = |name: String| {
        let path = format!("{path}/{name}");
        let is_folder = fs.metadata(&path).unwrap().is_dir();
        1 + if is_folder { count(fs, &path, depth + 1) } else { 0 }
    };
    fs.read_dir(path).unwrap().into_iter().map(below).sum()
}

/// By the standard alone either half of an exchange may be lost, and a folder that both names have is reached by one.
#[test]
fn a_folder_may_be_unreachable_after_half_an_exchange() {
    let setup = |fs: &Fs| {
        for folder in ["first", "second"] {
            fs.create_dir(folder).unwrap();
            put(fs, &format!("{folder}/file"), folder);
        }
    };
    let exchanged = |fs: &Fs| fs.exchange("first", "second").unwrap();
    let check = |fs: &Fs, _: &[String]| {
        let texts = ["first", "second"].map(|it| fs.read_to_string(format!("{it}/file")).ok());
        let both = ["first", "second"].map(|text| texts.contains(&Some(text.to_owned())));
        (both == [true; 2]).then_some(()).ok_or_else(|| format!("only {texts:?}"))
    };
    let mut test = CrashTest::files(exchanged, check).setup(setup).persistence(Posix);
    let summary = test.run().unwrap();
    let said: BTreeSet<&str> =
        summary.models[0].findings.iter().map(|finding| finding.said.as_str()).collect();
    let want = [r#"only [Some("first"), None]"#, r#"only [Some("second"), None]"#];
    assert_eq!(said, want.into_iter().collect());
}

#[test]
fn folders_that_were_moved_into_each_other_make_no_circle() {
    let moved = |fs: &Fs| {
        fs.create_dir_all("one/two").unwrap();
        fs.rename("one/two", "two").unwrap();
        fs.rename("one", "two/one").unwrap();
        fs.rename("two/one", "one").unwrap();
        fs.rename("two", "one/two").unwrap();
        put(fs, "one/file", "text");
    };
    let check = |fs: &Fs, _: &[String]| {
        let _ = (count(fs, "/", 0), fs.rename("one", "two/deeper"));
        Ok::<(), String>(())
    };
    for rules in Persistence::ALL {
        let summary = CrashTest::files(moved, check).persistence(rules).run().unwrap();
        // The check has no opinion, so the control is blind.
        assert_eq!(summary.verdict, RunVerdict::CheckBlind, "{rules:?}");
    }
}

/// A log of records, and a value that is replaced: what software of this kind does.
fn engine(fs: &Fs, forgets: usize) {
    let mut syncs = 0;
    let mut is_done = || {
        syncs += 1;
        syncs != forgets
    };
    fs.create_dir("db").unwrap();
    if is_done() {
        fs.sync_dir("/").unwrap();
    }
    let log = OpenOptions::new().append(true).create(true).open(fs, "db/log").unwrap();
    if is_done() {
        fs.sync_dir("db").unwrap();
    }
    for number in 1..=6_u8 {
        (&log).write_all(&[number; 3_000]).unwrap();
        if is_done() {
            log.sync_data().unwrap();
        }
        fs.acknowledge(&number.to_string());
    }
}

fn recover(fs: &Fs, acks: &[String]) -> Result<(), String> {
    if acks.is_empty() {
        return Ok(());
    }
    let log = fs.read("db/log").map_err(|error| format!("lost the log: {error}"))?;
    let whole =
        log.chunks(3_000).zip(1..).take_while(|(record, number)| record == &vec![*number; 3_000]);
    let there = whole.count();
    // Recovery writes, too: what it writes must not be found in the next state.
    fs.write("db/log", b"recovered").unwrap();
    if there < acks.len() {
        Err(format!("lost {} of {}", acks.len() - there, acks.len()))
    } else {
        Ok(())
    }
}

#[test]
fn each_sync_that_is_left_out_is_found_and_named() {
    for rules in Persistence::ALL {
        CrashTest::files(|fs| engine(fs, 0), recover)
            .persistence(rules)
            .run()
            .unwrap()
            .assert_held();
    }
    for forgets in 1..=8 {
        let mut test = CrashTest::files(move |fs| engine(fs, forgets), recover).persistence(Posix);
        let summary = test.run().unwrap();
        assert_eq!(summary.verdict, RunVerdict::Broken, "sync {forgets}");
        let finding = &summary.models[0].findings[0];
        assert!(finding.first <= 200, "sync {forgets}: state {}", finding.first);
        assert!(!finding.lost.is_empty() && finding.lost.len() <= 2, "{:?}", finding.lost);
        // The test's output is enough to show the finding again.
        let state = serde_json::to_string(&finding.state).unwrap();
        let again = test.run_state(&state).unwrap();
        assert_eq!((again.verdict, &again.said), (finding.verdict, &finding.said));
    }
    // A journal brings the names of a new file with its first fdatasync: two syncs are not needed there.
    for forgets in 1..=2 {
        let summary = CrashTest::files(move |fs| engine(fs, forgets), recover).run().unwrap();
        summary.assert_held();
    }
}

/// The output on docs/crashtest-files.md.
#[test]
fn a_failed_test_says_what_was_lost_and_how_to_try_it_again() {
    let work = |fs: &Fs| {
        for number in 1..=5 {
            fs.write("value.tmp", format!("{number}")).unwrap();
            fs.rename("value.tmp", "value").unwrap();
            fs.sync_dir("/").unwrap();
            fs.acknowledge(&number.to_string());
        }
    };
    let check = |fs: &Fs, acks: &[String]| {
        let promised: u32 = acks.last().map_or(0, |ack| ack.parse().unwrap());
        let found = fs.read_to_string("value").unwrap_or_else(|_| "0".to_owned());
        let found: u32 = found.parse().map_err(|_| format!("damaged: {found:?}"))?;
        if found < promised { Err(format!("lost {promised}, found {found}")) } else { Ok(()) }
    };
    let summary = CrashTest::files(work, check).run().unwrap();
    let said = caught(|| summary.assert_held()).unwrap_err();
    let page = include_str!("../../../../../docs/crashtest-files.md");
    for line in said.strip_prefix("panicked: ").unwrap().lines() {
        assert!(page.contains(line.trim()), "the page does not have this line: {line}");
    }
}

#[test]
fn the_audit_names_the_syncs_that_nothing_needs() {
    let audited = CrashTest::files(|fs| engine(fs, 0), recover).audit(200).unwrap();
    let noticed: Vec<bool> = audited.flushes.iter().map(|sync| sync.noticed.is_some()).collect();
    // Of the folders, and of the six records.
    assert_eq!(noticed, [false, false, true, true, true, true, true, true]);
    // By the standard alone the folders are needed too, though nothing is promised before the next sync.
    let mut strict = CrashTest::files(|fs| engine(fs, 0), recover).persistence(Posix);
    assert!(strict.audit(400).unwrap().flushes.iter().all(|sync| sync.noticed.is_some()));
    let calls: Vec<&str> = audited.flushes.iter().map(|sync| sync.call.as_str()).collect();
    assert_eq!(calls[..3], ["fsync of /", "fsync of db", "fdatasync of db/log"]);
}

#[test]
fn a_test_of_the_same_seed_is_the_same_and_a_check_that_sees_nothing_is_told() {
    let told = |seed| {
        let mut test = CrashTest::files(|fs| engine(fs, 4), recover).seed(seed).states(120);
        let model = test.run().unwrap().models.remove(0);
        (
            model.states,
            model.verdicts,
            model.findings.iter().map(|it| it.state.clone()).collect::<Vec<_>>(),
        )
    };
    assert_eq!(told(7), told(7));
    let blind = |_: &Fs, _: &[String]| Ok::<(), String>(());
    assert_eq!(
        CrashTest::files(|fs| engine(fs, 0), blind).run().unwrap().verdict,
        RunVerdict::CheckBlind
    );
    let broken = |_: &Fs, _: &[String]| Err("always");
    assert_eq!(
        CrashTest::files(|fs| engine(fs, 0), broken).run().unwrap().verdict,
        RunVerdict::CheckFails
    );
    let all = CrashTest::files(
        |fs| drop(put(fs, "name", "new")),
        |fs: &Fs, _: &[String]| fs.read("name").map(|_| ()),
    );
    let mut all = all.states(50_000);
    assert_eq!(all.run().unwrap().models[0].stop, Stop::Exhausted);
}

#[test]
fn a_panic_of_the_check_is_a_finding() {
    let check = |fs: &Fs, _: &[String]| {
        let text = fs.read_to_string("name").unwrap();
        assert_eq!(text, "new", "a damaged file");
        Ok::<(), String>(())
    };
    let work = |fs: &Fs| put(fs, "name", "new").sync_all().unwrap();
    let summary = CrashTest::files(work, check).run().unwrap();
    let said: Vec<&str> = summary.models[0].findings.iter().map(|it| it.said.as_str()).collect();
    assert!(!said.is_empty() && said.iter().all(|said| said.starts_with("panicked: ")), "{said:?}");
    assert!(summary.models[0].findings.iter().all(|it| it.verdict == Verdict::Crashed));
}

#[test]
fn files_of_the_preparation_are_there_also_if_the_work_does_nothing() {
    for rules in Persistence::ALL {
        assert_eq!(shown(rules, "name", |_| ()), set(&["old"]), "{rules:?}");
    }
}

#[test]
fn a_failure_that_never_comes_and_a_test_of_no_states_are_refused() {
    let check = |_: &Fs, _: &[String]| Ok::<(), String>(());
    let refused = |mut test: FilesTest<_, _>| matches!(test.run(), Err(CrashError::Input(_)));
    assert!(refused(CrashTest::files(old as fn(&Fs), check).fails(Call::Sync, 2, 5)));
    assert!(refused(CrashTest::files(old as fn(&Fs), check).fails(Call::Rename, 1, 5)));
    assert!(refused(CrashTest::files(old as fn(&Fs), check).fails(Call::Sync, 0, 5)));
    assert!(refused(CrashTest::files(old as fn(&Fs), check).states(0)));
}

/// A value that is durable.
fn old(fs: &Fs) {
    put(fs, "name", "old").sync_all().unwrap();
}

/// A check that depends on more than the files: what it said stays, and the finding is marked.
#[test]
fn a_finding_that_does_not_come_again_keeps_its_words() {
    let calls = Cell::new(0);
    let check = |_: &Fs, _: &[String]| {
        calls.set(calls.get() + 1);
        // The whole folder and the three states of the control come before.
        if calls.get() == 6 { Err("by chance") } else { Ok(()) }
    };
    let work = |fs: &Fs| drop(put(fs, "name", "new"));
    let summary = CrashTest::files(work, check).run().unwrap();
    let findings = &summary.models[0].findings;
    assert!(matches!(&findings[..], [it] if it.is_flaky && it.said == "by chance"), "{findings:?}");
}

#[test]
fn a_state_of_another_work_is_refused() {
    let mut test = CrashTest::files(|fs| engine(fs, 0), recover);
    for state in [
        "",
        "{}",
        r#"{"at":9000,"lost":[]}"#,
        r#"{"at":3,"lost":[[900,null]]}"#,
        r#"{"at":3,"lost":[[0,7]]}"#,
        r#"{"at":0,"lost":[]}"#,
        r#"{"at":30,"lost":[[1,null]]}"#,
    ] {
        let refused = test.run_state(state);
        assert!(matches!(refused, Err(CrashError::Input(_))), "{state}: {refused:?}");
    }
}

#[test]
fn calls_fail_as_those_of_linux() {
    let work = |fs: &Fs| {
        fs.create_dir("folder").unwrap();
        put(fs, "folder/file", "text");
        let code = |done: std::io::Result<()>| done.unwrap_err().raw_os_error().unwrap();
        let opened = |path: &str, how: OpenOptions| how.open(fs, path).map(drop);
        let new = OpenOptions::new;
        let (noent, exist, notdir, isdir, inval, notempty, perm, badf) =
            (2, 17, 20, 21, 22, 39, 1, 9);
        assert_eq!(code(fs.open("nothing").map(drop)), noent);
        assert_eq!(code(fs.open("").map(drop)), noent);
        assert_eq!(code(fs.write("nothing/file", "text")), noent);
        assert_eq!(code(fs.write("folder/file/below", "text")), notdir);
        assert_eq!(code(fs.write("folder", "text")), isdir);
        assert_eq!(code(fs.read("folder").map(drop)), isdir);
        assert_eq!(code(fs.create_dir("folder")), exist);
        assert_eq!(code(opened("folder/file", new().write(true).create_new(true))), exist);
        assert_eq!(code(opened("folder/file", new())), inval);
        assert_eq!(code(opened("folder/file", new().append(true).truncate(true))), inval);
        assert_eq!(code(fs.remove_file("folder")), isdir);
        assert_eq!(code(fs.remove_dir("folder")), notempty);
        assert_eq!(code(fs.remove_dir("folder/file")), notdir);
        assert_eq!(code(fs.hard_link("folder", "link")), perm);
        assert_eq!(code(fs.rename("folder", "folder/below")), inval);
        assert_eq!(code(fs.rename("folder", "folder/file")), inval);
        fs.create_dir("other").unwrap();
        assert_eq!(code(fs.rename("other", "folder/file")), notdir);
        fs.remove_dir("other").unwrap();
        fs.create_dir("other").unwrap();
        assert_eq!(code(fs.rename("folder/file", "other")), isdir);
        assert_eq!(code(fs.rename("folder/file", "folder")), notempty);
        fs.remove_dir("other").unwrap();
        assert_eq!(code(fs.open("folder/file/").map(drop)), notdir);
        assert_eq!(code(fs.create("new/").map(drop)), isdir);
        assert_eq!(code(fs.remove_file("")), noent);
        assert_eq!(code(fs.open("x".repeat(256)).map(drop)), 36);
        assert_eq!(code(fs.hard_link("folder", "folder/file")), exist);
        assert_eq!(code(fs.rename("nothing", "other")), noent);
        assert_eq!(code(fs.rename_new("folder/file", "folder")), exist);
        assert_eq!(code(fs.exchange("folder/file", "nothing")), noent);
        assert_eq!(code(fs.write("x".repeat(256), "text")), 36);
        let file = fs.open("folder/file").unwrap();
        assert_eq!(code(file.write_all_at(b"text", 0)), badf);
        assert_eq!(code(file.set_len(0)), inval);
        let file = new().read(true).write(true).open(fs, "folder/file").unwrap();
        assert_eq!(code(file.set_len(1 << 60)), 27);
        assert_eq!(code(file.write_all_at(b"text", u64::MAX)), 27);
        assert_eq!(
            file.read_exact_at(&mut [0; 9], 0).unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );
        // A file of 1 TiB is a hole: it is not read as a whole, and its end is.
        file.set_len(1 << 40).unwrap();
        file.write_all_at(b"end", (1 << 40) - 3).unwrap();
        let mut text = String::new();
        (&file).seek(SeekFrom::End(-3)).unwrap();
        (&file).read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), file.metadata().len()), ("end", 1 << 40));
        fs.remove_file("folder/file").unwrap();
        assert_eq!(file.metadata().len(), 1 << 40, "a handle stays");
        assert_eq!(fs.read_dir("folder/../folder/.").unwrap(), Vec::<String>::new());
    };
    let check = |fs: &Fs, _: &[String]| fs.read_dir("/").map(|_| ());
    CrashTest::files(work, check).run().unwrap();
}

/// A page of 4 KiB that is overwritten in place, and a file that is new.
fn torn(rules: Persistence, atom_bytes: u32, path: &'static str) -> Summary {
    let work = |fs: &Fs| {
        let record = OpenOptions::new().write(true).open(fs, "record").unwrap();
        record.write_all_at(&[b'b'; 4_096], 0).unwrap();
        let new = put(fs, "new", &"c".repeat(4_096));
        new.sync_all().unwrap();
        record.sync_all().unwrap();
        fs.acknowledge("both");
    };
    let check = |fs: &Fs, _: &[String]| {
        let bytes = fs.read(path).unwrap_or_default();
        if bytes.iter().all(|byte| *byte == bytes[0]) { Ok(()) } else { Err("torn") }
    };
    let setup = |fs: &Fs| put(fs, "record", &"a".repeat(4_096)).sync_all().unwrap();
    let mut test = CrashTest::files(work, check).setup(setup).persistence(rules);
    test = test.atom_bytes(atom_bytes);
    test.run().unwrap()
}

#[test]
fn a_page_is_torn_between_atoms_and_a_new_block_is_not() {
    // Btrfs copies on write: a page is old or new.
    assert!(torn(Btrfs, 512, "record").models[0].findings.is_empty());
    for rules in [Posix, Xfs, Ext4] {
        assert!(torn(rules, 4_096, "record").models[0].findings.is_empty(), "{rules:?}");
        for (atom_bytes, last) in [(512, 511), (2_048, 2_047)] {
            let summary = torn(rules, atom_bytes, "record");
            let finding = &summary.models[0].findings[0];
            assert_eq!(finding.said, "torn", "{rules:?}");
            let piece = finding.lost[0].strip_prefix("lost: bytes ").unwrap();
            let (begin, rest) = piece.split_once(" to ").unwrap();
            let (end, call) = rest.split_once(", ").unwrap();
            assert_eq!(call, "write of 4096 B at 0 of record");
            let begin: u32 = begin.parse().unwrap();
            assert_eq!(end.parse(), Ok(begin + last), "{rules:?}");
            assert_eq!(summary.atom_bytes, atom_bytes);
        }
        // The block is entered when it is whole; the standard has no blocks.
        let is_torn = !torn(rules, 512, "new").models[0].findings.is_empty();
        assert_eq!(is_torn, rules == Posix, "{rules:?}");
    }
}

#[test]
fn pages_have_atoms_of_sectors() {
    for atom_bytes in [0, 100, 256, 8_192] {
        let error =
            CrashTest::files(|_| {}, |_, _| Ok::<(), String>(())).atom_bytes(atom_bytes).run();
        let said = error.unwrap_err().to_string();
        assert!(said.contains("a power of two from 512 to 4096"), "{said}");
    }
}
