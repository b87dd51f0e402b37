//! The interface of a namespace to its controller: the meaning of commands, and the data that must
//! survive a power cut.

use leyden_buffer::Region;
use leyden_nand::{DieId, Geometry, Interrupted};
use leyden_power::Program;
use leyden_sim::Time;

use super::commands::CommandTable;
use super::ops::DriveOps;
use super::power::{CutLoss, PowerLoss, PowerSupply, Recovery};
use super::requests::RequestId;
use crate::{Action, Lba, Payload};

/// The data to dump at a power cut, most important first.
#[derive(Clone, Debug)]
pub struct ToDump<I> {
    /// A page each.
    pub items: Vec<I>,
    /// For each of them the die that its address names.
    pub homes: Vec<DieId>,
    /// How many units of it are the host's.
    pub promised_units: u64,
    /// How many pages of it are the mapping table's or its journal's.
    pub table_pages: u64,
    /// How many pages of it each die takes where its own data goes on, and not in the dump area; empty if
    /// none does.
    pub at_home: Vec<u32>,
}

/// One kind of drive behind a controller.
///
/// The controller says when a command enters and leaves, and whether there is power; the namespace says
/// what a command means. It keeps everything on its medium that a power cut leaves.
pub trait Namespace<P: Payload>: Sized + 'static {
    /// A page of a dump.
    type Item;

    /// The functions of a drive of this kind and payload.
    fn ops() -> &'static DriveOps<P, Self>;

    /// The flash's shape.
    fn geometry(&self) -> &Geometry;
    /// The protected region of the buffer.
    fn region(&self) -> Region;
    /// Mapping units that can be addressed.
    fn mapping_units(&self) -> u32;

    /// A command will arrive: what it needs is brought near. Changes nothing but the simulator's speed.
    fn expect(&self, action: &Action<P>);
    /// Reads will be submitted soon, as [`crate::BlockDevice::expect`].
    fn expect_reads(&self, reads: impl Iterator<Item = Lba>);
    /// A command, with its data if it is a write, is in the controller.
    fn arrive(&mut self, now: Time, id: RequestId, commands: &mut CommandTable<P>);
    /// When the flash next does something; [`Time::MAX`] if it will not, or only at the end of time.
    fn next_time(&self) -> Time;
    /// Handles the next flash operation to end at or before `now`. False if there is none.
    fn next_ended(&mut self, now: Time, commands: &mut CommandTable<P>) -> bool;
    /// Nothing more happens at `now`: commands that can never end, end with a fault.
    fn instant_ended(&mut self, now: Time, commands: &mut CommandTable<P>);
    /// True if something is going to happen by itself, be it at the end of time. A drive may wait for ever for
    /// what does not happen: then nothing is, and it is not idle.
    fn has_events(&self) -> bool;
    /// True if no flash operation is in progress, and nothing waits for one.
    fn is_idle(&self) -> bool;
    /// Lets flash operations take no time.
    fn set_untimed(&mut self, untimed: bool);
    /// Peaks count from here on.
    fn forget_peaks(&mut self);
    /// Bytes of memory that grow with capacity.
    fn memory_bytes(&self) -> u64;
    /// Asserts what must hold inside.
    ///
    /// # Errors
    /// Says what does not.
    fn check(&self) -> Result<(), String>;

    /// The operations of dies in flight.
    fn on_the_way(&self) -> Vec<Interrupted>;
    /// Blocks that a dump can have on `die`.
    fn dump_blocks(&self, die: DieId) -> u32;
    /// The dump of a cut now, if those operations in flight end for which `ended` is true.
    fn to_dump(
        &self,
        supply: &PowerSupply,
        ended: &dyn Fn(&Interrupted) -> bool,
    ) -> ToDump<Self::Item>;
    /// Adds `item` to `loss`: it is not dumped.
    fn add_loss(&self, item: &Self::Item, loss: &mut CutLoss);
    /// The power fails: settles what was on its way, and dumps those of `items` that `programs` name.
    fn dump(
        &mut self,
        supply: &PowerSupply,
        interrupted: &[(Interrupted, bool)],
        items: &[Self::Item],
        programs: &[Program],
    );
    /// Adds to `loss` what was lost with `item`, which was not dumped.
    fn note_lost(&mut self, item: &Self::Item, loss: &mut PowerLoss);
    /// DRAM forgets everything.
    fn lose_power(&mut self, now: Time, interrupted: &[(Interrupted, bool)]);
    /// Finds the way back from what flash holds. Tells of its steps, and of what was put back.
    fn recover(&mut self) -> Recovery;
    /// Erases the blocks of dumps before the last one.
    fn erase_old_dumps(&mut self);
    /// The drive is ready, and goes to work; the last dump is used up.
    fn start(&mut self, now: Time);
    /// Writes nothing any more, and ends what would with a write fault, until the power has failed and
    /// returned.
    fn halt(&mut self);
}
