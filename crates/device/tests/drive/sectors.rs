//! Content by the sector, against the slow twin: a list of what each sector holds.
//!
//! Commands under way never share sectors, but often share units: a write to a part of a unit must
//! keep what others have put into the rest of it, wherever that lies. Two payloads: a stamp for each
//! sector, and real bytes, which come from outside the crate as a server's would.

use std::sync::Arc;

use leyden_buffer::Region;
use leyden_device::{
    BlockDevice, Command, Completion, Config, Lba, Op, Part, Payload, SECTOR_BYTES, SectorStamps,
    Ssd, Status,
};
use leyden_nand::Content;
use leyden_sim::{Bytes, Ratio, Rng, Span};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};

/// A payload whose sectors can be told apart: each is a number; 0 is zeroes.
trait Sectored: Payload {
    fn to_write(sectors: &[u64]) -> Self::WriteData;
    fn read(data: &Self::ReadData) -> Vec<u64>;
}

impl Sectored for SectorStamps {
    fn to_write(sectors: &[u64]) -> Self {
        sectors.to_vec().into()
    }

    fn read(data: &Vec<u64>) -> Vec<u64> {
        data.clone()
    }
}

const SECTOR: usize = SECTOR_BYTES as usize;

/// Real bytes, shared by everyone who holds them; none are zeroes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<u8>", into = "Vec<u8>")]
struct Block(Option<Arc<[u8]>>);

impl From<Vec<u8>> for Block {
    fn from(bytes: Vec<u8>) -> Self {
        Self((!bytes.is_empty()).then(|| bytes.into()))
    }
}

impl From<Block> for Vec<u8> {
    fn from(block: Block) -> Self {
        block.0.map_or_else(Self::new, |bytes| bytes.to_vec())
    }
}

/// The bytes of sectors.
fn bytes(sectors: std::ops::Range<usize>) -> std::ops::Range<usize> {
    sectors.start * SECTOR..sectors.end * SECTOR
}

impl Block {
    fn to_vec(&self, part: Part) -> Vec<u8> {
        let zeroes = || vec![0; part.unit_sectors as usize * SECTOR];
        self.0.as_ref().map_or_else(zeroes, |bytes| bytes.to_vec())
    }
}

impl Content for Block {}

impl Payload for Block {
    const KIND: u8 = 100;
    const STORED: bool = true;
    type WriteData = Arc<[u8]>;
    type ReadData = Vec<u8>;

    fn written(data: &Arc<[u8]>, part: Part) -> Self {
        Self(Some(data[bytes(part.in_range())].into()))
    }

    fn merged(old: &Self, data: &Arc<[u8]>, part: Part) -> Self {
        let mut new = old.to_vec(part);
        new[bytes(part.in_unit())].copy_from_slice(&data[bytes(part.in_range())]);
        new.into()
    }

    fn zeroed(old: &Self, _: &Arc<[u8]>, part: Part) -> Self {
        let mut new = old.to_vec(part);
        new[bytes(part.in_unit())].fill(0);
        new.into()
    }

    fn gather(data: &mut Vec<u8>, part: Part, unit: &Self) {
        data.resize(part.total as usize * SECTOR, 0);
        if let Some(unit) = &unit.0 {
            data[bytes(part.in_range())].copy_from_slice(&unit[bytes(part.in_unit())]);
        }
    }

    fn unit(data: &Vec<u8>, part: Part) -> Self {
        data[bytes(part.in_range())].to_vec().into()
    }

    fn data_of<'a>(units: impl Iterator<Item = &'a Self>, unit_sectors: u32) -> Arc<[u8]> {
        let zeroes = vec![0; unit_sectors as usize * SECTOR];
        units.flat_map(|unit| unit.0.as_deref().unwrap_or(&zeroes).to_vec()).collect()
    }
}

/// The bytes of a sector that holds `number`.
fn sector(number: u64) -> Vec<u8> {
    let words = (0..SECTOR as u64 / 8).map(|at| if number == 0 { 0 } else { number ^ (at << 48) });
    words.flat_map(u64::to_le_bytes).collect()
}

impl Sectored for Block {
    fn to_write(sectors: &[u64]) -> Arc<[u8]> {
        sectors.iter().flat_map(|&number| sector(number)).collect()
    }

    fn read(data: &Vec<u8>) -> Vec<u64> {
        let number = |bytes: &[u8]| {
            let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            assert_eq!(bytes, sector(number), "not a sector that was ever written");
            number
        };
        data.chunks(SECTOR).map(number).collect()
    }
}

