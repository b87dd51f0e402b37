//! Searches on what real file systems were made of, and on what lies.

use std::path::Path;

use proptest::prelude::*;

use super::*;

/// The parts of a device that `fixtures/make.py` has kept, and the place of its journal.
#[derive(Clone, Debug)]
struct Device {
    name: String,
    capacity_bytes: u64,
    pieces: Vec<(u64, Vec<u8>)>,
    journal: Vec<Range<u64>>,
}

impl Device {
    fn read(&self, range: &Range<u64>) -> Vec<u8> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        for (first, piece) in &self.pieces {
            for (at, &byte) in (*first..).zip(piece) {
                if range.contains(&at) {
                    bytes[(at - range.start) as usize] = byte;
                }
            }
        }
        bytes
    }

    fn search(&self) -> (Journal, Search) {
        let (mut search, mut range) = Search::begin(self.capacity_bytes);
        loop {
            match search.read(&self.read(&range)) {
                Next::Read(next) => range = next,
                Next::Found(journal) => return (journal, search),
            }
        }
    }

    fn set(&mut self, at: u64, new: &[u8]) {
        for (first, piece) in &mut self.pieces {
            let end = *first + piece.len() as u64;
            if (*first..end).contains(&at) {
                let from = (at - *first) as usize;
                piece[from..from + new.len()].copy_from_slice(new);
            }
        }
    }
}

fn pieces(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut pieces = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<16>() {
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
        let (piece, rest) = rest.split_at(number(8) as usize);
        pieces.push((number(0), piece.to_vec()));
        bytes = rest;
    }
    pieces
}

fn devices() -> Vec<Device> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/zoned_block/superblock/fixtures");
    let expected = std::fs::read_to_string(folder.join("expected.txt")).unwrap();
    let device = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next().unwrap();
        let capacity_bytes = words.next().unwrap().parse().unwrap();
        let range = |word: &str| {
            let (first, end) = word.split_once('-').unwrap();
            first.parse().unwrap()..end.parse().unwrap()
        };
        let pieces = pieces(&std::fs::read(folder.join(format!("{name}.bin"))).unwrap());
        Device {
            name: name.to_owned(),
            capacity_bytes,
            pieces,
            journal: words.map(range).collect(),
        }
    };
    expected.lines().map(device).collect()
}

fn named(name: &str) -> Device {
    devices().into_iter().find(|device| device.name == name).unwrap()
}

#[test]
fn journals_are_where_the_tools_of_their_file_systems_say() {
    for device in devices() {
        let (journal, _) = device.search();
        let expected = match device.name.as_str() {
            "ext4-no-journal" => Journal::Nowhere(Why::NoJournal),
            "ext4-external" | "xfs-external" => Journal::Nowhere(Why::Elsewhere),
            "ext3" => {
                Journal::Nowhere(Why::Unbelievable("the journal of ext3 is not mapped by extents"))
            }
            _ => Journal::At(device.journal.clone()),
        };
        assert_eq!(journal, expected, "{}", device.name);
    }
    assert_eq!(named("ext4-large-journal").journal.len(), 2, "one of the fixtures has two parts");
    assert!(named("ext4-large-journal").search().1.wanted().len() > 3, "and a tree of two levels");
}

#[test]
fn a_device_that_is_blank_or_short_has_no_journal() {
    for capacity_bytes in [0, 512, 1024, 4096, 1 << 30] {
        let blank =
            Device { capacity_bytes, pieces: Vec::new(), journal: Vec::new(), ..named("ext4") };
        assert_eq!(blank.search().0, Journal::Nowhere(Why::NoFileSystem));
    }
    let mut search = Search::begin(1 << 30).0;
    let head = named("ext4").read(&(0..4096));
    assert!(matches!(search.read(&head), Next::Read(_)));
    let short = search.read(&[]);
    assert!(matches!(short, Next::Found(Journal::Nowhere(Why::Unbelievable(_)))), "{short:?}");
}

