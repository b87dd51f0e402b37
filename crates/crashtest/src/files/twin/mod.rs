//! A slow twin of the rules: a machine that does what a kernel does, step by step, in every order that it may.
//!
//! The rules ([`super::rules`]) say which versions of which parts may be there. The twin knows no parts: it has a page
//! cache, blocks and a log. Between any two calls it may write out a page, and a crash keeps any part of the log that no
//! sync has forced. Both must leave the same sets of folders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leyden_sim::Rng;

mod machine;

use self::machine::{Do, Folder, MACHINES_MOST, Machine, PAGE};
use super::file::OpenOptions;
use super::folder::{Call, Failure, Fs};
use super::history::FileHistory;
use super::membership::{SeenFiles, allows};
use super::rules::Persistence;
use super::surviving::SurvivingFiles;
use crate::choose::every_state;
use crate::cut::Flushes;
use crate::history::History as _;
use crate::state::State;

/// Bytes of a cell.
const CELL_BYTES: u64 = 1_024;
/// Names that files may have.
const NAMES: [&str; 3] = ["a", "b", "c"];
/// The extended attribute that files may have.
const XATTR: &str = "user.a";
/// Moments with more combinations than this are left out.
const COMBINATIONS_MOST: usize = 20_000;

/// Draws a call that succeeds on these names.
fn draw(rng: &mut Rng, lengths: &BTreeMap<&'static str, u64>, number: u64) -> Do {
    let pick = |rng: &mut Rng| NAMES[rng.below(NAMES.len() as u64) as usize];
    let name = match lengths.len() {
        0 => return Do::Create(pick(rng)),
        // Names that are there come three times as often.
        count if rng.below(4) > 0 => {
            *lengths.keys().nth(rng.below(count as u64) as usize).expect("one of them")
        }
        _ => pick(rng),
    };
    let Some(&length) = lengths.get(name) else { return Do::Create(name) };
    match rng.below(16) {
        0..6 => {
            let from = match rng.below(4) {
                0 | 1 => length,
                2 => rng.below(length + 1),
                _ => rng.below(3 * PAGE),
            };
            let to = from + 1 + rng.below(PAGE + 1);
            Do::Write { name, from, to, byte: 1 + number as u8 }
        }
        6 => Do::Set { name, cells: rng.below(length + 1) },
        7 => Do::Set { name, cells: if rng.below(2) == 0 { 0 } else { rng.below(2 * PAGE) } },
        8 => Do::Close(name),
        9 | 10 => {
            let to = pick(rng);
            if to == name { Do::SyncFolder } else { Do::Rename(name, to) }
        }
        11 => Do::Remove(name),
        12 => Do::SyncFolder,
        13 => Do::Sync { name, is_data: true, fails: false },
        14 => Do::Sync { name, is_data: false, fails: false },
        _ => Do::Sync { name, is_data: rng.below(2) == 0, fails: true },
    }
}

fn draws(seed: u64) -> Vec<Do> {
    let mut rng = Rng::new(seed, "small folders");
    let mut lengths = BTreeMap::new();
    let count = 2 + rng.below(7);
    let mut calls = Vec::new();
    for number in 0..count {
        let call = draw(&mut rng, &lengths, number);
        match call {
            Do::Create(name) => drop(lengths.insert(name, 0)),
            Do::Write { name, to, .. } => {
                let length = lengths.get_mut(name).expect("it is there");
                *length = to.max(*length);
            }
            Do::Set { name, cells } => drop(lengths.insert(name, cells)),
            Do::Rename(from, to) => {
                let length = lengths.remove(from).expect("it is there");
                lengths.insert(to, length);
            }
            Do::Remove(name) => drop(lengths.remove(name)),
            Do::Close(_) | Do::Xattr(..) | Do::Sync { .. } | Do::SyncFolder => {}
        }
        calls.push(call);
    }
    calls
}

