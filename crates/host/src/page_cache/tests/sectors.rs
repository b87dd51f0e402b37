//! Against a list of what each sector holds: parts of pages are put together, wherever the rest lies.

use leyden_device::{Config, SectorStamps, Ssd};
use leyden_sim::Rng;
use proptest::prelude::*;

use super::*;

const SECTORS: u64 = 60 * 8;

/// Commands under way share pages, but no sectors: so there is one answer to every read.
struct Game {
    cache: PageCache<SectorStamps, Ssd<SectorStamps>>,
    twin: Vec<u64>,
    /// By tag; and what the range of each holds when it has ended.
    under_way: Vec<(u32, Command<SectorStamps>, Vec<u64>)>,
    rng: Rng,
}

impl Game {
    fn new(pages: u64, ratio: u64, seed: u64) -> Self {
        let mut drive = Config::default();
        drive.nand.channels = 1;
        drive.nand.dies_per_channel = 2;
        drive.nand.blocks_per_plane = 16;
        drive.nand.pages_per_block = 8;
        drive.buffer.size = Bytes::new(512 << 10);
        drive.ftl.capacity = Some(Bytes::new(SECTORS * SECTOR_BYTES));
        let config = PageCacheConfig {
            size: Bytes::new(pages * 4096),
            background_ratio: Ratio::from_percent(ratio),
            dirty_ratio: Ratio::from_percent(2 * ratio),
            ..PageCacheConfig::default()
        };
        let cache = PageCache::new(&config, Ssd::new(&drive, seed).unwrap(), 4096).unwrap();
        let rng = Rng::new(seed, "sectors");
        Self { cache, twin: vec![0; SECTORS as usize], under_way: Vec::new(), rng }
    }

    fn submit(&mut self, tag: u32) {
        let first = self.rng.below(SECTORS);
        let count = (1 + self.rng.below(40)).min(SECTORS - first);
        let overlaps = |(_, command, _): &(u32, Command<SectorStamps>, Vec<u64>)| {
            command.extent().is_some_and(|(lba, others)| {
                first < lba.0 + u64::from(others) && lba.0 < first + count
            })
        };
        if self.under_way.iter().any(overlaps) {
            return;
        }
        let (lba, count) = (Lba(first), count as u32);
        let held = &self.twin[first as usize..][..count as usize];
        let is_whole = |at: u64| first <= at / 8 * 8 && at / 8 * 8 + 8 <= first + u64::from(count);
        let (command, after): (_, Vec<u64>) = match self.rng.below(20) {
            0 => (Command::flush(), Vec::new()),
            1 => {
                let left = |(at, &held)| if is_whole(at) { 0 } else { held };
                (Command::trim(lba, count), (first..).zip(held).map(left).collect())
            }
            2 => (Command::write_zeroes(lba, count, 0.into()), vec![0; held.len()]),
            3..8 => (Command::read(lba, count), held.to_vec()),
            _ => {
                let after: Vec<_> =
                    (0..u64::from(count)).map(|at| u64::from(tag) << 16 | at).collect();
                (Command::write(lba, count, after.clone().into()), after)
            }
        };
        let command = command.fua(self.rng.below(8) == 0).tag(tag);
        self.under_way.push((tag, command.clone(), after));
        self.cache.submit(self.cache.now(), command);
    }

    /// Lets the next thing happen. False if nothing is left.
    fn step(&mut self) -> Result<bool, TestCaseError> {
        let Some(time) = self.cache.next_event() else { return Ok(false) };
        let mut done = Vec::new();
        self.cache.advance(time, &mut done);
        for end in done {
            prop_assert_eq!(end.status, Status::Success);
            let at = self.under_way.iter().position(|(tag, ..)| *tag == end.tag);
            let (_, command, after) = self.under_way.swap_remove(at.expect("it was submitted"));
            let (lba, count) = command.extent().unwrap_or_default();
            if let Some(read) = end.data() {
                prop_assert_eq!(read, &after, "sectors from {:?} on", lba);
            } else {
                self.twin[lba.0 as usize..][..count as usize].copy_from_slice(&after);
            }
        }
        Ok(true)
    }

    /// Everything is flushed: the drive holds the written data.
    fn finish(mut self) -> Result<(), TestCaseError> {
        while self.step()? {}
        self.under_way.push((u32::MAX, Command::flush(), Vec::new()));
        self.cache.submit(self.cache.now(), Command::flush().tag(u32::MAX));
        while self.step()? {}
        prop_assert!(self.under_way.is_empty());
        prop_assert_eq!(self.cache.device().whole(), self.twin);
        Ok(())
    }
}

fn play(mut game: Game, depth: usize, commands: u32) -> Result<(), TestCaseError> {
    for tag in 0..commands {
        while game.under_way.len() >= depth && game.step()? {}
        while game.rng.below(3) > 0 && game.step()? {}
        game.submit(tag);
    }
    game.finish()
}

/// Its last page is evicted while its first ones are taken in.
#[test]
fn a_page_evicted_before_a_write_gets_to_it_is_read_again() {
    play(Game::new(16, 5, 51_862_342_419_516_210), 1, 11).unwrap();
}

proptest! {
    #[test]
    fn parts_of_pages_are_put_together(
        pages in 16_u64..60,
        ratio in 5_u64..45,
        depth in 1_usize..16,
        commands in 1_u32..400,
        seed: u64,
    ) {
        play(Game::new(pages, ratio, seed), depth, commands)?;
    }
}
