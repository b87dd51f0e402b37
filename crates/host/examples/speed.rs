//! How fast the host layers are simulated: writes of 16 KiB at random places, by sixteen threads.
//!
//!     cargo run --release -p leyden-host --example speed
//!
//! First into a cache on a drive that takes no time, which is the cost of the layers alone; then into
//! one on a real drive; then to the real drive without a cache, each page announced beforehand, with
//! hints off and on.

use leyden_device::{
    BlockDevice, Command, CommandId, Completion, Config, Hint, Lba, NoData, Op, Ssd,
};
use leyden_host::{Channel, HintChannel, HintChannelConfig, PageCache, PageCacheConfig};
use leyden_sim::{Bytes, Rng, Time};

const WRITES: u64 = 4_000_000;
const SECTORS: u32 = 32;

/// Ends every command at once.
#[derive(Default)]
struct Nowhere {
    ended: Vec<Completion<NoData>>,
    next_id: u64,
}

impl BlockDevice<NoData> for Nowhere {
    fn submit(&mut self, now: Time, command: Command<NoData>) -> CommandId {
        let id = CommandId(self.next_id);
        self.next_id += 1;
        self.ended.push(Completion {
            id,
            op: command.op,
            tag: command.tag,
            submitted: now,
            time: now,
            status: leyden_device::Status::Success,
            data: (),
        });
        id
    }
    fn next_event(&self) -> Option<Time> {
        self.ended.first().map(|completion| completion.time)
    }
    fn advance(&mut self, _: Time, completions: &mut Vec<Completion<NoData>>) {
        completions.append(&mut self.ended);
    }
    fn capacity_sectors(&self) -> u64 {
        8 << 21 // 8 GiB
    }
}

/// Writes per second of wall time.
fn play<D: BlockDevice<NoData>>(device: &mut D, announced: bool, writes: u64) -> f64 {
    let places = device.capacity_sectors() / u64::from(SECTORS);
    let mut rng = Rng::new(1, "speed");
    let (mut now, mut left, mut under_way) = (Time::ZERO, writes, 0);
    let mut ended = Vec::new();
    let mut announce = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "an example may measure")]
    let start = std::time::Instant::now();
    while left > 0 {
        while under_way < 16 && left > 0 {
            let lba = Lba(rng.below(places) * u64::from(SECTORS));
            if announced {
                // The place written now was announced a while ago.
                for hint in Hint::covering(lba, SECTORS) {
                    device.announce(now, hint);
                }
                announce.push(lba);
                let at = rng.below(announce.len() as u64) as usize;
                let lba = if announce.len() > 5_000 { announce.swap_remove(at) } else { lba };
                device.submit(now, Command::new(Op::Write, lba, SECTORS));
            } else {
                device.submit(now, Command::new(Op::Write, lba, SECTORS));
            }
            (under_way, left) = (under_way + 1, left - 1);
        }
        now = device.advance_until_completion(now, Time::MAX, &mut ended);
        under_way -= ended.len();
        ended.clear();
    }
    writes as f64 / start.elapsed().as_secs_f64()
}

fn drive() -> Ssd<NoData> {
    let mut config = Config::default();
    config.ftl.capacity = Some(Bytes::new(8 << 30));
    config.nand.blocks_per_plane = 64;
    Ssd::new(&config, 1).expect("a drive of 8 GiB fits into that")
}

fn channel(kind: Channel) -> HintChannel<Ssd<NoData>> {
    let config = HintChannelConfig { channel: kind, ..HintChannelConfig::default() };
    HintChannel::new(&config, drive(), 1).expect("the defaults are fine")
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    let config = PageCacheConfig { size: Bytes::new(1 << 30), ..PageCacheConfig::default() };
    let mut cache = PageCache::new(&config, Nowhere::default(), 4096).expect("1 GiB of 8");
    println!("cached, on nothing: {:.2} M/s", play(&mut cache, false, WRITES) / 1e6);
    let mut hot = PageCacheConfig { size: Bytes::new(4 << 30), ..PageCacheConfig::default() };
    (hot.background_ratio, hot.dirty_ratio) = ("99 %".parse().unwrap(), "100 %".parse().unwrap());
    let mut cache = PageCache::new(&hot, Nowhere::default(), 4096).expect("4 GiB of 8");
    println!("cached, no write-back: {:.2} M/s", play(&mut cache, false, 250_000) / 1e6);
    for kind in [Channel::Off, Channel::Piggyback] {
        let mut cache = PageCache::new(&config, channel(kind), 4096).expect("1 GiB of 8");
        println!(
            "cached, on a drive, {kind:?}: {:.2} M/s",
            play(&mut cache, false, WRITES / 4) / 1e6
        );
    }
    for kind in [Channel::Off, Channel::Piggyback, Channel::Command] {
        let rate = play(&mut channel(kind), true, WRITES / 4) / 1e6;
        println!("straight to a drive, {kind:?}: {rate:.2} M/s");
    }
    println!("straight to a drive, none: {:.2} M/s", play(&mut drive(), false, WRITES / 4) / 1e6);
}