/// These calls, and such on extended attributes behind some of them.
fn with_xattrs(calls: &[Do], seed: u64) -> Vec<Do> {
    let mut rng = Rng::new(seed, "attributes");
    let (mut names, mut all) = (BTreeSet::new(), Vec::new());
    for (number, &call) in (1..).zip(calls) {
        all.push(call);
        match call {
            Do::Create(name) => drop(names.insert(name)),
            Do::Remove(name) => drop(names.remove(name)),
            Do::Rename(from, to) => {
                names.remove(from);
                names.insert(to);
            }
            _ => {}
        }
        let name = names.iter().nth(rng.below(NAMES.len() as u64) as usize);
        // One of four takes the attribute away.
        let value = (rng.below(4) > 0).then_some(number);
        all.extend(name.map(|name| Do::Xattr(name, value)));
    }
    all
}

/// The same calls on the folder that is tested.
fn record(calls: &[Do], history: FileHistory) -> FileHistory {
    let fs = Fs::recorded(history);
    let syncs = calls.iter().filter(|call| matches!(call, Do::Sync { .. } | Do::SyncFolder));
    let fails = |call: &Do| matches!(call, Do::Sync { fails: true, .. });
    let failing = (1..).zip(syncs).filter(|(_, call)| fails(call));
    let failures: Vec<Failure> =
        failing.map(|(nth, _)| Failure { call: Call::Sync, nth, errno: 5 }).collect();
    fs.set_begin(&failures);
    // A handle stays open, so that nothing closes but where the calls say it.
    let mut open = Vec::new();
    let mut opened = |name: &str| {
        open.push(OpenOptions::new().write(true).open(&fs, name).unwrap());
        open.len() - 1
    };
    let mut handles = BTreeMap::new();
    let mut made = Vec::new();
    for &call in calls {
        match call {
            Do::Create(name) => {
                made.push(OpenOptions::new().write(true).create_new(true).open(&fs, name).unwrap());
                handles.insert(name, opened(name));
            }
            Do::Write { name, from, to, byte } => {
                let bytes = vec![byte; ((to - from) * CELL_BYTES) as usize];
                let file = OpenOptions::new().write(true).open(&fs, name).unwrap();
                file.write_all_at(&bytes, from * CELL_BYTES).unwrap();
                std::mem::forget(file);
            }
            Do::Set { name, cells } => {
                let file = OpenOptions::new().write(true).open(&fs, name).unwrap();
                file.set_len(cells * CELL_BYTES).unwrap();
                std::mem::forget(file);
            }
            Do::Close(name) => drop(fs.open(name).unwrap()),
            Do::Rename(from, to) => fs.rename(from, to).unwrap(),
            Do::Remove(name) => fs.remove_file(name).unwrap(),
            Do::Xattr(name, Some(value)) => fs.set_xattr(name, XATTR, [value]).unwrap(),
            Do::Xattr(name, None) => drop(fs.remove_xattr(name, XATTR)), // there may be none
            Do::Sync { name, is_data, fails } => {
                let file = fs.open(name).unwrap();
                let done = if is_data { file.sync_data() } else { file.sync_all() };
                assert_eq!(done.is_err(), fails);
                std::mem::forget(file);
            }
            Do::SyncFolder => fs.sync_dir("/").unwrap(),
        }
    }
    let history = fs.clone().into_history();
    made.into_iter().for_each(std::mem::forget);
    history
}

fn folder(history: &Arc<FileHistory>, state: &State) -> Folder {
    let fs = Fs::shown(SurvivingFiles::new(Arc::clone(history), state));
    let names = fs.read_dir("/").unwrap();
    let cells = |name: &String| {
        let bytes = fs.read(name).unwrap();
        assert!(bytes.len().is_multiple_of(CELL_BYTES as usize));
        let cells = bytes.chunks_exact(CELL_BYTES as usize);
        let xattr = fs.xattr(name, XATTR).ok().map(|value| value[0]);
        let name = NAMES.into_iter().find(|it| it == name).expect("a name that is used");
        (name, (cells.map(|cell| cell[0]).collect(), xattr))
    };
    names.iter().map(cells).collect()
}

