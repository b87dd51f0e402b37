//! Reads, and data below after a flush, against a list of every write to every unit.

use leyden_device::{Config, Ssd};
use leyden_sim::Rng;
use proptest::prelude::*;

use super::*;

const UNITS: u64 = 120;

/// A write, or a trim (stamp 0), of one unit.
#[derive(Clone, Copy, Debug)]
struct Version {
    stamp: u64,
    submitted: Time,
    completed: Option<Time>,
}

/// The slow twin: what the host has done to every unit.
struct Twin {
    history: Vec<Vec<Version>>,
}

impl Twin {
    /// Something that came at `submitted` and ended at `completed` may find `stamp`, unless another
    /// version came after that one had ended, and ended before `submitted`.
    fn allows(&self, unit: usize, stamp: u64, submitted: Time, completed: Time) -> bool {
        let history = &self.history[unit];
        let overtaken = |version: &Version| {
            history.iter().any(|later| {
                version.completed.is_some_and(|at| later.submitted > at)
                    && later.completed.is_some_and(|at| at < submitted)
            })
        };
        let first = Version { stamp: 0, submitted: Time::ZERO, completed: Some(Time::ZERO) };
        let mut versions = std::iter::once(&first).chain(history);
        versions.any(|v| v.stamp == stamp && v.submitted <= completed && !overtaken(v))
    }
}

/// The units whose content a command changes, and to what.
fn touched(command: &Command<Stamp>) -> Vec<(usize, u64)> {
    let (lba, sectors) = command.extent().unwrap_or_default();
    let (from, to) = (lba.0, lba.0 + u64::from(sectors));
    let units = from / 8..to.div_ceil(8);
    let change = |unit: u64| {
        let whole = from <= unit * 8 && (unit + 1) * 8 <= to;
        let stamp = match command.action {
            Action::Trim { .. } | Action::WriteZeroes { .. } if whole => 0,
            Action::Write { data, .. } | Action::WriteZeroes { data, .. } => data,
            _ => return None,
        };
        Some((unit as usize, stamp))
    };
    units.filter_map(change).collect()
}

fn random_command(rng: &mut Rng, stamp: u64) -> Command<Stamp> {
    let op = match rng.below(20) {
        0 => Op::Flush,
        1 => Op::Trim,
        2 => Op::WriteZeroes,
        3..10 => Op::Read,
        _ => Op::Write,
    };
    // Mostly whole units; a few that everyone wants.
    let (first, count) = match rng.below(3) {
        0 => (rng.below(8), 1 + rng.below(4)),
        1 => (rng.below(UNITS - 40), 1 + rng.below(40)),
        _ => (rng.below(UNITS - 4), 1 + rng.below(4)),
    };
    let (mut lba, mut sectors) = (first * 8, count * 8);
    if rng.below(4) == 0 {
        lba += rng.below(8);
        sectors = 1 + rng.below(sectors.min(UNITS * 8 - lba));
    }
    let fua = op == Op::Write && rng.below(8) == 0;
    if op == Op::Flush && rng.below(2) == 0 {
        return Command::sync(Lba(lba), sectors as u32);
    }
    let direct = rng.below(5) == 0;
    Command::new(op, Lba(lba), sectors as u32, stamp).fua(fua).direct(direct)
}

/// The check of the device below when a flush or a write with FUA has ended.
type Durable<D> = fn(&D, usize) -> Option<u64>;

struct Game<D> {
    cache: PageCache<Stamp, D>,
    twin: Twin,
    outstanding: Vec<(CommandId, Command<Stamp>)>,
    durable: Durable<D>,
    now: Time,
}

impl<D: BlockDevice<Stamp>> Game<D> {
    fn new(config: &PageCacheConfig, device: D, durable: Durable<D>) -> Self {
        let cache = PageCache::new(config, device, 4096).unwrap();
        let twin = Twin { history: vec![Vec::new(); UNITS as usize] };
        Self { cache, twin, outstanding: Vec::new(), durable, now: Time::ZERO }
    }

    fn submit(&mut self, command: Command<Stamp>) {
        for (unit, stamp) in touched(&command) {
            let version = Version { stamp, submitted: self.now, completed: None };
            self.twin.history[unit].push(version);
        }
        let id = self.cache.submit(self.now, command.clone());
        self.outstanding.push((id, command));
    }

    /// Lets everything happen up to `until`, and checks what ends.
    fn run(&mut self, until: Time) -> Result<(), TestCaseError> {
        let mut ended = Vec::new();
        loop {
            let event = self.cache.next_event().filter(|&event| event <= until);
            self.now = event.unwrap_or(until).max(self.now);
            self.cache.advance(self.now, &mut ended);
            for end in ended.drain(..) {
                self.ended(&end)?;
            }
            if event.is_none() {
                return Ok(());
            }
        }
    }

