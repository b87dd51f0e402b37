//! Whether states of a real file system are among those that the rules of files allow.
//!
//!     file_truth xfs <work.json
//!
//! `campaigns/file_truth.py` writes the input: `calls`, which were made on a real file system, and `seen`, what power cuts
//! left of them there: how many syncs had returned, and the files. Bytes are counted in cells of 1,024, each of which
//! holds one byte many times. Prints one line, and each folder that the rules do not allow; ends with 1 if there is one.

#![expect(clippy::print_stdout, reason = "it says what it found")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use leyden_crashtest::{CrashTest, Fs, OpenOptions, Persistence};
use serde::Deserialize;

const CELL_BYTES: u64 = 1_024;
/// The exit code of a work that has too many states.
const NOT_JUDGED: u8 = 3;
/// A work that has a moment with more states is not judged.
const STATES_MOST: usize = 100_000;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Call {
    Create {
        name: String,
    },
    Write {
        name: String,
        from: u64,
        to: u64,
        byte: u8,
    },
    /// Cut to nothing, written and closed by one handle.
    Rewrite {
        name: String,
        to: u64,
        byte: u8,
    },
    Set {
        name: String,
        to: u64,
    },
    Rename {
        name: String,
        to: String,
    },
    Remove {
        name: String,
    },
    Sync {
        name: String,
    },
    DataSync {
        name: String,
    },
    SyncFolder,
    /// The kernel is asked to write pages out: no promise.
    WriteOut {},
}

type Folder = BTreeMap<String, Vec<u8>>;

#[derive(Debug, Deserialize)]
struct Seen {
    syncs: usize,
    files: Folder,
}

#[derive(Debug, Deserialize)]
struct Work {
    calls: Vec<Call>,
    seen: Vec<Seen>,
}

fn call(fs: &Fs, call: &Call) -> std::io::Result<bool> {
    let open = |name: &str| OpenOptions::new().write(true).open(fs, name);
    let bytes = |cells: u64, byte: u8| vec![byte; (cells * CELL_BYTES) as usize];
    match call {
        Call::Create { name } => {
            OpenOptions::new().write(true).create_new(true).open(fs, name)?;
        }
        Call::Write { name, from, to, byte } => {
            open(name)?.write_all_at(&bytes(to - from, *byte), from * CELL_BYTES)?;
        }
        Call::Rewrite { name, to, byte } => {
            fs.create(name)?.write_all_at(&bytes(*to, *byte), 0)?;
        }
        Call::Set { name, to } => open(name)?.set_len(to * CELL_BYTES)?,
        Call::Rename { name, to } => fs.rename(name, to)?,
        Call::Remove { name } => fs.remove_file(name)?,
        Call::Sync { name } => open(name)?.sync_all()?,
        Call::DataSync { name } => open(name)?.sync_data()?,
        Call::SyncFolder => fs.sync_dir("/")?,
        Call::WriteOut {} => {}
    }
    Ok(matches!(call, Call::Sync { .. } | Call::DataSync { .. } | Call::SyncFolder))
}

fn folder(fs: &Fs) -> Folder {
    let cells = |name: String| {
        let bytes = fs.read(&name).expect("a file that is there");
        let cells = bytes.chunks(CELL_BYTES as usize).map(|cell| cell[0]).collect();
        (name, cells)
    };
    fs.read_dir("/").expect("the top").into_iter().map(cells).collect()
}

fn main() -> ExitCode {
    let rules = match std::env::args().nth(1).as_deref() {
        Some("posix") => Persistence::Posix,
        Some("xfs") => Persistence::Xfs,
        Some("ext4") => Persistence::Ext4,
        _ => {
            println!("usage: file_truth posix|xfs|ext4 <work.json");
            return ExitCode::from(2);
        }
    };
    let work: Work = serde_json::from_reader(std::io::stdin()).expect("the campaign writes it");
    let calls = &work.calls;
    let run = |fs: &Fs| {
        for made in calls {
            if call(fs, made).expect("it went on the real file system") {
                fs.acknowledge("sync");
            }
        }
    };
    let check = |_: &Fs, _: &[String]| Ok::<(), String>(());
    // By the number of syncs that had returned: a sync may be done and not have said it yet.
    let mut allowed: BTreeMap<usize, BTreeSet<Folder>> = BTreeMap::new();
    let mut test = CrashTest::files(run, check).persistence(rules);
    let shown = test.each_state(STATES_MOST, |fs, acks| {
        let folder = folder(fs);
        allowed.entry(acks.len()).or_default().insert(folder.clone());
        if let Some(before) = acks.len().checked_sub(1) {
            allowed.entry(before).or_default().insert(folder);
        }
    });
    let left_out = shown.expect("no call is to fail");
    if left_out > 0 {
        println!("{rules:?}: not judged, {left_out} moments have more than {STATES_MOST} states");
        return ExitCode::from(NOT_JUDGED);
    }
    let different: BTreeSet<(usize, &Folder)> =
        work.seen.iter().map(|it| (it.syncs, &it.files)).collect();
    let all: BTreeSet<&Folder> = allowed.values().flatten().collect();
    let is_allowed = |(syncs, files): &(usize, &Folder)| {
        allowed.get(syncs).is_some_and(|it| it.contains(*files))
    };
    let (lawful, others): (Vec<_>, Vec<_>) = different.iter().partition(|it| is_allowed(it));
    println!(
        "{rules:?}: {} folders seen, {} allowed, {} different ones by the rules",
        different.len(),
        lawful.len(),
        all.len()
    );
    if others.is_empty() {
        return ExitCode::SUCCESS;
    }
    for (syncs, files) in others {
        println!("  NOT allowed after {syncs} syncs: {files:?}");
    }
    ExitCode::from(1)
}
