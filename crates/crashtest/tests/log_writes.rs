//! Logs of dm-log-writes, run on a drive and written out again: what may be lost at each flush stays the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use leyden_crashtest::{
    Cut, Event, Flushes, Imported, Plan, Session, Timeline, cuts, export, fit, import,
};
use leyden_device::{Config, Region};
use leyden_image::ImageConfig;
use leyden_sim::Rng;
use leyden_wire::log_writes::{LogAction, LogEntry, LogReader, LogWriter};

const SIZE_BYTES: u64 = 1 << 20;
/// Few, so that they are written again and again.
const SECTORS: u64 = 24;

fn drive() -> ImageConfig {
    let mut device = Config::default();
    device.buffer.region = Region::None;
    device.power.get_or_insert_default();
    fit(&mut device, SIZE_BYTES).unwrap();
    ImageConfig {
        name: "test".to_owned(),
        seed: 1,
        device,
        stack: None,
        made_by: "test".to_owned(),
    }
}

fn plan() -> Plan {
    Plan {
        fs: "none".to_owned(),
        mkfs: Vec::new(),
        mount_options: None,
        size_bytes: SIZE_BYTES,
        sector_bytes: 512,
        setup: None,
        work: "imported".to_owned(),
        ack_prefix: Some("committed ".to_owned()),
        check: "true".to_owned(),
        is_check_server: false,
        fsck: false,
        timeout_ms: 1_000,
        cwd: std::env::current_dir().unwrap(),
        faults: Vec::new(),
        files: None,
        drives: 1,
    }
}

/// Random commands of a host; flushes, discards, force unit access and promises among them.
fn entries(seed: u64) -> Vec<LogEntry> {
    let mut rng = Rng::new(seed, "logs");
    let mark = |text: String| Some(LogAction::Mark(text.into_bytes()));
    let mut entries = vec![LogEntry { flush: false, action: mark("begin".to_owned()) }];
    for number in 0..60 {
        let at = rng.below(SECTORS);
        let length = 1 + rng.below(4);
        let action = match rng.below(10) {
            0 => mark(format!("ack {number}")),
            1 => mark(format!("committed {number}")),
            2 => mark("free text".to_owned()),
            3 => Some(LogAction::Discard { offset_bytes: at * 512, length_bytes: length * 512 }),
            4 => None,
            _ => {
                let data = (0..length).flat_map(|_| [rng.below(255) as u8; 512]).collect();
                let fua = rng.below(8) == 0;
                Some(LogAction::Write { offset_bytes: at * 512, data, fua })
            }
        };
        entries.push(LogEntry { flush: action.is_none() || rng.below(10) == 0, action });
    }
    entries
}

fn write_log(path: &Path, entries: &[LogEntry]) {
    let mut log = LogWriter::new(BufWriter::new(File::create(path).unwrap()), 512).unwrap();
    for entry in entries {
        log.entry(entry).unwrap();
    }
    log.finish().unwrap();
}

fn read_log(path: &Path) -> Vec<LogEntry> {
    let mut log = LogReader::new(File::open(path).unwrap()).unwrap();
    std::iter::from_fn(|| log.entry().unwrap()).collect()
}

fn imported(folder: &Path, log: &Path, base: &Path) -> Session {
    let session = Session::create(folder).unwrap();
    let (log, base) = (File::open(log).unwrap(), File::open(base).unwrap());
    let begin = Some("begin");
    let imported = Imported { drive: drive(), plan: plan(), log: &log, base: Some(&base), begin };
    import(&session, &imported).unwrap();
    session
}

/// The contents that a lawful drive may have at a moment: for each unsettled sector the bytes that
/// it may be full of, and the promises.
fn allowed(timeline: &Timeline, cut: &Cut) -> (BTreeMap<u32, BTreeSet<u8>>, Vec<String>) {
    let sectors = cut.unsettled.iter().map(|unsettled| {
        let content = |event: &Option<u32>| {
            let version = timeline.version_of(unsettled.atom, *event).unwrap();
            timeline.store().bytes(version.content)[0]
        };
        (unsettled.atom, unsettled.versions.iter().map(content).collect::<BTreeSet<_>>())
    });
    // Unsettled versions with equal bytes do not count.
    let sectors = sectors.filter(|(_, contents)| contents.len() > 1).collect();
    (sectors, timeline.acks()[..timeline.acks_before(cut.at)].to_vec())
}

