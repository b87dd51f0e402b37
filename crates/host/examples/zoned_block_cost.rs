//! The CPU time of a translated write: random 4 KiB writes to a block device on two drives, and the
//! same writes straight to its conventional drive. Nothing is reclaimed, and no tables are written:
//! it is the translation alone.
//!
//!     cargo run --release --workspace --example zoned_block_cost

use leyden_device::{
    BlockDevice, Command, Config, DataKind, Lba, NoData, Op, Payload, Ssd, Units, ZnsSsd,
};
use leyden_host::zoned_block::{Pair, Stored, StoredData};
use leyden_host::{Powered, ZonedBlock, ZonedBlockConfig};
use leyden_sim::{Bytes, Rng, Span, Time};

type Conventional = Ssd<Stored<NoData>>;
type Zoned = ZnsSsd<Stored<NoData>>;

const WRITES: u64 = 500_000;
const ROUNDS: usize = 7;
const QUEUE_DEPTH: usize = 32;
/// Blocks of a zone.
const ZONE: u64 = 64 << 20 >> 12;
/// The chunks that are written: they fit into the random zones.
const CHUNKS: u64 = 8;

/// The drives of `scenarios/devices/zoned-block.toml`, with shorter latencies: they take no CPU time.
fn drives() -> (Conventional, Zoned) {
    let mut config = Config::default();
    (config.nand.channels, config.nand.dies_per_channel) = (8, 8);
    (config.nand.page_size, config.nand.pages_per_block) = (Bytes::new(4096), 256);
    config.nand.blocks_per_plane = 20;
    config.buffer.size = Bytes::new(4 << 20);
    let mut zoned = config.clone();
    config.ftl.capacity = Some(Bytes::new(1 << 30));
    zoned.nand.blocks_per_plane = 68;
    zoned.zoned.get_or_insert_default().zone_size = Bytes::new(ZONE << 12);
    let conventional = Ssd::new(&config, 1).expect("a drive of 1 GiB fits into that");
    (conventional, ZnsSsd::new(&zoned, 2).expect("and one of 4 GiB into that"))
}

fn device(separate: bool) -> ZonedBlock<NoData, Conventional, Zoned> {
    let (conventional, zoned) = drives();
    let shape = *zoned.zone_shape();
    let mut config = ZonedBlockConfig { idle: Span::ZERO, ..ZonedBlockConfig::default() };
    (config.journal.separate, config.journal.max_zones) = (separate, 1);
    config.low_free = leyden_sim::Ratio::from_percent(0);
    config.commit_interval = Span::ZERO;
    let pair = Pair { conventional, zoned, shape };
    ZonedBlock::format(&config, pair, 1).expect("the drives make up a device")
}

/// Nanoseconds of CPU time that a write takes, once the first quarter has been written.
fn play<P: Payload, D: BlockDevice<P>>(
    device: &mut D,
    mut now: Time,
    blocks: u64,
    command: impl Fn(Lba) -> Command<P>,
) -> f64 {
    let mut rng = Rng::new(1, "cost");
    let (mut ended, mut under_way, mut start) = (Vec::new(), 0, 0);
    for number in 0..WRITES {
        if number == WRITES / 4 {
            start = cpu_ns();
        }
        device.submit(now, command(Lba(rng.below(blocks) * 8)));
        under_way += 1;
        while under_way >= QUEUE_DEPTH {
            now = device.advance_until_completion(now, Time::MAX, &mut ended);
            under_way -= ended.iter().filter(|end| end.op == Op::Write).count();
            ended.clear();
        }
    }
    (cpu_ns() - start) as f64 / (WRITES - WRITES / 4) as f64
}

/// Nanoseconds that this thread has run, whatever else the machine does.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux says so");
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

fn straight() -> f64 {
    let (mut drive, _) = drives();
    let now = Powered::now(&drive);
    play(&mut drive, now, CHUNKS * ZONE, |lba| {
        let units = Units::new(lba.0, 8, 8);
        Command::write(lba, 8, StoredData::Host { data: (), units, from: 0 })
    })
}

fn translated(has_journal: bool) -> f64 {
    let mut device = device(has_journal);
    let mut now = Powered::now(&device);
    // A journal behind the data: with one, every write asks whether it is the journal's.
    for block in 0..if has_journal { ZONE / 2 } else { 0 } {
        let lba = Lba((CHUNKS * ZONE + block) * 8);
        device.submit(now, Command::write(lba, 8, ()).kind(DataKind::Log));
        now = device.advance_until_completion(now, Time::MAX, &mut Vec::new());
    }
    let per_write = play(&mut device, now, CHUNKS * ZONE, |lba| Command::write(lba, 8, ()));
    let stats = device.stats();
    assert_eq!((stats.reclaimed, stats.starved), (0, 0), "the translation alone");
    assert_eq!(stats.separated_blocks > 0, has_journal);
    per_write
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    println!(
        "CPU time of a random 4 KiB write, in ns (median of {ROUNDS} rounds; difference within a round):"
    );
    let rounds: Vec<[f64; 3]> =
        (0..ROUNDS).map(|_| [straight(), translated(false), translated(true)]).collect();
    let show = |what: &str, of: &dyn Fn(&[f64; 3]) -> f64| {
        let values: Vec<f64> = rounds.iter().map(of).collect();
        let least = values.iter().copied().fold(f64::MAX, f64::min);
        let most = values.iter().copied().fold(f64::MIN, f64::max);
        println!("  {what:36}{:6.0}  ({least:.0} to {most:.0})", median(values));
    };
    show("straight to the conventional drive", &|round| round[0]);
    show("translated", &|round| round[1]);
    show("  the layer's own", &|round| round[1] - round[0]);
    show("translated, a journal kept apart", &|round| round[2]);
    show("  the layer's own", &|round| round[2] - round[0]);
}
