//! A recorded drive as a history: its syncs are flushes, and its parts sectors.

use std::collections::BTreeMap;

use crate::contract::{cuts_at, moments};
use crate::cut::{Cut, Flushes};
use crate::history::{History, Keys, Sync};
use crate::state::State;
use crate::store::{Content, key_of};
use crate::timeline::{Event, Timeline};

impl History for Timeline {
    fn atom_bytes(&self) -> u32 {
        self.atom_bytes()
    }
    fn acks(&self) -> &[String] {
        self.acks()
    }
    fn acks_before(&self, at: usize) -> usize {
        self.acks_before(at)
    }
    fn closed(&self) -> usize {
        self.closed()
    }
    fn moments(&self) -> Vec<usize> {
        moments(self)
    }
    fn moments_after(&self, ended: usize) -> Vec<usize> {
        // The next flush makes up for it.
        self.moments().into_iter().find(|&at| at > ended).into_iter().collect()
    }
    fn cuts(&self, flushes: Flushes, wanted: &dyn Fn(usize) -> bool) -> Vec<Cut> {
        cuts_at(self, flushes, wanted)
    }

    fn syncs(&self) -> Vec<Sync> {
        let numbered = self.events().iter().enumerate().filter(|(_, (_, event))| event.is_flush());
        let ends: BTreeMap<usize, usize> = (self.events().iter().enumerate())
            .filter_map(|(at, (_, event))| match event {
                Event::Ended { command, is_done: true } => Some((*command, at)),
                _ => None,
            })
            .collect();
        let ended = |(number, (at, _))| {
            let ended = *ends.get(&at)?;
            let (time_ns, call) = (self.events()[ended].0.as_ns(), "flush".to_owned());
            Some(Sync { number, ended, time_ns, call })
        };
        numbered.enumerate().filter_map(ended).collect()
    }

    fn sync_counts(&self) -> (usize, usize) {
        let run = &self.events()[self.begin()..];
        let count = |is: fn(&Event) -> bool| run.iter().filter(|(_, event)| is(event)).count();
        (count(Event::is_flush), count(Event::is_fua))
    }

    fn normalize(&self, state: &mut State) {
        // An atom that has the newest bytes all the same is not lost.
        let lost = state.lost_atoms(self);
        state.lost.retain(|(atom, _)| lost.binary_search(atom).is_ok());
    }

    fn check(&self, state: &State) -> Result<(), String> {
        state.check(self)
    }

    fn keys(&self) -> Box<dyn Keys + '_> {
        Box::new(Fingerprints::new(self))
    }
}

/// Distinguishes images, at the cost of the atoms lost in them.
#[derive(Debug)]
struct Fingerprints<'a> {
    timeline: &'a Timeline,
    /// For each moment the sum over all atoms as they are newest.
    sums: Vec<u128>,
}

impl<'a> Fingerprints<'a> {
    fn new(timeline: &'a Timeline) -> Self {
        let mut sums = vec![0_u128; timeline.events().len() + 1];
        for atom in timeline.touched() {
            let mut versions = timeline.versions_before(atom, timeline.events().len()).rev();
            let mut last = versions.next().expect("there is always the first");
            for version in versions {
                let event = version.event.expect("only the first has none") as usize;
                let (old, new) = (last.content, version.content);
                let step = part(timeline, atom, new).wrapping_sub(part(timeline, atom, old));
                sums[event + 1] = sums[event + 1].wrapping_add(step);
                last = version;
            }
        }
        let mut sum = 0_u128;
        for step in &mut sums {
            sum = sum.wrapping_add(*step);
            *step = sum;
        }
        Self { timeline, sums }
    }
}

impl Keys for Fingerprints<'_> {
    fn of(&self, state: &State) -> u128 {
        state.lost.iter().fold(self.sums[state.at], |sum, &(atom, event)| {
            let newest = self.timeline.newest(atom, state.at).content;
            let lost = self.timeline.version_of(atom, event).expect("a version that there is");
            sum.wrapping_sub(part(self.timeline, atom, newest)).wrapping_add(part(
                self.timeline,
                atom,
                lost.content,
            ))
        })
    }
}

/// The part of a fingerprint that an atom with this content adds.
fn part(timeline: &Timeline, atom: u32, content: Content) -> u128 {
    let mut bytes = timeline.store().key(content).to_le_bytes().to_vec();
    bytes.extend(atom.to_le_bytes());
    key_of(&bytes)
}

#[cfg(test)]
mod tests {
    use leyden_oracle::{Op, Request};
    use leyden_sim::Time;

    use super::*;

    /// A flush that failed promised nothing, and one that is under way has not promised yet.
    #[test]
    fn a_flush_that_did_not_end_well_is_no_sync_and_keeps_its_number() {
        let mut timeline = Timeline::new(4_096, 512);
        let flush = Request { op: Op::Flush, lba: 0, sectors: 0, fua: false, plp: false };
        for is_done in [true, false, true] {
            let command = timeline.submit(Time::ZERO, flush, &[]);
            timeline.end(Time::ZERO, command, is_done);
        }
        timeline.submit(Time::ZERO, flush, &[]);
        let syncs: Vec<_> =
            timeline.syncs().into_iter().map(|sync| (sync.number, sync.ended)).collect();
        assert_eq!(syncs, [(0, 1), (2, 5)]);
        // The next flush makes up for one that was left out.
        assert_eq!(timeline.moments_after(1), [5]);
    }

    /// States are alike exactly if each atom holds the same bytes; the keys are reckoned from what differs, and here from the
    /// bytes.
    #[test]
    fn keys_are_alike_exactly_where_images_are() {
        use crate::choose::every_state;
        use crate::contract::cuts;
        use crate::state::Image;

        let mut timeline = Timeline::new(4_096, 512);
        timeline.set_base(2, &[9; 512]);
        // The same bytes in two atoms, bytes that come back, bytes that lay there before.
        for (lba, byte) in [(0, 1), (1, 1), (0, 2), (1, 2), (0, 1), (2, 1), (2, 9)] {
            let request = Request { op: Op::Write, lba, sectors: 1, fua: false, plp: false };
            let command = timeline.submit(Time::ZERO, request, &[byte; 512]);
            timeline.end(Time::ZERO, command, true);
        }
        let flush = Request { op: Op::Flush, lba: 0, sectors: 0, fua: false, plp: false };
        let command = timeline.submit(Time::ZERO, flush, &[]);
        timeline.end(Time::ZERO, command, true);
        let keys = timeline.keys();
        let (mut of_key, mut of_bytes) = (BTreeMap::new(), BTreeMap::new());
        let all = cuts(&timeline, Flushes::All);
        let mut states: Vec<State> =
            all.iter().flat_map(|cut| every_state(cut, 1_000).unwrap()).collect();
        states.extend((0..=timeline.events().len()).map(|at| State::new(at, Vec::new())));
        for state in states {
            let image = Image::new(&timeline, &state);
            let bytes: Vec<u8> = (0..8).flat_map(|atom| image.atom(atom).to_vec()).collect();
            let key = keys.of(&state);
            assert_eq!(*of_key.entry(key).or_insert_with(|| bytes.clone()), bytes, "{state:?}");
            assert_eq!(*of_bytes.entry(bytes).or_insert(key), key, "{state:?}");
        }
        assert!(of_key.len() > 15, "{}", of_key.len());
    }
}
