//! How fast the host layers are simulated: writes at random places, by sixteen threads.
//!
//!     cargo run --release -p leyden-host --example layer_speed
//!
//! First into a cache on a drive that takes no time, which is the cost of the layers alone; then into
//! one on a real drive; then to the real drive without a cache, each page announced beforehand, with
//! hints off and on.

use leyden_device::{
    BlockDevice, Command, CommandId, Completion, Config, Hint, Lba, NoData, Output, Ssd,
};
use leyden_host::{Channel, HintChannel, HintChannelConfig, PageCache, PageCacheConfig};
use leyden_sim::{Bytes, Ratio, Rng, Time};

const WRITES: u64 = 4_000_000;

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
            op: command.op(),
            tag: command.tag,
            submitted: now,
            time: now,
            status: leyden_device::Status::Success,
            output: Output::None,
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

/// Writes per second of CPU time.
fn play<D: BlockDevice<NoData>>(device: &mut D, sectors: u32, announced: bool, writes: u64) -> f64 {
    let places = device.capacity_sectors() / u64::from(sectors);
    let mut rng = Rng::new(1, "speed");
    let (mut now, mut left, mut under_way) = (Time::ZERO, writes, 0);
    let mut ended = Vec::new();
    let mut announce = Vec::new();
    let start = cpu_ns();
    while left > 0 {
        while under_way < 16 && left > 0 {
            let lba = Lba(rng.below(places) * u64::from(sectors));
            if announced {
                // The place written now was announced a while ago.
                for hint in Hint::covering(lba, sectors) {
                    device.announce(now, hint);
                }
                announce.push(lba);
                let at = rng.below(announce.len() as u64) as usize;
                let lba = if announce.len() > 5_000 { announce.swap_remove(at) } else { lba };
                device.submit(now, Command::write(lba, sectors, ()));
            } else {
                device.submit(now, Command::write(lba, sectors, ()));
            }
            (under_way, left) = (under_way + 1, left - 1);
        }
        now = device.advance_until_completion(now, Time::MAX, &mut ended);
        under_way -= ended.len();
        ended.clear();
    }
    writes as f64 * 1e9 / (cpu_ns() - start) as f64
}

/// Nanoseconds that this thread has run, whatever else the machine does.
fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux says so");
    text.split_whitespace().next().and_then(|ns| ns.parse().ok()).expect("nanoseconds")
}

fn drive() -> Ssd<NoData> {
    let mut config = Config::default();
    config.ftl.capacity = Some(Bytes::new(8 << 30));
    config.nand.blocks_per_plane = 80;
    Ssd::new(&config, 1).expect("a drive of 8 GiB fits into that")
}

fn channel(kind: Channel) -> HintChannel<Ssd<NoData>> {
    let config = HintChannelConfig { channel: kind, ..HintChannelConfig::default() };
    HintChannel::new(&config, drive(), 1).expect("the defaults are fine")
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    let config = PageCacheConfig { size: Bytes::new(1 << 30), ..PageCacheConfig::default() };
    let mut hot = PageCacheConfig { size: Bytes::new(4 << 30), ..PageCacheConfig::default() };
    (hot.background_ratio, hot.dirty_ratio) = (Ratio::from_percent(99), Ratio::ONE);
    for sectors in [8, 32] {
        println!("writes of {} KiB, in millions for each second of CPU time:", sectors / 2);
        let show = |what: &str, rate: f64| println!("  {what}: {:.2}", rate / 1e6);
        let cache = |config| PageCache::new(config, Nowhere::default(), 4096).expect("of 8 GiB");
        let writes = WRITES * 8 / u64::from(sectors);
        show("cached, below is nothing", play(&mut cache(&config), sectors, false, writes));
        let few = (1 << 20) * 8 / u64::from(sectors);
        show("cached, never written back", play(&mut cache(&hot), sectors, false, few));
        for kind in [Channel::Off, Channel::Piggyback] {
            let mut cache = PageCache::new(&config, channel(kind), 4096).expect("of 8 GiB");
            let rate = play(&mut cache, sectors, false, writes / 2);
            show(&format!("cached, below are hints ({kind:?}) and a drive"), rate);
        }
        for kind in [Channel::Off, Channel::Piggyback, Channel::Command] {
            let rate = play(&mut channel(kind), sectors, true, writes / 2);
            show(&format!("straight to hints ({kind:?}) and a drive"), rate);
        }
        show("straight to a drive", play(&mut drive(), sectors, false, writes / 2));
    }
}
