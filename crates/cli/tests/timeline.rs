//! The files that `leyden timeline` writes: what the page shows, and the trace, read as Perfetto reads it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const TINY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny.toml");

fn leyden(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_leyden")).current_dir(folder).args(args).output().unwrap()
}

#[track_caller]
fn ends_with(output: &Output, code: i32) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
}

fn timeline(folder: &Path, args: &[&str]) -> Trace {
    let mut all = vec!["timeline", TINY, "--output", "slow.pftrace"];
    all.extend(args);
    ends_with(&leyden(folder, &all), 0);
    Trace::read(&fs::read(folder.join("slow.pftrace")).unwrap())
}

/// A slice: its row (group and number in it), and from when until when, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Slice {
    row: (u64, u64),
    from: i64,
    until: i64,
}

/// The fields of a message of Protocol Buffers.
#[derive(Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Field<'a> {
    fn number(self) -> u64 {
        if let Self::Number(number) = self { number } else { panic!("no number") }
    }

    fn bytes(self) -> &'a [u8] {
        if let Self::Bytes(bytes) = self { bytes } else { panic!("no bytes") }
    }

    fn text(self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (first, rest) = bytes.split_first().unwrap();
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}

/// All fields of a message, by number.
fn fields(mut bytes: &[u8]) -> BTreeMap<u64, Vec<Field<'_>>> {
    let mut found = BTreeMap::<u64, Vec<Field<'_>>>::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Number(varint(&mut bytes)),
            1 => {
                let (value, rest) = bytes.split_at(8);
                bytes = rest;
                Field::Number(u64::from_le_bytes(value.try_into().unwrap()))
            }
            2 => {
                let length = varint(&mut bytes) as usize;
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                Field::Bytes(value)
            }
            other => panic!("no field is stored as {other}"),
        };
        found.entry(key >> 3).or_default().push(field);
    }
    found
}

/// A trace, as Perfetto's viewer takes it apart.
#[derive(Default)]
struct Trace {
    /// Slices; rows are numbered by the group they are in, and its track.
    slices: Vec<Slice>,
    /// The names of slices, in the same order.
    names: Vec<String>,
    /// Counters: track, time, value.
    levels: Vec<(u64, u64, u64)>,
    /// Where each arrow begins and ends: track and time.
    arrows: BTreeMap<u64, [Option<(u64, u64)>; 2]>,
    /// Texts beside the run.
    about: BTreeMap<String, String>,
    /// Names of tracks, and what each is in.
    tracks: BTreeMap<u64, (String, u64)>,
    events: BTreeMap<u64, String>,
    labels: BTreeMap<u64, String>,
    /// Slices that have begun, by track.
    open: BTreeMap<u64, Vec<usize>>,
}

impl Trace {
    /// Field numbers are those of `trace_packet.proto`, `track_event.proto` and `track_descriptor.proto`.
    fn read(bytes: &[u8]) -> Self {
        let mut trace = Self::default();
        let packets = fields(bytes);
        assert_eq!(packets.keys().collect::<Vec<_>>(), [&1], "packets and nothing else");
        let mut last = 0;
        for (index, packet) in packets[&1].iter().enumerate() {
            let packet = fields(packet.bytes());
            assert_eq!(packet[&10][0].number(), 1, "one sequence");
            let flags = packet.get(&13).map_or(0, |flags| flags[0].number());
            assert_eq!(flags == 1, index == 0, "names are cleared once, at the beginning");
            for names in packet.get(&12).into_iter().flatten() {
                trace.intern(names.bytes());
            }
            for track in packet.get(&60).into_iter().flatten() {
                let track = fields(track.bytes());
                let parent = track.get(&5).map_or(0, |parent| parent[0].number());
                let known =
                    trace.tracks.insert(track[&1][0].number(), (track[&2][0].text(), parent));
                assert!(known.is_none(), "a track is described once");
                assert!(parent == 0 || trace.tracks.contains_key(&parent), "a group comes first");
            }
            if let Some(event) = packet.get(&11) {
                let at = packet[&8][0].number();
                assert_eq!(flags, 2, "an event needs the names");
                trace.event(at, &fields(event[0].bytes()), &mut last);
            }
        }
        assert!(trace.open.values().all(Vec::is_empty), "what began has ended");
        assert_eq!(overlap(&trace.slices), None);
        trace
    }

    fn intern(&mut self, bytes: &[u8]) {
        let names = fields(bytes);
        for (kind, into) in [(2, &mut self.events), (3, &mut self.labels)] {
            for entry in names.get(&kind).into_iter().flatten() {
                let entry = fields(entry.bytes());
                let known = into.insert(entry[&1][0].number(), entry[&2][0].text());
                assert!(known.is_none(), "a name is written once");
            }
        }
    }