/// The folder as it is seen on a file system.
fn seen(folder: &Folder) -> SeenFiles {
    let mut seen = SeenFiles::default();
    for (name, (cells, xattr)) in folder {
        let bytes: Vec<u8> = cells.iter().flat_map(|cell| [*cell; CELL_BYTES as usize]).collect();
        seen.insert(name, &bytes);
        if let Some(value) = xattr {
            seen.insert_xattr(name, XATTR, &[*value]);
        }
    }
    seen
}

/// These folders, and what some of them have with a name of the next.
fn mixed(folders: &BTreeSet<Folder>) -> Vec<Folder> {
    let mut all: Vec<Folder> = folders.iter().take(50).cloned().collect();
    let pairs = folders.iter().zip(folders.iter().skip(1)).take(50);
    all.extend(pairs.map(|(one, next)| {
        let mut both = one.clone();
        both.extend(next.iter().take(1).map(|(name, cells)| (*name, cells.clone())));
        both
    }));
    all
}

/// The folders that crashes of these machines leave; nothing if there are too many.
fn lawful(machines: &BTreeSet<Machine>) -> Option<BTreeSet<Folder>> {
    let mut all = BTreeSet::new();
    for machine in machines {
        for kept in machine.forced..=machine.log.len() {
            all.extend(machine.left(kept, COMBINATIONS_MOST)?);
        }
    }
    Some(all)
}

/// Compares at each moment; returns how many states were compared.
fn compare(calls: &[Do], rules: Persistence, is_torn: bool) -> usize {
    let atom_bytes = if is_torn { CELL_BYTES } else { PAGE * CELL_BYTES };
    let history = FileHistory::new(rules).torn(atom_bytes as u32).unwrap();
    let history = Arc::new(record(calls, history));
    let history_cuts = history.cuts(Flushes::All, &|_| true);
    let mut cuts = (0..).zip(&history_cuts);
    let mut others = BTreeSet::new();
    let mut machines = BTreeSet::from([Machine::new(is_torn)]);
    let mut compared = 0;
    let end = [None];
    for call in calls.iter().map(Some).chain(end) {
        let mut settled = BTreeSet::new();
        for machine in &machines {
            machine.settled(rules, &mut settled);
        }
        if settled.len() > MACHINES_MOST {
            break;
        }
        let is_sync = matches!(call, Some(Do::Sync { fails: false, .. } | Do::SyncFolder));
        if (is_sync || call.is_none())
            && let (at, cut) = cuts.next().expect("a moment for each sync")
            && let Some(states) = every_state(cut, COMBINATIONS_MOST)
            && let Some(lawful) = lawful(&settled)
        {
            let shown: BTreeSet<Folder> =
                states.iter().map(|state| folder(&history, state)).collect();
            let keys = history.keys();
            let different: BTreeSet<u128> = states.iter().map(|state| keys.of(state)).collect();
            let beyond = shown.difference(&lawful).next();
            assert_eq!(
                beyond, None,
                "{rules:?} shows what no kernel leaves, before {call:?} of {calls:?}"
            );
            let missed = lawful.difference(&shown).next();
            assert_eq!(missed, None, "{rules:?} does not show, before {call:?} of {calls:?}");
            assert!(different.len() >= shown.len(), "images with one key: {calls:?}");
            // The question of members is one of whole pages.
            let is_member =
                |folder: &Folder| !is_torn && allows(&history, &history_cuts[at], &seen(folder));
            let missed = shown.iter().find(|folder| !is_member(folder));
            assert_eq!(
                missed.filter(|_| !is_torn),
                None,
                "{rules:?} has no such member, before {call:?} of {calls:?}"
            );
            // Folders of other moments, and parts of them put together.
            let strange = others.difference(&shown).find(|folder| is_member(folder));
            assert_eq!(
                strange, None,
                "{rules:?} has a member too many, before {call:?} of {calls:?}"
            );
            others.extend(mixed(&shown));
            for state in &states {
                let mut normal = state.clone();
                history.normalize(&mut normal);
                assert_eq!(keys.of(&normal), keys.of(state), "{state:?} of {calls:?}");
            }
            compared += shown.len();
        }
        let Some(call) = call else { break };
        machines = settled;
        machines = machines
            .into_iter()
            .map(|mut machine| {
                machine.call(*call, rules);
                machine
            })
            .collect();
    }
    compared
}

