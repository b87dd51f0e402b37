//! Any bytes as the metadata of a device on two drives.

use leyden_device::ZoneShape;

use super::ZonedBlockConfig;
use super::layout::{Layout, ZoneNo};
use super::map::Map;
use super::metadata::{Superblock, decode_blocks, digest, encode_block};

/// Of a small device, so that hardly a word is without meaning.
fn layout() -> Layout {
    let mut config = ZonedBlockConfig { reserved_zones: 2, ..ZonedBlockConfig::default() };
    (config.journal.separate, config.journal.max_zones) = (true, 2);
    let shape = ZoneShape {
        zones: 16,
        size: 40,
        capacity: 33,
        dies_per_zone: 1,
        max_open: 4,
        max_active: 4,
        append_limit: 8,
        copy_limit: 8,
        zrwa_size: 0,
        zrwa_granularity: 0,
        zrwa_count: 0,
        extension_bytes: 0,
        reads_across: true,
    };
    Layout::new(&config, 4096, 10 * 33 * 8, &shape).expect("such a device can be")
}

/// The metadata of that device with two chunks and a journal in use.
///
/// # Panics
/// Never: the journal has a zone.
pub fn seed() -> Vec<u8> {
    let layout = layout();
    let mut map = Map::new(layout);
    let random: Vec<ZoneNo> = layout.random_zones().collect();
    let sequential: Vec<ZoneNo> = layout.sequential_zones().collect();
    let entry = |data, buffer| super::map::Entry { data: Some(data), buffer };
    map.set_chunk(0, entry(random[0], None));
    map.set_chunk(1, entry(sequential[0], Some(random[1])));
    map.add_journal_zone(random[2]);
    for (chunk, at, zone) in [(0, 3, random[0]), (1, 4, sequential[0]), (1, 9, random[1])] {
        map.settle(chunk, at, 5, Some(super::layout::Place { zone, at, blocks: 5 }));
    }
    for at in 20..29 {
        let slot = map.add_slot(1, at).expect("the journal has a zone");
        let place = super::layout::Place { zone: slot.zone, at: slot.at, blocks: 1 };
        map.settle(1, at, 1, Some(place));
    }
    map.set_all_dirty();
    map.snapshot()
        .blocks
        .into_iter()
        .flat_map(|(_, words)| words)
        .flat_map(u64::to_le_bytes)
        .collect()
}

/// Reads `data` as a metadata set: as it is, and as the words of tables whose checksums are right. What is taken for
/// tables keeps their invariants, and is written as it was read.
///
/// # Errors
/// Says why it is not taken.
///
/// # Panics
/// If tables are taken that do not keep their invariants.
pub fn tables(data: &[u8]) -> Result<(), String> {
    let layout = layout();
    let unit = layout.unit_bytes as usize;
    if let Ok(superblock) = Superblock::decode(&layout, data) {
        let blocks = data[unit.min(data.len())..].chunks(unit).take(layout.table_blocks() as usize);
        let _ = decode_blocks(&layout, &superblock, blocks);
    }
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
    let mut words: Vec<u64> = data.chunks_exact(8).map(word).collect();
    words.resize(layout.words() as usize, 0);
    let blocks: Vec<(Vec<u8>, u32)> = (0..)
        .zip(words.chunks(layout.words_per_block() as usize))
        .map(|(number, words)| encode_block(&layout, number, words))
        .collect();
    let crcs: Vec<u32> = blocks.iter().map(|&(_, crc)| crc).collect();
    let superblock = Superblock { role: 0, generation: 1, identity: 1, digest: digest(&crcs) };
    let bytes = blocks.iter().map(|(bytes, _)| &bytes[..]);
    let (read, _) = decode_blocks(&layout, &superblock, bytes).expect("its checksums are right");
    assert_eq!(read, words, "the written words are read");
    let mut map = Map::decode(layout, read)?;
    map.check().expect("tables that are taken keep their invariants");
    for chunk in 0..layout.chunks {
        for at in 0..layout.zone_blocks {
            if let Some((zone, at)) = map.find(chunk, at) {
                assert!(map.is_valid(zone, at) && layout.is_for_data(zone), "{zone:?} {at}");
            }
        }
    }
    while let Some((chunk, at, blocks)) = map.next_in_journal(8) {
        assert!(blocks > 0 && chunk < layout.chunks && at + blocks <= layout.zone_blocks);
        map.settle(chunk, at, blocks, None);
    }
    map.clear_journal();
    map.check().expect("a journal that was left leaves tables that keep their invariants");
    Ok(())
}