const UNITS: u64 = 160;

#[derive(Clone, Debug)]
struct Setup {
    unit_sectors: u64,
    /// Is there power to keep the buffer at a cut, or are there no cuts?
    cuts: bool,
    /// Pages that the buffer holds.
    pages: u64,
    depth: usize,
    commands: u64,
    seed: u64,
}

fn setups() -> impl Strategy<Value = Setup> {
    let units = prop_oneof![1 => Just(1_u64), 4 => Just(8), 1 => Just(32)];
    (units, any::<bool>(), 8_u64..12, 1_usize..12, 20_u64..1_500, any::<u64>()).prop_map(
        |(unit_sectors, cuts, pages, depth, commands, seed)| Setup {
            unit_sectors,
            cuts,
            pages,
            depth,
            commands,
            seed,
        },
    )
}

fn config(setup: &Setup) -> Config {
    let mut config = Config::default();
    config.nand.channels = 2;
    config.nand.dies_per_channel = 1;
    // As small as they come, so that garbage is collected; dumps need room.
    config.nand.blocks_per_plane = if setup.cuts { 22 } else { 10 };
    config.nand.pages_per_block = 4;
    let unit_bytes = setup.unit_sectors * SECTOR_BYTES;
    let page_bytes = (4 * unit_bytes).max(4096);
    config.nand.page_size = Bytes::new(page_bytes);
    config.nand.faults.program_failures = Ratio::from_ppm(200);
    config.ftl.mapping_unit = Bytes::new(unit_bytes);
    // Few units, so that most hold something, and many commands share some.
    config.ftl.capacity = Some(Bytes::new(UNITS * unit_bytes));
    config.buffer.size = Bytes::new(setup.pages * page_bytes);
    config.buffer.region = if setup.cuts { Region::Full } else { Region::None };
    config.power = setup.cuts.then(leyden_power::Config::default);
    config
}

struct Game<P: Sectored> {
    ssd: Ssd<P>,
    rng: Rng,
    unit_sectors: u64,
    /// The slow twin: what each sector holds, as far as commands have ended.
    twin: Vec<u64>,
    /// Commands under way, by tag; and, of those that change sectors, to what.
    under_way: Vec<(u32, Command<P>, Vec<u64>)>,
    done: Vec<Completion<P>>,
    tag: u32,
}

impl<P: Sectored> Game<P> {
    fn new(setup: &Setup) -> Self {
        let ssd = Ssd::<P>::new(&config(setup), setup.seed).unwrap();
        let sectors = ssd.capacity_sectors();
        Self {
            ssd,
            rng: Rng::new(setup.seed, "sectors"),
            unit_sectors: setup.unit_sectors,
            twin: vec![0; sectors as usize],
            under_way: Vec::new(),
            done: Vec::new(),
            tag: 0,
        }
    }

    /// A command that shares no sector with those under way, if it finds one.
    fn draw(&mut self) -> Option<(Command<P>, Vec<u64>)> {
        let sectors = self.twin.len() as u64;
        let unit = self.unit_sectors;
        let (mut first, mut count) = (self.rng.below(sectors), 1 + self.rng.below(3 * unit));
        if self.rng.below(4) == 0 {
            (first, count) = (first / unit * unit, count.next_multiple_of(unit));
        }
        count = count.min(sectors - first);
        let overlaps = |(_, command, _): &(u32, Command<P>, Vec<u64>)| {
            command.extent().is_some_and(|(lba, others)| {
                first < lba.0 + u64::from(others) && lba.0 < first + count
            })
        };
        if self.under_way.iter().any(overlaps) {
            return None;
        }
        let (lba, count) = (Lba(first), count as u32);
        let held = &self.twin[first as usize..][..count as usize];
        self.tag += 1;
        let number = u64::from(self.tag) << 16;
        let (command, after) = match self.rng.below(20) {
            0 => (Command::flush(), Vec::new()),
            1 => (Command::trim(lba, count), self.trimmed(first, held)),
            2 | 3 => {
                let zeroes = Command::write_zeroes(lba, count, P::WriteData::default());
                (zeroes, vec![0; held.len()])
            }
            4..9 => (Command::read(lba, count), held.to_vec()),
            what => {
                // Every sector its own, or all the same.
                let step = u64::from(what % 2 == 0);
                let after: Vec<_> =
                    (0..u64::from(count)).map(|at| number + 1 + at * step).collect();
                (Command::write(lba, count, P::to_write(&after)), after)
            }
        };
        Some((command.fua(self.rng.below(6) == 0).tag(self.tag), after))
    }