#[test]
fn a_log_that_was_run_and_written_out_again_allows_the_same() {
    for seed in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let entries = entries(seed);
        write_log(&at("first.log"), &entries);
        let base: Vec<u8> = (0..SIZE_BYTES).map(|at| (at / 512 % 7) as u8).collect();
        std::fs::write(at("base"), &base).unwrap();
        let first = imported(&at("first"), &at("first.log"), &at("base"));
        export(&first, &at("second.log"), Some(&at("base2"))).unwrap();
        assert_eq!(std::fs::read(at("base2")).unwrap(), base);
        let again = imported(&at("second"), &at("second.log"), &at("base2"));

        let timelines = [&first, &again].map(|session| session.timeline(Some(512)).unwrap());
        let moments = timelines.each_ref().map(|timeline| {
            // Before the end of a write with force unit access a log lacks the writes that no flush has covered.
            let is_flush = |cut: &&Cut| match timeline.events().get(cut.at) {
                Some((_, Event::Ended { command, .. })) => timeline.events()[*command].1.is_flush(),
                _ => true,
            };
            let cuts = cuts(timeline, Flushes::All);
            cuts.iter().filter(is_flush).map(|cut| allowed(timeline, cut)).collect::<Vec<_>>()
        });
        assert_eq!(moments[0], moments[1], "seed {seed}");
        let flushes = entries.iter().filter(|entry| entry.flush).count();
        assert_eq!(moments[0].len(), flushes + 1, "the end of each flush, and the end");
        // And the bytes in the end are those that the log says.
        let mut end = base;
        for entry in &entries {
            match &entry.action {
                Some(LogAction::Write { offset_bytes, data, .. }) => {
                    end[*offset_bytes as usize..][..data.len()].copy_from_slice(data);
                }
                Some(LogAction::Discard { offset_bytes, length_bytes }) => {
                    end[*offset_bytes as usize..][..*length_bytes as usize].fill(0);
                }
                Some(LogAction::Mark(_)) | None => {}
            }
        }
        let events = timelines[0].events().len();
        for atom in 0..SECTORS as u32 + 4 {
            let newest = timelines[0].newest(atom, events).content;
            let bytes = timelines[0].store().bytes(newest);
            assert_eq!(bytes, &end[atom as usize * 512..][..512], "seed {seed}, sector {atom}");
        }
    }
}

#[test]
fn the_order_is_that_of_dm_log_writes() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let write = |sector: u64, fua: bool| {
        let data = vec![sector as u8; 512];
        LogEntry {
            flush: false,
            action: Some(LogAction::Write { offset_bytes: sector * 512, data, fua }),
        }
    };
    let mark = |text: &str| LogEntry {
        flush: false,
        action: Some(LogAction::Mark(text.as_bytes().to_vec())),
    };
    let flush = LogEntry { flush: true, action: None };
    let entries = [
        mark("begin"),
        write(1, false),
        write(2, true),
        mark("ack 7"),
        flush.clone(),
        write(3, false),
    ];
    write_log(&at("log"), &entries);
    std::fs::write(at("base"), []).unwrap();
    let session = imported(&at("session"), &at("log"), &at("base"));
    export(&session, &at("out"), None).unwrap();
    // Unflushed writes are logged with their flush; writes that bypass the cache, at once.
    let expected = [
        mark("begin"),
        write(2, true),
        mark("ack 7"),
        write(1, false),
        flush,
        write(3, false),
        mark("dm-log-writes-end"),
    ];
    let names = |entries: &[LogEntry]| {
        let name = |entry: &LogEntry| match &entry.action {
            None => "flush".to_owned(),
            Some(LogAction::Mark(text)) => String::from_utf8_lossy(text).into_owned(),
            Some(LogAction::Write { data, fua, .. }) => format!("write {} {fua}", data[0]),
            Some(LogAction::Discard { .. }) => "discard".to_owned(),
        };
        entries.iter().map(name).collect::<Vec<_>>()
    };
    let found = read_log(&at("out"));
    assert_eq!(names(&found), names(&expected));
    assert_eq!(found, expected);
    assert!(export(&session, &at("out"), None).is_err(), "an output that replaces another");
}

#[test]
fn logs_that_make_no_sense_are_refused_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let refused = |bytes: &[u8], begin: Option<&str>, what: &str| {
        std::fs::write(&path, bytes).unwrap();
        let session = Session::create(&folder.path().join("session")).unwrap();
        let log = File::open(&path).unwrap();
        let imported = Imported { drive: drive(), plan: plan(), log: &log, base: None, begin };
        let error = import(&session, &imported).unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
        assert!(!session.recording().exists() && session.plan().is_err());
    };
    refused(b"#!/bin/sh\n", None, "no log of dm-log-writes");
    write_log(&path, &entries(1));
    let whole = std::fs::read(&path).unwrap();
    refused(&whole[..whole.len() - 100], None, "cut short");
    refused(&whole, Some("nowhere"), "no mark `nowhere`");
    let beyond = LogAction::Write { offset_bytes: SIZE_BYTES, data: vec![1; 512], fua: false };
    write_log(&path, &[LogEntry { flush: false, action: Some(beyond) }]);
    refused(&std::fs::read(&path).unwrap(), None, "--size");
}