/// The name of what is wrong, the fixture, and what is written where.
const LIES: [(&str, &str, u64, &[u8]); 12] = [
    ("blocks of an absurd size", "ext4", 1024 + 0x18, &[7]),
    ("larger than the device", "ext4", 1024 + 4, &[0xff; 4]),
    ("larger than the device, by its high half", "ext4", 1024 + 0x150, &[1]),
    ("inodes of an absurd size", "ext4", 1024 + 0x58, &[0xff, 0xff]),
    ("another journal inode", "ext4", 1024 + 0xe0, &[12]),
    ("descriptors of an absurd size", "ext4", 1024 + 0xfe, &[0xff, 0xff]),
    ("a first block beyond the end", "ext4", 1024 + 0x14, &[0xff; 4]),
    ("an inode table beyond the end", "ext4", 4096 + 8, &[0xff; 4]),
    ("XFS with blocks of no bytes", "xfs", 4, &[0; 4]),
    ("a log in no allocation group", "xfs", 48, &[0x7f; 8]),
    ("a log larger than its group", "xfs", 96, &[0xff; 4]),
    ("groups of an absurd size", "xfs", 124, &[64]),
];

#[test]
fn superblocks_that_lie_are_not_believed() {
    for (what, name, at, bytes) in LIES {
        let mut device = named(name);
        device.set(at, bytes);
        let (journal, _) = device.search();
        assert!(matches!(journal, Journal::Nowhere(Why::Unbelievable(_))), "{what}: {journal:?}");
    }
    // A file system on a device that has become smaller.
    let smaller = Device { capacity_bytes: 128 << 20, ..named("xfs") };
    assert!(matches!(smaller.search().0, Journal::Nowhere(Why::Unbelievable(_))));
}

#[test]
fn extent_trees_with_cycles_or_overlaps_end_the_search() {
    let device = named("ext4-large-journal");
    let (first, inode) = device.pieces[2].clone();
    let root = first + 0x28;
    assert_eq!(le16_at(&inode, 0x28 + 6), 1, "a root above leaves");
    // A root of the greatest depth that points to the superblock's neighbours, which are no nodes.
    let mut deep = device.clone();
    deep.set(root + 6, &[5, 0]);
    assert!(matches!(deep.search().0, Journal::Nowhere(Why::Unbelievable(_))));
    // A leaf that is its own parent: its depth is not what its parent's says.
    let mut cyclic = device.clone();
    let (leaf, _) = device.pieces[3];
    cyclic.set(leaf + 6, &[1, 0]);
    assert!(matches!(cyclic.search().0, Journal::Nowhere(Why::Unbelievable(_))));
    // Twice the same leaf: the journal has its blocks twice.
    let mut twice = device.clone();
    let entry = inode[0x28 + 12..0x28 + 24].to_vec();
    twice.set(root + 2, &[2, 0]);
    twice.set(root + 24, &entry);
    assert_eq!(
        twice.search().0,
        Journal::Nowhere(Why::Unbelievable("the journal has a block twice"))
    );
    // More entries than a node has room for.
    let mut long = device;
    long.set(leaf + 2, &[0xff, 0xff]);
    assert!(matches!(long.search().0, Journal::Nowhere(Why::Unbelievable(_))));
}

fn le16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

#[test]
fn read_ranges_are_those_that_a_change_of_the_journal_changes() {
    let device = named("ext4-large-journal");
    let (_, search) = device.search();
    for (at, piece) in &device.pieces[1..] {
        let is_watched = |byte: u64| search.wanted().iter().any(|range| range.contains(&byte));
        assert!(is_watched(*at), "byte {at}, of a piece of {} bytes", piece.len());
    }
}

proptest! {
    /// Bytes of real file systems, changed anywhere.
    #[test]
    fn any_change_ends_the_search_within_the_device(
        which in 0_usize..13,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u64>(), 0_usize..8), 1..12),
        shift in 0_u32..8,
    ) {
        let mut device = devices().swap_remove(which);
        device.capacity_bytes >>= shift;
        for (piece, value, bytes) in changes {
            let (first, length) = {
                let (first, piece) = piece.get(&device.pieces);
                (*first, piece.len() as u64)
            };
            let at = first + value % (length - 8);
            device.set(at, &value.rotate_left(24).to_le_bytes()[..=bytes]);
        }
        let (journal, search) = device.search();
        prop_assert!(search.wanted().len() <= MAX_READS);
        if let Journal::At(ranges) = journal {
            prop_assert!(ranges.iter().all(|range| range.start < range.end));
            prop_assert!(ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert!(ranges.last().unwrap().end <= device.capacity_bytes);
        }
    }

    #[test]
    fn any_bytes_end_the_search(data in prop::collection::vec(any::<u8>(), 0..5_000)) {
        fuzz::search(&data);
    }
}