    fn event(&mut self, at: u64, event: &BTreeMap<u64, Vec<Field<'_>>>, last: &mut u64) {
        let track = event[&11][0].number();
        assert!(self.tracks.contains_key(&track), "{track} has no name");
        let name = event.get(&10).map(|name| self.events[&name[0].number()].clone());
        let labels = event.get(&4).into_iter().flatten().map(|label| {
            let label = fields(label.bytes());
            (self.labels[&label[&1][0].number()].clone(), label)
        });
        let labels: Vec<_> = labels.collect();
        for (end, field) in [(0, 47), (1, 48)] {
            for flow in event.get(&field).into_iter().flatten() {
                self.arrows.entry(flow.number()).or_default()[end] = Some((track, at));
            }
        }
        match event[&9][0].number() {
            1 => {
                assert!(at >= *last, "slices come in the order of time");
                *last = at;
                self.open.entry(track).or_default().push(self.slices.len());
                let row = (self.tracks[&track].1, track);
                self.slices.push(Slice { row, from: at as i64, until: -1 });
                self.names.push(name.unwrap());
            }
            2 => {
                let inner = self.open.get_mut(&track).unwrap().pop().expect("it has begun");
                self.slices[inner].until = at as i64;
            }
            3 => {
                let texts =
                    labels.iter().filter_map(|(name, it)| Some((name, it.get(&6)?[0].text())));
                self.about = texts.map(|(name, text)| (name.clone(), text)).collect();
            }
            4 => self.levels.push((track, at, event[&30][0].number())),
            other => panic!("{other} is no kind of event that is written"),
        }
    }

    /// The slices of the tracks in a group.
    fn of<'a>(&'a self, group: &'a str) -> impl Iterator<Item = Slice> + 'a {
        self.slices.iter().copied().filter(move |it| self.tracks[&it.row.0].0 == group)
    }
}

/// Two slices of one row of which neither lies within the other, nor beside it.
fn overlap(slices: &[Slice]) -> Option<(Slice, Slice)> {
    let mut rows = BTreeMap::<(u64, u64), Vec<Slice>>::new();
    for slice in slices {
        rows.entry(slice.row).or_default().push(*slice);
    }
    for mut row in rows.into_values() {
        row.sort_by_key(|slice| (slice.from, -slice.until));
        let mut open: Vec<Slice> = Vec::new();
        for slice in row {
            while open.last().is_some_and(|outer| outer.until <= slice.from) {
                open.pop();
            }
            if let Some(outer) = open.last().filter(|outer| outer.until < slice.until) {
                return Some((*outer, slice));
            }
            open.push(slice);
        }
    }
    None
}

#[test]
fn slices_that_overlap_are_found() {
    let slice = |from, until| Slice { row: (1, 1), from, until };
    assert!(overlap(&[slice(0, 10), slice(0, 4), slice(4, 10), slice(10, 12)]).is_none());
    assert!(overlap(&[slice(0, 10), slice(9, 11)]).is_some());
    let other = Slice { row: (1, 2), ..slice(9, 11) };
    assert!(overlap(&[slice(0, 10), other]).is_none());
}

#[test]
fn every_timeline_is_one_that_viewers_show_whole() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["--of", "write"][..],
        &["--of", "read"],
        &["--at", "20 ms", "--before", "5 ms", "--after", "5 ms"],
        &[
            "--of",
            "write",
            "--set",
            "device.ftl.map.protection={ policy = 'partial', protected = '10 %' }",
        ],
        &["--of", "any", "--set", "device.ftl.gc.pace=even"],
    ] {
        let trace = timeline(folder.path(), args);
        assert!(trace.slices.len() > 10 && trace.levels.len() > 2, "{args:?}");
        // Each transfer has its arrow, from its operation on a die.
        assert_eq!(trace.arrows.len(), trace.of("Channels").count(), "{args:?}");
        for ends in trace.arrows.values() {
            let [Some(from), Some(to)] = *ends else { panic!("half an arrow: {ends:?}") };
            let group = |track| &trace.tracks[&trace.tracks[&track].1].0;
            assert_eq!((group(from.0).as_str(), group(to.0).as_str()), ("Dies", "Channels"));
            assert!(from.1 <= to.1);
        }
    }
}

