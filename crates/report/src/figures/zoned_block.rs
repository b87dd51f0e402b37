//! Block devices on a conventional and a zoned drive: what is written for what, where chunks lie, which of them are moved,
//! and what the conventional drive's zones are for.

use leyden_record::{Chunk, ChunkPlace, RandomZone, ZonedBlock};

use super::zones::{Cell, ZoneMap};
use super::{Bar, Figure, Key, Segment, Size};
use crate::format::{self, rounded};
use crate::run::Run;
use crate::table::Table;

/// A kind of what is written to the drives.
struct Kind {
    label: &'static str,
    colour: usize,
    bytes: fn(&ZonedBlock) -> u64,
}

const fn kind(label: &'static str, colour: usize, bytes: fn(&ZonedBlock) -> u64) -> Kind {
    Kind { label, colour, bytes }
}

/// Kinds of writes, in the order of bars: the host's first, then the layer's additions.
const KINDS: [Kind; 8] = [
    kind("The host's data", 0, |it| it.host_bytes - it.host_journal_bytes - it.host_meta_bytes),
    kind("The host's file-system metadata", 4, |it| it.host_meta_bytes),
    kind("The host's journal", 2, |it| it.host_journal_bytes),
    kind("Data copied", 1, |it| it.copied_data_bytes),
    kind("File-system metadata copied", 5, |it| it.copied_meta_bytes),
    kind("Journal copied", 3, |it| it.copied_journal_bytes),
    kind("Zeroes filled in", 7, |it| it.filled_bytes),
    kind("Tables", 6, |it| it.metadata_bytes),
];

/// How each place of a chunk is called and coloured.
const PLACES: [(ChunkPlace, &str, usize); 4] = [
    (ChunkPlace::Nowhere, "Nothing written", 7),
    (ChunkPlace::Random, "In a random zone", 1),
    (ChunkPlace::Sequential, "In a sequential zone", 0),
    (ChunkPlace::Buffered, "In a sequential zone, with a buffer zone", 2),
];

/// The same of what random zones are for.
const USES: [(RandomZone, &str, usize); 6] = [
    (RandomZone::Tables, "Tables", 6),
    (RandomZone::Free, "Free", 7),
    (RandomZone::Data, "A chunk", 1),
    (RandomZone::Buffer, "A chunk's buffer", 2),
    (RandomZone::Journal, "Journal", 3),
    (RandomZone::GivenUp, "Given up", 4),
];

/// The figures of every run on such a device; none for others.
pub(crate) fn figures(runs: &[Run]) -> Vec<Figure> {
    let layers: Vec<(&Run, &ZonedBlock)> =
        runs.iter().filter_map(|run| Some((run, run.record.zoned_block.as_ref()?))).collect();
    if layers.is_empty() {
        return Vec::new();
    }
    let mut figures = vec![written(&layers)];
    for (index, run) in runs.iter().enumerate() {
        let Some(layer) = &run.record.zoned_block else { continue };
        let named = |id: &str, title: &str| match runs.len() {
            1 => Figure::new(id, title),
            _ => Figure::new(format!("{id}-{}", index + 1), format!("{title}: {}", run.label)),
        };
        figures.push(chunks(named("chunks", "Where chunks lie at the end of the run"), layer));
        figures.push(moved(named("moved-chunks", "Chunks that are moved"), layer));
        figures.push(random(named("random-zones", "Use of random zones at the end"), layer));
    }
    figures
}

