//! A buffer that does not coalesce, against a list of versions: each is written, and the newest stays.

use std::collections::BTreeMap;

use super::*;

/// A write, so many slots taken, and started or ended by a pick.
#[derive(Clone, Copy, Debug)]
enum Move {
    Write(u32),
    Discard(u32),
    Take(usize),
    Start(usize),
    End(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let at = any::<usize>;
    let one = prop_oneof![
        8 => (0..LPNS).prop_map(Move::Write),
        1 => (0..LPNS).prop_map(Move::Discard),
        4 => (1_usize..4).prop_map(Move::Take),
        6 => at().prop_map(Move::Start),
        6 => at().prop_map(Move::End),
    ];
    proptest::collection::vec(one, 0..300)
}

struct Plain {
    buffer: WriteBuffer<Number>,
    writes: u64,
    /// The newest version, as long as it is buffered or on flash.
    newest: BTreeMap<Lpn, Number>,
    flash: BTreeMap<Lpn, Number>,
    staged: Vec<SlotId>,
    started: Vec<(SlotId, Lpn, Number)>,
}

impl Plain {
    fn go(&mut self, step: Move) {
        match step {
            Move::Write(lpn) => {
                let (lpn, content) = (Lpn(lpn), Number(self.writes));
                match self.buffer.write(lpn, content, PoolKind::Plain) {
                    Written::Full => assert_eq!(self.buffer.used(), SLOTS),
                    Written::Coalesced(slot) => panic!("{slot:?} was overwritten"),
                    Written::Inserted(_) => {
                        self.writes += 1;
                        self.newest.insert(lpn, content);
                    }
                }
            }
            Move::Discard(lpn) => {
                let lpn = Lpn(lpn);
                if let Some(discarded) = self.buffer.discard(lpn)
                    && discarded.staged
                {
                    self.staged.retain(|&slot| slot != discarded.slot);
                }
                self.newest.remove(&lpn);
                self.flash.remove(&lpn);
            }
            Move::Take(count) => {
                self.buffer.take_next(count, |slot, _| self.staged.push(slot));
            }
            Move::Start(pick) => {
                if !self.staged.is_empty() {
                    let slot = self.staged.remove(pick % self.staged.len());
                    let (lpn, content) = self.buffer.start(slot);
                    self.started.push((slot, lpn, content));
                }
            }
            Move::End(pick) => {
                if !self.started.is_empty() {
                    let (slot, lpn, content) = self.started.remove(pick % self.started.len());
                    if let Some(settled) = self.buffer.settle(slot) {
                        assert_eq!(settled, lpn);
                        let before = self.flash.insert(lpn, content);
                        assert!(before.is_none_or(|old| old.0 < content.0), "an older one last");
                    }
                }
            }
        }
        for (lpn, newest) in &self.newest {
            let read = self.buffer.read(*lpn).or_else(|| self.flash.get(lpn).copied());
            assert_eq!(read, Some(*newest), "{lpn:?}");
        }
    }
}

proptest! {
    #[test]
    fn each_version_waits_for_itself_and_the_newest_stays(moves in moves(), policy in 0..ScheduleConfig::POLICIES.len()) {
        let schedule = ScheduleConfig::by_name(ScheduleConfig::POLICIES[policy].name).unwrap();
        let config = Config { region: Region::None, schedule, coalesce: false, ..Config::default() };
        let buffer = WriteBuffer::new(&config, SHAPE, &pools(Region::None, 0));
        let mut plain = Plain {
            buffer,
            writes: 0,
            newest: BTreeMap::new(),
            flash: BTreeMap::new(),
            staged: Vec::new(),
            started: Vec::new(),
        };
        for step in moves {
            plain.go(step);
        }
        let ticket = plain.buffer.begin_flush();
        while plain.buffer.used() > 0 {
            for step in [Move::Take(SLOTS as usize), Move::Start(0), Move::End(0)] {
                plain.go(step);
            }
        }
        prop_assert!(ticket.is_none_or(|ticket| plain.buffer.is_flushed(ticket)));
        prop_assert_eq!(plain.flash, plain.newest);
    }
}
