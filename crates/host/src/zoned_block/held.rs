//! Access for saving the device and for moving its bytes: places of units, other content, rest.

use leyden_device::{Completion, Lba, Output, Payload};

use super::layout::Member;
use super::stored::Stored;
use super::{State, ZonedBlock};
use crate::Powered;

/// Where a block lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// On the conventional member, from this sector on.
    Conventional(Lba),
    /// On the zoned member.
    Zoned(Lba),
}

impl<P, C, Z> ZonedBlock<P, C, Z>
where
    P: Payload,
    C: Powered<Stored<P>>,
    Z: Powered<Stored<P>>,
{
    /// Where the block that holds `lba` lies; `None` if it is zeroes. What is being written lies where it did before.
    pub fn home(&self, lba: Lba) -> Option<Home> {
        let block = lba.0 / self.layout.unit_sectors();
        let zone_blocks = u64::from(self.layout.zone_blocks);
        let (zone, at) =
            self.map.find((block / zone_blocks) as u32, (block % zone_blocks) as u32)?;
        let lba = self.layout.lba(zone, at);
        Some(match self.layout.member(zone) {
            Member::Conventional => Home::Conventional(lba),
            Member::Zoned => Home::Zoned(lba),
        })
    }

    /// Data written by commands in flight, and data read for them.
    pub fn in_flight(&self) -> impl Iterator<Item = (Option<&P::WriteData>, &P::ReadData)> {
        let under_way = self.requests.all().map(|asked| (Some(&asked.data), &asked.read));
        let ended = self.ended.iter().filter_map(|completion: &Completion<P>| {
            let Output::Read(read) = &completion.output else { return None };
            Some((None, read))
        });
        under_way.chain(ended)
    }

    /// The old contents of blocks that commands in flight write in part.
    pub fn old_units(&self) -> impl Iterator<Item = &P> {
        self.requests.all_pieces().flat_map(|piece| piece.old.iter().map(|(_, old)| old))
    }

    /// Commands under way.
    pub fn pending(&self) -> usize {
        self.requests.all().count()
    }

    /// True if it is up, no command is under way, no chunk is being moved, and no tables are written: it has nothing to
    /// do but what time brings. Its members may still be at work.
    pub fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Up)
            && self.requests.is_empty()
            && self.ended.is_empty()
            && self.reclaim.is_idle()
            && self.committer.is_idle()
            && !self.committer.is_due()
            && self.members.is_idle()
            && !self.recognition.is_release_due()
    }

    /// Tells the members, which are idle, the time: whoever saves them saves it with them.
    pub fn tell_time(&mut self) {
        let mut nobody = Vec::new();
        self.members.conventional.advance(self.now, &mut nobody);
        self.members.zoned.advance(self.now, &mut nobody);
        assert!(nobody.is_empty(), "a member was at work");
    }

    /// Takes the layer, which is at rest and has written its tables, down and up again: it goes on as one that was
    /// [opened](Self::open) on its members does. What it counts it goes on counting.
    ///
    /// # Panics
    /// If it is not at rest.
    pub fn remount(&mut self) {
        assert!(self.is_at_rest(), "the device is at work");
        self.forget(self.now);
        self.members.begin_anew();
        self.load(self.now);
        self.run_until(|device| !device.is_loading());
    }

    /// True if tables have changed since they were last written.
    pub fn is_dirty(&self) -> bool {
        self.map.is_dirty()
    }

    /// True if tables could not be written: nothing can be changed until the power has come back.
    pub fn has_failed(&self) -> bool {
        self.committer.has_failed() || matches!(self.state, State::Failed(_))
    }

    /// True while tables are being read after a power cut.
    pub fn is_loading(&self) -> bool {
        matches!(self.state, State::Loading(_))
    }
}