/// A bar for each run: the host's writes, and the layer's additions.
fn written(layers: &[(&Run, &ZonedBlock)]) -> Figure {
    let mut figure = Figure::new("layer-writes", "Written to the drives, by kind");
    figure.size = Size::Wide;
    let total = |layer: &ZonedBlock| KINDS.iter().map(|kind| (kind.bytes)(layer)).sum::<u64>();
    let most = layers.iter().map(|(_, layer)| total(layer)).max().unwrap_or(0);
    if most == 0 {
        return figure.nothing("Nothing was written.");
    }
    let mut table = Table::new(
        std::iter::once(String::new()).chain(layers.iter().map(|(run, _)| run.label.clone())),
    );
    for kind in &KINDS {
        let bytes: Vec<u64> = layers.iter().map(|(_, layer)| (kind.bytes)(layer)).collect();
        if bytes.iter().all(|&bytes| bytes == 0) {
            continue;
        }
        figure.keys.push(key(kind.label, kind.colour));
        let cells = bytes.iter().map(|&bytes| format::bytes(bytes as f64));
        table.rows.push(std::iter::once(kind.label.to_owned()).chain(cells).collect());
    }
    let factors = layers.iter().map(|(_, layer)| format::factor(layer.waf));
    let label = "Write amplification, end to end".to_owned();
    table.rows.push(std::iter::once(label).chain(factors).collect());
    let bar = |(run, layer): &(&Run, &ZonedBlock)| Bar {
        label: run.label.clone(),
        value: format::bytes(total(layer) as f64),
        from_percent: 0.0,
        segments: KINDS.iter().filter_map(|kind| segment(kind, layer, most)).collect(),
    };
    figure.bars = layers.iter().map(bar).collect();
    figure.table = Some(table);
    figure.note(
        "Copies of the drives' own garbage collection are additional: see write amplification.",
    )
}

fn segment(kind: &Kind, layer: &ZonedBlock, of: u64) -> Option<Segment> {
    let bytes = (kind.bytes)(layer);
    (bytes > 0).then(|| Segment {
        colour: kind.colour,
        percent: rounded(100.0 * bytes as f64 / of as f64),
        title: format!("{}: {}", kind.label, format::bytes(bytes as f64)),
    })
}

fn key(label: &str, colour: usize) -> Key {
    Key { label: label.to_owned(), colour, thin: false, dashed: false }
}