    fn ended(&mut self, end: &Completion<Stamp>) -> Result<(), TestCaseError> {
        let at = self.outstanding.iter().position(|(id, _)| *id == end.id);
        let Some(at) = at else { return Err(TestCaseError::fail("ended twice")) };
        let (_, command) = self.outstanding.swap_remove(at);
        prop_assert_eq!(end.status, Status::Success, "{:?}", &command);
        for (unit, stamp) in touched(&command) {
            let mut versions = self.twin.history[unit].iter_mut();
            let same = |v: &&mut Version| {
                v.stamp == stamp && v.submitted == end.submitted && v.completed.is_none()
            };
            versions.find(same).expect("it was submitted").completed = Some(end.time);
        }
        if let (Some(data), Some((lba, sectors))) = (end.data(), command.extent()) {
            let units = (lba.0 + u64::from(sectors)).div_ceil(8) - lba.0 / 8;
            prop_assert_eq!(data.len() as u64, units, "{:?}", &command);
            for (unit, stamp) in (lba.0 as usize / 8..).zip(data) {
                let allowed = self.twin.allows(unit, stamp.0, end.submitted, end.time);
                prop_assert!(allowed, "unit {unit} reads {stamp:?}: {:?}", self.twin.history[unit]);
            }
        }
        if let Action::Flush { file } = command.action {
            let file =
                file.map(|(lba, sectors)| lba.0 / 8..(lba.0 + u64::from(sectors)).div_ceil(8));
            for unit in file.unwrap_or(0..UNITS).map(|unit| unit as usize) {
                if let Some(stamp) = (self.durable)(self.cache.device(), unit) {
                    let allowed = self.twin.allows(unit, stamp, end.submitted, end.time);
                    let history = &self.twin.history[unit];
                    prop_assert!(allowed, "unit {unit} is {stamp} after a flush: {history:?}");
                }
            }
        }
        if command.is_fua() {
            for (unit, _) in touched(&command) {
                let Some(held) = (self.durable)(self.cache.device(), unit) else { continue };
                let history = &self.twin.history[unit];
                let as_new = |v: &Version| {
                    v.stamp == held && v.completed.is_none_or(|at| at >= end.submitted)
                };
                let is_new = history.iter().any(as_new);
                prop_assert!(is_new, "unit {unit} is {held} after FUA: {history:?}");
            }
        }
        Ok(())
    }

    /// Everything is flushed, the cache is lost: the device holds what the host has written last.
    fn finish(mut self) -> Result<(), TestCaseError> {
        self.run(self.now + Span::from_ms(100_000))?;
        prop_assert!(self.outstanding.is_empty(), "{:?} never ended", self.outstanding);
        prop_assert_eq!(self.cache.dirty_units() + self.cache.writeback_units(), 0);
        prop_assert!(self.cache.is_idle() && self.cache.next_event().is_none());
        for unit in 0..UNITS {
            self.submit(write(unit, 1, 1_000_000 + unit)); // and once more, to have something dirty
        }
        self.run(self.now + Span::from_ms(1_000))?;
        self.submit(command(Op::Flush, 0, 0));
        self.run(self.now + Span::from_ms(1_000))?;
        prop_assert!(self.outstanding.is_empty());
        self.cache.lose_power();
        self.submit(command(Op::Read, 0, UNITS as u32));
        self.run(self.now + Span::from_ms(1_000))
    }
}

fn play<D: BlockDevice<Stamp>>(
    mut game: Game<D>,
    seed: u64,
    depth: usize,
    commands: u64,
) -> Result<(), TestCaseError> {
    let mut rng = Rng::new(seed, "page cache");
    for stamp in 1..=commands {
        while game.outstanding.len() >= depth && game.cache.next_event().is_some() {
            let event = game.cache.next_event().unwrap_or(game.now);
            game.run(event.max(game.now))?;
        }
        let wait = match rng.below(40) {
            0 => Span::from_ms(rng.below(40_000)),
            1..10 => Span::ZERO,
            _ => Span::from_us(rng.below(150)),
        };
        game.run(game.now + wait)?;
        let command = random_command(&mut rng, stamp);
        game.submit(command);
    }
    game.finish()
}

fn configs() -> impl Strategy<Value = PageCacheConfig> {
    let ratios = (1_u64..60, 1_u64..40);
    (16_u64..110, ratios, 1_u32..9, 0_u64..3).prop_map(|(pages, (low, more), depth, io)| {
        PageCacheConfig {
            size: Bytes::new(pages * 4096),
            background_ratio: Ratio::from_percent(low),
            dirty_ratio: Ratio::from_percent(low + more),
            writeback_depth: depth,
            page_io: Span::from_us(io),
            ..PageCacheConfig::default()
        }
    })
}

proptest! {
    #[test]
    fn reads_and_flushes_keep_their_promise(
        config in configs(),
        seed: u64,
        depth in 1_usize..20,
        commands in 1_u64..250,
        extra_us in 0_u64..200,
    ) {
        let mut mock = Mock::new(UNITS as usize);
        mock.allows_overlaps = false;
        mock.write_extra = Span::from_us(extra_us);
        let game = Game::new(&config, mock, |mock, unit| Some(mock.content[unit]));
        play(game, seed, depth, commands)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// The drive itself says what it holds when the cache is gone, and with hints on the way.
    #[test]
    fn so_they_do_on_a_drive(config in configs(), seed: u64, depth in 1_usize..20, kind in 0_usize..3) {
        use crate::hints::{Channel, HintChannel, HintChannelConfig};
        let mut drive = Config::default();
        drive.nand.channels = 2;
        drive.nand.dies_per_channel = 1;
        drive.nand.blocks_per_plane = 16;
        drive.nand.pages_per_block = 8;
        drive.buffer.size = Bytes::new(1 << 20);
        drive.ftl.capacity = Some(Bytes::new(UNITS * 4096));
        let ssd = Ssd::<Stamp>::new(&drive, seed).unwrap();
        let channel = [Channel::Off, Channel::Piggyback, Channel::Command][kind];
        let hints = HintChannelConfig { channel, batch: 4, ..HintChannelConfig::default() };
        let device = HintChannel::new(&hints, ssd, seed).unwrap();
        play(Game::new(&config, device, |_, _| None), seed, depth, 200)?;
    }
}
