//! Recovery: how the tables come back from the members, through ordinary reads and a report of zones.
//!
//! 1. The superblocks of both sets, the label of the zoned member, and its zones.
//! 2. The tables of the set with the higher generation; of the first, if both have the same. If they are damaged
//!    and the other set is of the same generation, the other one's.
//! 3. Every sequential zone with data must be written as far as the tables say.
//!
//! A set of an older generation is never taken while the newer one's superblock can be read: what was promised
//! since would be lost without a word.

use leyden_device::{Payload, Status, ZoneDescriptor, ZoneState};
use leyden_sim::Time;

use super::layout::{Layout, Place, ZoneNo};
use super::map::Map;
use super::members::{Ended, Members, Purpose};
use super::metadata::{Damage, LABEL, Superblock, decode_blocks};
use super::stored::Stored;
use crate::Powered;

/// Blocks of the tables in one read.
const READ_BLOCKS: u32 = 64;
/// Commands of the first step: two superblocks, the label, the report.
const HEADS: u32 = 4;

/// The tables as a recovery has found them.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) map: Map,
    pub(super) superblock: Superblock,
    /// The set that they are of.
    pub(super) set: usize,
    pub(super) crcs: Vec<u32>,
    /// For each sequential zone how far it is written, and whether it can be written on.
    pub(super) zones: Vec<(ZoneNo, u32, bool)>,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Loader<P: Payload> {
    layout: Layout,
    pending: u32,
    heads: [Vec<Stored<P>>; 3],
    zones: Vec<ZoneDescriptor>,
    superblocks: [Result<Superblock, Damage>; 2],
    /// The sets to try, first to last.
    to_try: Vec<usize>,
    /// The one that is being read, and what was read of it.
    current: usize,
    blocks: Vec<Stored<P>>,
    problem: Option<String>,
    /// Commands that failed.
    failed: u32,
}

impl<P: Payload> Loader<P> {
    /// Begins to read.
    pub(super) fn start<C, Z>(now: Time, layout: Layout, members: &mut Members<P, C, Z>) -> Self
    where
        C: Powered<Stored<P>>,
        Z: Powered<Stored<P>>,
    {
        for set in 0..2 {
            members.read(now, layout.meta_place(set, 0), Purpose::Load { step: set as u32 });
        }
        let label = Place { zone: layout.label(), at: 0, blocks: 1 };
        members.read(now, label, Purpose::Load { step: LABEL });
        members.report(now, Purpose::Load { step: LABEL + 1 });
        Self {
            layout,
            pending: HEADS,
            heads: [Vec::new(), Vec::new(), Vec::new()],
            zones: Vec::new(),
            superblocks: [Err(Damage::Blank), Err(Damage::Blank)],
            to_try: Vec::new(),
            current: 0,
            blocks: Vec::new(),
            problem: None,
            failed: 0,
        }
    }

    /// A command of the recovery has ended; `Some` if the recovery has.
    pub(super) fn ended<C, Z>(
        &mut self,
        now: Time,
        step: u32,
        ended: Ended<P>,
        members: &mut Members<P, C, Z>,
    ) -> Option<Result<Found, String>>
    where
        C: Powered<Stored<P>>,
        Z: Powered<Stored<P>>,
    {
        self.pending -= 1;
        self.failed += u32::from(ended.status != Status::Success);
        match step {
            0..=LABEL => self.heads[step as usize] = ended.read,
            _ if step == LABEL + 1 => self.zones = ended.zones,
            _ => {
                let first = (step - HEADS) as usize;
                for (index, block) in ended.read.into_iter().enumerate() {
                    self.blocks[first + index] = block;
                }
            }
        }
        if self.pending > 0 {
            return None;
        }
        if self.blocks.is_empty() {
            if let Err(problem) = self.choose() {
                return Some(Err(problem));
            }
        } else {
            match self.decode() {
                Ok(found) => return Some(Ok(found)),
                Err(problem) => {
                    let set = self.current;
                    let before = self.problem.take().map_or(String::new(), |it| format!("{it}; "));
                    self.problem = Some(format!("{before}metadata set {set}: {problem}"));
                }
            }
        }
        match self.to_try.pop() {
            Some(set) => {
                self.read_tables(now, set, members);
                None
            }
            None => Some(Err(self.problem.take().unwrap_or_default())),
        }
    }