/// Adds a key and a row for each of `looks` that occurs, `count` times.
fn legend<T: Copy>(
    figure: &mut Figure,
    looks: &[(T, &'static str, usize)],
    what: [&str; 2],
    count: impl Fn(T) -> usize,
) {
    let mut table = Table::new(what);
    for &(it, label, colour) in looks {
        let number = count(it);
        if number > 0 {
            figure.keys.push(key(label, colour));
            table.rows.push(vec![label.to_owned(), format::count(number as f64)]);
        }
    }
    figure.table = Some(table);
}

fn chunks(mut figure: Figure, layer: &ZonedBlock) -> Figure {
    if layer.chunks.is_empty() {
        return figure.nothing("Where chunks lie was not recorded.");
    }
    let count = |place| layer.chunks.iter().filter(|chunk| chunk.place == place).count();
    legend(&mut figure, &PLACES, ["Place", "Chunks"], count);
    let cell = |(number, chunk): (usize, &Chunk)| {
        let share = share(chunk.valid_blocks.into(), layer.chunk_blocks);
        let (_, label, colour) = PLACES[chunk.place as usize];
        let title = format!("chunk {number}: {label}, {} valid", format::percent(share));
        Cell { title, colour, share: rounded(share) }
    };
    figure.zones = Some(ZoneMap::new(layer.chunks.iter().enumerate().map(cell).collect()));
    figure.note(format!(
        "A cell is a chunk of {}, filled as far as it holds data; in the order of addresses.",
        format::bytes(chunk_bytes(layer))
    ))
}

fn moved(mut figure: Figure, layer: &ZonedBlock) -> Figure {
    let most = layer.chunks.iter().map(|chunk| chunk.copied_blocks).max().unwrap_or(0);
    if most == 0 {
        return figure.nothing("Reclaim has moved nothing.");
    }
    let unit = chunk_bytes(layer) / layer.chunk_blocks.max(1) as f64;
    let bytes = |blocks: u64| format::bytes(blocks as f64 * unit);
    let mut order: Vec<(usize, &Chunk)> = layer.chunks.iter().enumerate().collect();
    order.sort_by_key(|(_, chunk)| std::cmp::Reverse(chunk.copied_blocks));
    let mut table = Table::new(["Chunk", "Copied"]);
    for (number, chunk) in order.iter().take(MOST_ROWS).filter(|(_, it)| it.copied_blocks > 0) {
        table.rows.push(vec![number.to_string(), bytes(chunk.copied_blocks)]);
    }
    figure.table = Some(table);
    let cell = |(number, chunk): (usize, &Chunk)| {
        let title = format!("chunk {number}: {} copied", bytes(chunk.copied_blocks));
        let colour = if chunk.copied_blocks > 0 { 3 } else { 7 };
        Cell { title, colour, share: rounded(share(chunk.copied_blocks, most)) }
    };
    figure.zones = Some(ZoneMap::new(layer.chunks.iter().enumerate().map(cell).collect()));
    figure.note(format!(
        "A cell is a chunk, filled by how much of it reclaim has copied since the device was made; full is {}.",
        bytes(most)
    ))
}

/// Chunks that the table of what is moved names.
const MOST_ROWS: usize = 20;

fn random(mut figure: Figure, layer: &ZonedBlock) -> Figure {
    if layer.random_zones.is_empty() {
        return figure.nothing("The use of random zones was not recorded.");
    }
    let count = |it| layer.random_zones.iter().filter(|&&zone| zone == it).count();
    legend(&mut figure, &USES, ["Used for", "Zones"], count);
    let cell = |(number, &zone): (usize, &RandomZone)| {
        let (_, label, colour) = USES[zone as usize];
        let share = if zone == RandomZone::Free { 0.0 } else { 1.0 };
        Cell { title: format!("zone {number}: {label}"), colour, share }
    };
    figure.zones = Some(ZoneMap::new(layer.random_zones.iter().enumerate().map(cell).collect()));
    figure.note("A cell is a zone of the conventional drive.")
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Bytes of a chunk.
fn chunk_bytes(layer: &ZonedBlock) -> f64 {
    layer.chunk_blocks as f64 * layer.block_bytes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    use leyden_record::RunRecord;

    fn record() -> RunRecord {
        let chunk = |place, copied_blocks| Chunk { place, valid_blocks: 8, copied_blocks };
        let layer = ZonedBlock {
            host_bytes: 100 << 20,
            host_journal_bytes: 60 << 20,
            copied_data_bytes: 30 << 20,
            copied_journal_bytes: 10 << 20,
            chunk_blocks: 16,
            block_bytes: 4096,
            chunks: vec![
                chunk(ChunkPlace::Nowhere, 0),
                chunk(ChunkPlace::Buffered, 5),
                chunk(ChunkPlace::Random, 10),
            ],
            random_zones: vec![RandomZone::Tables, RandomZone::Journal, RandomZone::Free],
            ..ZonedBlock::default()
        };
        RunRecord { zoned_block: Some(layer), ..RunRecord::default() }
    }

    #[test]
    fn the_looks_stand_in_the_order_of_what_they_are_of() {
        assert!(PLACES.iter().enumerate().all(|(at, it)| it.0 as usize == at));
        assert!(USES.iter().enumerate().all(|(at, it)| it.0 as usize == at));
    }

    #[test]
    fn a_bar_shows_what_comes_on_top_of_the_hosts() {
        let records = [record()];
        let figures = figures(&Run::all(&records));
        let bar = &figures[0].bars[0];
        let shares: Vec<f64> = bar.segments.iter().map(|it| it.percent).collect();
        assert_eq!(shares.len(), 4);
        for (share, mib) in shares.iter().zip([40.0, 60.0, 30.0, 10.0]) {
            assert!((share - 100.0 * mib / 140.0).abs() < 0.1, "{shares:?}");
        }
        let rows: Vec<_> = figures[2].table.as_ref().unwrap().rows.clone();
        assert_eq!(rows[0], ["2", "40 KiB"], "the most copied chunk comes first");
        assert_eq!(figures.len(), 4);
    }

    #[test]
    fn other_devices_have_no_such_figures() {
        assert!(figures(&Run::all(&[RunRecord::default()])).is_empty());
    }
}