    /// The contents after a trim: whole units are gone, parts keep their data.
    fn trimmed(&self, first: u64, held: &[u64]) -> Vec<u64> {
        let (unit, end) = (self.unit_sectors, first + held.len() as u64);
        let is_whole = |sector: u64| {
            let from = sector / unit * unit;
            first <= from && from + unit <= end
        };
        (first..).zip(held).map(|(at, &held)| if is_whole(at) { 0 } else { held }).collect()
    }

    fn submit(&mut self) {
        if let Some((command, after)) = self.draw() {
            self.under_way.push((self.tag, command.clone(), after));
            self.ssd.submit(self.ssd.now(), command);
        }
    }

    /// Lets the next thing happen. False if nothing is left.
    fn step(&mut self) -> bool {
        let Some(time) = self.ssd.next_event() else { return false };
        let mut done = std::mem::take(&mut self.done);
        self.ssd.advance(time, &mut done);
        for completion in done.drain(..) {
            self.ended(&completion);
        }
        self.done = done;
        true
    }

    fn ended(&mut self, completion: &Completion<P>) {
        assert_eq!(completion.status, Status::Success);
        let at = self.under_way.iter().position(|(tag, ..)| *tag == completion.tag).unwrap();
        let (_, command, after) = self.under_way.swap_remove(at);
        let Some((lba, sectors)) = command.extent() else { return };
        if command.op() == Op::Read {
            let read = P::read(completion.data().expect("reads return data"));
            assert_eq!(read, after, "sectors from {lba:?} on");
        } else {
            assert!(completion.data().is_none());
            self.twin[lba.0 as usize..][..sectors as usize].copy_from_slice(&after);
        }
    }

    /// The power fails and returns: what has ended is there; what was under way has happened or not,
    /// sector by sector.
    fn cut(&mut self) {
        let loss = self.ssd.cut_power(self.ssd.now());
        assert!(loss.lost.is_empty());
        self.ssd.restore_power(self.ssd.now() + Span::from_ms(5));
        let changes = std::mem::take(&mut self.under_way);
        while self.step() {}
        let found = P::read(&self.ssd.whole());
        let mut either = vec![None; self.twin.len()];
        for (_, command, after) in changes {
            if let Some((lba, _)) = command.extent().filter(|_| command.op() != Op::Read) {
                (lba.0 as usize..).zip(after).for_each(|(at, new)| either[at] = Some(new));
            }
        }
        for (at, (held, new)) in self.twin.iter_mut().zip(either).enumerate() {
            assert!(found[at] == *held || Some(found[at]) == new, "sector {at}: {}", found[at]);
            *held = found[at];
        }
    }

    /// Everything ends, and is read once more.
    fn finish(mut self) {
        while self.step() {}
        assert!(self.under_way.is_empty());
        assert_eq!(P::read(&self.ssd.whole())[..], self.twin);
        let (lba, count) = (3.min(self.twin.len() - 1), self.twin.len());
        let read = Command::read(Lba(lba as u64), (count - lba) as u32).tag(u32::MAX);
        self.under_way.push((u32::MAX, read.clone(), self.twin[lba..].to_vec()));
        self.ssd.submit(self.ssd.now(), read);
        while self.step() {}
        self.ssd.check();
    }
}

fn play<P: Sectored>(setup: &Setup) {
    let mut game = Game::<P>::new(setup);
    for _ in 0..setup.commands {
        while game.under_way.len() >= setup.depth && game.step() {}
        if game.rng.below(3) == 0 {
            game.step();
        }
        game.submit();
        if setup.cuts && game.rng.below(60) == 0 {
            game.cut();
        }
    }
    game.finish();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn stamps_say_who_wrote_each_sector(setup in setups()) {
        play::<SectorStamps>(&setup);
    }

    #[test]
    fn real_bytes_are_kept(setup in setups()) {
        play::<Block>(&setup);
    }
}

/// A drive at rest comes back with its bytes.
#[test]
fn a_snapshot_keeps_bytes() {
    let setup =
        Setup { unit_sectors: 8, cuts: false, pages: 10, depth: 4, commands: 200, seed: 11 };
    let mut game = Game::<Block>::new(&setup);
    for _ in 0..setup.commands {
        game.submit();
        while game.step() {}
    }
    let mut saved = Vec::new();
    game.ssd.save(&mut saved).unwrap();
    let loaded = Ssd::<Block>::load(&config(&setup), setup.seed, &mut &saved[..]).unwrap();
    assert_eq!(Block::read(&loaded.whole())[..], game.twin);
}
