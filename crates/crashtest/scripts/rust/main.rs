//! A store in Rust under `leyden crashtest`: a setup, a work, and a check that stays. `store.rs` has the store.
//!
//! ```text
//! store setup
//! store work BATCHES [nosync]
//! store check                   a line on standard input for each state, a line of answer
//! ```
//!
//! Each batch puts three records and a counter; it is acknowledged when `put` has returned.

#[rustfmt::skip] // the store of a kit, which lies beside it where it is built
mod store;

use std::collections::BTreeMap;
use std::error::Error;
use std::io::Write as _;
use std::panic::{self, PanicHookInfo};
use std::path::PathBuf;
use std::process::exit;
use std::sync::Mutex;
use std::{env, fs, io};

use store::Store;

type Said<T> = Result<T, Box<dyn Error>>;

/// The records of a batch.
type Records = BTreeMap<String, Vec<u8>>;

fn path(name: &str) -> Said<PathBuf> {
    Ok(PathBuf::from(env::var("LEYDEN_MOUNT")?).join(name))
}

fn key(number: u32, part: u32) -> String {
    format!("{number:06}.{part}")
}

fn value(number: u32) -> Vec<u8> {
    format!("{number} {}", "x".repeat(300)).into_bytes()
}

/// The version that cargo has chosen.
fn version() -> &'static str {
    let entry = format!("name = \"{}\"\nversion = \"", store::CRATE);
    let (_, rest) = include_str!("Cargo.lock").split_once(&entry).expect("a dependency");
    rest.split('"').next().expect("a version")
}

fn setup() -> Said<()> {
    println!("version {} {}", store::CRATE, version());
    Store::open()?.put(Records::from([("counter".to_owned(), b"0".to_vec())]), "none", true)
}

fn work(batches: u32, is_synced: bool) -> Said<()> {
    let store = Store::open()?;
    let mut acks = fs::OpenOptions::new().write(true).open(env::var("LEYDEN_ACK")?)?;
    for number in 1..=batches {
        let mut records: Records = (0..3).map(|part| (key(number, part), value(number))).collect();
        records.insert("counter".to_owned(), number.to_string().into_bytes());
        store.put(records, &key(number.saturating_sub(7), 2), is_synced)?;
        acks.write_all(format!("ack {number}\n").as_bytes())?;
    }
    if !is_synced {
        drop(store); // some stores keep unsynced batches in the process
    }
    exit(0) // a synced store is not closed, as if the program were killed
}

fn verdict() -> Said<String> {
    let promised = fs::read_to_string(env::var("LEYDEN_ACKS")?)?.lines().count() as u32;
    let store = Store::open().map_err(|error| format!("does not open: {error}"))?;
    let counter = store.get("counter")?.unwrap_or_default();
    let last: u32 = String::from_utf8(counter)?.parse().map_err(|_| "there is no counter")?;
    for number in 1..=last + 1 {
        for part in 0..3 {
            let is_there = number <= last && !(part == 2 && number + 7 <= last);
            if store.get(&key(number, part))? != is_there.then(|| value(number)) {
                return Err(format!("record {} is wrong", key(number, part)).into());
            }
        }
    }
    if last < promised {
        return Ok(format!("lost {} acknowledged batches of {promised}", promised - last));
    }
    Ok("ok".to_owned())
}

/// The words of the first panic of this state.
static PANIC: Mutex<Option<String>> = Mutex::new(None);

/// Keeps what a panic says, and where it was.
fn keep(info: &PanicHookInfo<'_>) {
    let place =
        info.location().map(|it| format!("{}:{}", it.file(), it.line())).unwrap_or_default();
    // The folder of the crates differs from machine to machine.
    let place = place
        .split_once("/registry/src/")
        .and_then(|(_, rest)| rest.split_once('/'))
        .map_or(&*place, |(_, it)| it);
    let said = info.payload_as_str().unwrap_or_default();
    PANIC.lock().expect("no panic here").get_or_insert(format!("panics at {place}: {said}"));
}

fn check() {
    // Some stores trust their files, and panic.
    panic::set_hook(Box::new(keep));
    for _ in io::stdin().lines() {
        let said = panic::catch_unwind(verdict);
        let panicked = PANIC.lock().expect("no panic here").take();
        let said = said.unwrap_or_else(|_| Err(panicked.unwrap_or_default().into()));
        println!("{}", said.unwrap_or_else(|error| error.to_string()).replace('\n', "; "));
    }
}

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["setup"] => setup(),
        ["work", batches, ref rest @ ..] => {
            batches.parse().map_err(Into::into).and_then(|batches| work(batches, rest.is_empty()))
        }
        ["check"] => {
            check();
            Ok(())
        }
        _ => exit(2),
    };
    if let Err(error) = done {
        eprintln!("{error}");
        exit(1);
    }
}