    /// Looks at the superblocks and the label, and says which sets to try.
    fn choose(&mut self) -> Result<(), String> {
        let decode = |head: &[Stored<P>]| {
            let bytes = head.first().map_or(&[][..], Stored::bytes);
            Superblock::decode(&self.layout, bytes)
        };
        for set in 0..2 {
            let found = decode(&self.heads[set]).and_then(|found| {
                if found.role == set as u32 {
                    Ok(found)
                } else {
                    Err(Damage::Bad(format!("is of set {}", found.role)))
                }
            });
            self.superblocks[set] = found;
        }
        let label = decode(&self.heads[LABEL as usize]);
        let text = |damage: &Damage| match damage {
            Damage::Blank => "is blank".to_owned(),
            Damage::Bad(what) => what.clone(),
        };
        let identity = match &self.superblocks {
            [Err(first), Err(second)] => {
                return Err(format!(
                    "no metadata set can be read: the superblock of set 0 {}, that of set 1 {}: is the \
                     conventional member another drive?",
                    text(first),
                    text(second)
                ));
            }
            [Ok(first), Err(_)] => {
                self.to_try = vec![0];
                first.identity
            }
            [Err(_), Ok(second)] => {
                self.to_try = vec![1];
                second.identity
            }
            [Ok(first), Ok(second)] => {
                self.to_try = match first.generation.cmp(&second.generation) {
                    std::cmp::Ordering::Equal => vec![1, 0],
                    std::cmp::Ordering::Greater => vec![0],
                    std::cmp::Ordering::Less => vec![1],
                };
                first.identity
            }
        };
        match label {
            Ok(label) if label.role == LABEL && label.identity == identity => Ok(()),
            Ok(label) => Err(format!(
                "the zoned member belongs to another device ({:016x}, not {identity:016x}): put the right \
                 one in",
                label.identity
            )),
            Err(damage) => Err(format!(
                "the label of the zoned member {}: put the right one in",
                text(&damage)
            )),
        }
    }

    fn read_tables<C, Z>(&mut self, now: Time, set: usize, members: &mut Members<P, C, Z>)
    where
        C: Powered<Stored<P>>,
        Z: Powered<Stored<P>>,
    {
        let count = self.layout.table_blocks();
        self.current = set;
        self.blocks = vec![Stored::default(); count as usize];
        let mut block = 0;
        while block < count {
            let place = self.layout.meta_place(set, 1 + block);
            let blocks = (count - block).min(self.layout.zone_blocks - place.at).min(READ_BLOCKS);
            members.read(now, Place { blocks, ..place }, Purpose::Load { step: HEADS + block });
            self.pending += 1;
            block += blocks;
        }
    }

    fn decode(&self) -> Result<Found, String> {
        let superblock = self.superblocks[self.current].clone().map_err(|_| "no superblock")?;
        let blocks = self.blocks.iter().map(Stored::bytes);
        let (words, crcs) = decode_blocks(&self.layout, &superblock, blocks)?;
        let map = Map::decode(self.layout, words)?;
        let zones = self.zones_of(&map)?;
        Ok(Found { map, superblock, set: self.current, crcs, zones })
    }

    /// How far each sequential zone is written.
    fn zones_of(&self, map: &Map) -> Result<Vec<(ZoneNo, u32, bool)>, String> {
        let mut found = Vec::new();
        for zone in self.layout.sequential_zones() {
            let Some(it) = self.zones.get((zone.0 - self.layout.random) as usize) else {
                return Err(format!("the zoned member does not report {zone:?}"));
            };
            let capacity = self.layout.zone_blocks;
            let written = match it.write_pointer {
                Some(lba) => ((lba.0 - it.start.0) / self.layout.unit_sectors()) as u32,
                None => capacity,
            };
            let can_be_written = it.state.is_active() || it.state == ZoneState::Empty;
            if let Some(beyond) =
                map.next_valid(zone, written.min(capacity)).filter(|_| written < capacity)
            {
                return Err(format!(
                    "zone {} of the zoned member is written to block {written}, and the tables have data \
                     in block {beyond}",
                    zone.0 - self.layout.random
                ));
            }
            found.push((zone, written, can_be_written));
        }
        Ok(found)
    }
}