#[test]
fn the_rules_leave_what_a_kernel_may_leave_and_nothing_else() {
    let mut compared = 0;
    for seed in 0..1_000 {
        let rules = if seed % 2 == 0 { Persistence::Xfs } else { Persistence::Ext4 };
        compared += compare(&draws(seed), rules, false);
    }
    assert!(compared > 10_000, "{compared} states");
}

/// Calls on them stand in the journal, in order; fsync(2) needs them, and fdatasync(2) does not.
#[test]
fn extended_attributes_are_what_a_kernel_may_leave() {
    let (mut plain, mut more) = (0, 0);
    for seed in 0..600 {
        let rules = if seed % 2 == 0 { Persistence::Xfs } else { Persistence::Ext4 };
        // Without bytes: where entries follow bytes that are written twice, the rules leave more than a kernel does.
        let has_bytes = |call: &Do| {
            matches!(call, Do::Write { .. } | Do::Set { .. } | Do::Sync { fails: true, .. })
        };
        let calls: Vec<Do> = draws(seed).into_iter().filter(|call| !has_bytes(call)).collect();
        plain += compare(&calls, rules, false);
        more += compare(&with_xattrs(&calls, seed), rules, false);
    }
    assert!(more > plain + 500, "{more} states, {plain} without attributes");
}

/// A drive that keeps sectors has more to leave: mixtures of what a page has held.
#[test]
fn torn_pages_are_those_of_a_drive_that_keeps_sectors() {
    let (mut whole, mut torn) = (0, 0);
    for seed in 0..600 {
        let rules = if seed % 2 == 0 { Persistence::Xfs } else { Persistence::Ext4 };
        whole += compare(&draws(seed), rules, false);
        torn += compare(&draws(seed), rules, true);
    }
    assert!(torn > whole + 1_000, "{torn} states, {whole} of whole pages");
}

/// Btrfs promises all that the standard does, and more; the question of members agrees with the states.
#[test]
fn btrfs_leaves_fewer_folders_than_the_standard_allows() {
    let (mut within, mut beyond) = (0, 0);
    for seed in 0..400 {
        let calls = draws(seed);
        let [btrfs, posix] = [Persistence::Btrfs, Persistence::Posix]
            .map(|rules| Arc::new(record(&calls, FileHistory::new(rules))));
        let cuts = btrfs.cuts(Flushes::All, &|_| true);
        for (cut, lawful) in cuts.iter().zip(posix.cuts(Flushes::All, &|_| true)) {
            let Some(states) = every_state(cut, COMBINATIONS_MOST) else { continue };
            let Some(others) = every_state(&lawful, COMBINATIONS_MOST) else { continue };
            let shown: BTreeSet<Folder> = states.iter().map(|it| folder(&btrfs, it)).collect();
            for left in &shown {
                let is_member = allows(&btrfs, cut, &seen(left));
                assert!(is_member, "no such member, {left:?} of {calls:?}");
                assert!(allows(&posix, &lawful, &seen(left)), "{left:?} of {calls:?}");
            }
            let others: BTreeSet<Folder> = others.iter().map(|it| folder(&posix, it)).collect();
            let strange: Vec<&Folder> = others.difference(&shown).collect();
            for left in strange.iter().take(200) {
                let is_member = allows(&btrfs, cut, &seen(left));
                assert!(!is_member, "a member too many: {left:?} of {calls:?}");
            }
            (within, beyond) = (within + shown.len(), beyond + strange.len());
            for state in &states {
                let mut normal = state.clone();
                btrfs.normalize(&mut normal);
                let keys = btrfs.keys();
                assert_eq!(keys.of(&normal), keys.of(state), "{state:?} of {calls:?}");
            }
        }
    }
    assert!(within > 4_000 && beyond > within, "{within} folders, {beyond} by the standard only");
}