/// The timeline of the slowest write: as long as the record says it took, in rows that do not overlap.
#[test]
fn a_timeline_shows_the_slowest_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let of_write = ["--of", "write"];
    timeline(path, &of_write);
    let shown = timeline(path, &of_write); // takes the place of the first
    let record = leyden(path, &["run", TINY, "--json"]);
    let record: serde_json::Value = serde_json::from_slice(&record.stdout).unwrap();
    assert_eq!(shown.about["digest"], record["sim"]["digest"].as_str().unwrap());
    let slow = shown.slices.iter().position(|it| shown.tracks[&it.row.1].0 == "slow command");
    let slow = slow.unwrap();
    let took_ns = shown.slices[slow].until - shown.slices[slow].from;
    let most_us = record["host"]["write_latency_us"]["max"].as_f64().unwrap();
    assert!((took_ns as f64 - most_us * 1e3).abs() < 0.5, "{took_ns} ns, {most_us} us");
    assert_eq!(shown.about["slow command, ns"], took_ns.to_string());
    assert_eq!(shown.names[slow], "write");
    // Commands and transfers lie beside each other, never within one another.
    let mut rows = BTreeMap::<(u64, u64), Vec<Slice>>::new();
    assert!(shown.of("Channels").next().is_some(), "something was transferred");
    for slice in shown.of("Host commands").chain(shown.of("Channels")) {
        rows.entry(slice.row).or_default().push(slice);
    }
    for mut row in rows.into_values() {
        row.sort_by_key(|slice| slice.from);
        for pair in row.windows(2) {
            assert!(pair[0].until <= pair[1].from, "{pair:?}");
        }
    }
    let refused = |args: &[&str]| {
        fs::copy(TINY, path.join("tiny.toml")).unwrap();
        ends_with(&leyden(path, args), 2);
    };
    refused(&["timeline", "tiny.toml", "--of", "flush", "--output", "f.pftrace"]);
    refused(&["timeline", "tiny.toml", "--output", "tiny.toml"]);
    fs::write(path.join("notes.pftrace"), "\nmy notes").unwrap();
    refused(&["timeline", "tiny.toml", "--output", "notes.pftrace"]);
}

/// The page shows what the trace has: as many blocks as slices, and the slow command by name.
#[test]
fn the_page_has_every_slice_and_names_the_slow_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let of_write = ["--of", "write"];
    let trace = timeline(path, &of_write);
    let made = leyden(path, &["timeline", TINY, "--of", "write", "--output", "slow.html"]);
    ends_with(&made, 0);
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    let html = fs::read_to_string(path.join("slow.html")).unwrap();
    // The command on the page makes the page again.
    let (_, told) = html.split_once("<section id=\"reproduce\">").unwrap();
    let (told, _) = told.split_once("<pre>").unwrap().1.split_once("</pre>").unwrap();
    let told = told.replace("&#x2f;", "/");
    assert_eq!(told, format!("leyden timeline {TINY} --of write --output slow.html"));
    ends_with(&leyden(path, &told.split(' ').skip(1).collect::<Vec<_>>()), 0);
    assert_eq!(fs::read_to_string(path.join("slow.html")).unwrap(), html);
    // "the write of 4 KiB at LBA 1,234 took": the same words on the page.
    let name = said.strip_prefix("the ").and_then(|it| it.split_once(" took ")).unwrap().0;
    assert!(name.starts_with("write of ") && name.contains(" at LBA "), "{name}");
    assert!(html.contains(&format!("<dt>Command</dt><dd>{name}</dd>")), "{name}");
    // An operation of the trace is a slice with its parts within; the page has the parts alone.
    let drawing = html.split_once("<svg class=\"lanes timeline\"").unwrap().1;
    let drawing = drawing.split_once("</svg>").unwrap().0;
    let blocks = drawing.matches("<rect ").count() - 1; // the shade of the slow command
    let dies: BTreeSet<_> = trace.of("Dies").map(|it| it.row).collect();
    let whole = dies.iter().map(|row| {
        // Operations of a die follow one another: a slice that lies in no other is one.
        let mut row: Vec<&Slice> = trace.slices.iter().filter(|it| it.row == *row).collect();
        row.sort_by_key(|it| (it.from, -it.until));
        let mut last = i64::MIN;
        let mut count = 0;
        for it in row {
            count += usize::from(it.until > last);
            last = last.max(it.until);
        }
        count
    });
    let operations: usize = whole.sum();
    assert_eq!(blocks, trace.slices.len() - operations);
    assert!(html.contains("<html") && !html.contains("http://") && !html.contains("src="));
    ends_with(&leyden(path, &["timeline", TINY, "--output", "slow.html"]), 0);
    fs::write(path.join("notes.html"), "my notes").unwrap();
    ends_with(&leyden(path, &["timeline", TINY, "--output", "notes.html"]), 2);
}
