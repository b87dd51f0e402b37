//! The function: its registers and doorbells, and commands on their way in and out.

use super::config::{CONFIG_BYTES, ConfigSpace};
use super::queues::{BadDoorbell, Queues, Taken};
use super::{BAR_BYTES, DOORBELLS_AT, Memory, Prps, TABLE_AT, Unreachable, pages};
use crate::events::Event;
use crate::fabrics::Property;
use crate::status::Status;
use crate::subsystem::Subsystem;
use crate::wire::{Cqe, Page, Sqe};

const CAP: Property = Property { offset: 0x00, is_long: true };
const VERSION: Property = Property { offset: 0x08, is_long: false };
const CC: Property = Property { offset: 0x14, is_long: false };
const CSTS: Property = Property { offset: 0x1c, is_long: false };
const AQA: u64 = 0x24;
const ASQ: u64 = 0x28;
const ACQ: u64 = 0x30;
/// The bits of AQA that are sizes: at most 4,096 entries.
const AQA_BITS: u32 = 0x0fff_0fff;
const ENABLE: u64 = 1;

/// A region of the function that clients read and write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Region {
    /// BAR 0: registers and doorbells.
    Registers,
    /// Configuration space.
    Config,
}

impl Region {
    /// The region with this index.
    pub(super) const fn of(index: u32) -> Option<Self> {
        match index {
            0 => Some(Self::Registers),
            7 => Some(Self::Config),
            _ => None,
        }
    }

    pub(super) const fn bytes(self) -> u64 {
        match self {
            Self::Registers => BAR_BYTES,
            Self::Config => CONFIG_BYTES as u64,
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Function {
    controller: u16,
    config: ConfigSpace,
    aqa: u32,
    /// ASQ and ACQ.
    bases: [u64; 2],
    queues: Queues,
}

impl Function {
    /// The function of a controller that [`Subsystem::attach`] has made.
    pub fn new(controller: u16) -> Self {
        let (config, queues) = (ConfigSpace::default(), Queues::default());
        Self { controller, config, aqa: 0, bases: [0; 2], queues }
    }

    /// Its controller.
    pub const fn controller(&self) -> u16 {
        self.controller
    }

    /// It begins anew, as after its power was gone: no queues, and registers as at first.
    pub fn reset(&mut self, subsystem: &mut Subsystem) {
        let _ = subsystem.set_property(self.controller, CC, 0); // CC can be written
        let mut queues = std::mem::take(&mut self.queues);
        queues.clear(); // commands of before are not those of queues to come
        *self = Self { queues, ..Self::new(self.controller) };
    }

    /// Bytes of a region, which they are in.
    pub fn read(&self, subsystem: &Subsystem, region: Region, at: u64, count: usize) -> Vec<u8> {
        match region {
            Region::Config => self.config.read(at as usize, count),
            Region::Registers => {
                let value = |property| subsystem.property(self.controller, property).unwrap_or(0);
                let mut page = Page::new(64);
                page.u64(0x00, value(CAP))
                    .u32(0x08, value(VERSION) as u32)
                    .u32(0x14, value(CC) as u32)
                    .u32(0x1c, value(CSTS) as u32)
                    .u32(AQA as usize, self.aqa)
                    .u64(ASQ as usize, self.bases[0])
                    .u64(ACQ as usize, self.bases[1]);
                page.part(at, count)
            }
        }
    }

    /// Writes bytes of a region, which they are in. True if a doorbell was rung.
    pub fn write(
        &mut self,
        subsystem: &mut Subsystem,
        region: Region,
        at: u64,
        data: &[u8],
    ) -> bool {
        if region == Region::Config {
            self.config.write(at as usize, data);
            return false;
        }
        let double = data.try_into().map(u32::from_le_bytes);
        let quad = data.try_into().map(u64::from_le_bytes);
        match (at, double, quad) {
            (0x14, Ok(value), _) => self.set_config(subsystem, value),
            (AQA, Ok(value), _) => self.aqa = value & AQA_BITS,
            (ASQ | ACQ, _, Ok(value)) => self.set_base(at, u64::MAX, value),
            (ASQ | ACQ, Ok(value), _) => self.set_base(at, 0xffff_ffff, value.into()),
            (0x2c | 0x34, Ok(value), _) => {
                self.set_base(at - 4, !0xffff_ffff, u64::from(value) << 32);
            }
            (DOORBELLS_AT..TABLE_AT, Ok(value), _) if at.is_multiple_of(4) => {
                return self.ring(subsystem, (at - DOORBELLS_AT) / 4, value);
            }
            _ => {} // a register that is read only, or none
        }
        false
    }

    fn set_base(&mut self, at: u64, mask: u64, value: u64) {
        let base = &mut self.bases[usize::from(at == ACQ)];
        *base = (*base & !mask | value & mask) & !0xfff;
    }

    fn set_config(&mut self, subsystem: &mut Subsystem, value: u32) {
        let was_enabled = self.is_enabled(subsystem);
        let _ = subsystem.set_property(self.controller, CC, value.into()); // CC can be written
        let is_enabled = self.is_enabled(subsystem);
        if is_enabled && !was_enabled {
            let [asq, acq] = self.bases;
            let (submissions, completions) = ((self.aqa & 0xfff) + 1, (self.aqa >> 16) + 1);
            if submissions < 2 || completions < 2 {
                return subsystem.fail(self.controller); // one entry could hold nothing
            }
            self.queues.begin((asq, submissions), (acq, completions));
        } else if !is_enabled {
            self.queues.clear();
        }
    }

    fn is_enabled(&self, subsystem: &Subsystem) -> bool {
        subsystem.property(self.controller, CC).is_ok_and(|it| it & ENABLE != 0)
    }

    fn is_ready(&self, subsystem: &Subsystem) -> bool {
        subsystem.controller(self.controller).is_ok_and(crate::Controller::is_ready)
    }

    fn ring(&mut self, subsystem: &mut Subsystem, doorbell: u64, value: u32) -> bool {
        if !self.is_ready(subsystem) {
            return false;
        }
        let event = match self.queues.ring(doorbell, value) {
            Ok(()) => return true,
            Err(BadDoorbell::None) => Event::NoDoorbell,
            Err(BadDoorbell::Value) => Event::BadDoorbell,
        };
        subsystem.raise_at(self.controller, event);
        true // the event may answer a request
    }

    /// Carries out an admin command that makes or deletes a queue.
    ///
    /// # Errors
    /// The status of a mistake.
    pub fn manage(&mut self, subsystem: &Subsystem, sqe: &Sqe) -> Result<(), Status> {
        let most = subsystem.controller(self.controller)?.queues();
        self.queues.manage(sqe, most)
    }

    /// The next command that the host has submitted.
    pub fn take(&mut self, subsystem: &mut Subsystem, memory: &impl Memory) -> Option<Taken> {
        if !self.is_ready(subsystem) {
            return None;
        }
        self.queues.take(memory).unwrap_or_else(|_| {
            subsystem.fail(self.controller);
            None
        })
    }

    /// The data that comes with a command.
    ///
    /// # Errors
    /// If it is not there, or its queue is not any more.
    pub fn data(
        &self,
        memory: &impl Memory,
        taken: &Taken,
        bytes: usize,
    ) -> Result<Vec<u8>, Status> {
        if !self.queues.has(taken.origin) {
            return Err(Status::DATA_TRANSFER);
        }
        let mut data = vec![0; bytes];
        let mut rest = &mut data[..];
        for (address, run) in pages(memory, Prps::of(&taken.sqe), bytes)? {
            let (part, others) = rest.split_at_mut(run);
            memory.read(address, part).map_err(|_| Status::DATA_TRANSFER)?;
            rest = others;
        }
        Ok(data)
    }

    /// Writes the data that a command has asked for to where it wants it.
    ///
    /// # Errors
    /// If it cannot be written there. A command of a queue that is gone wants nothing.
    pub fn give(&self, memory: &impl Memory, taken: &Taken, mut data: &[u8]) -> Result<(), Status> {
        if !self.queues.has(taken.origin) {
            return Ok(());
        }
        for (address, run) in pages(memory, Prps::of(&taken.sqe), data.len())? {
            let (part, rest) = data.split_at(run);
            memory.write(address, part).map_err(|_| Status::DATA_TRANSFER)?;
            data = rest;
        }
        Ok(())
    }

    /// A command has ended; the vector to fire. One of a queue that is gone ends without a trace.
    pub fn end(
        &mut self,
        subsystem: &mut Subsystem,
        memory: &impl Memory,
        taken: &Taken,
        (status, result): (Status, u64),
    ) -> Option<u16> {
        let Taken { origin, sqe } = taken;
        if !self.queues.has(*origin) || !self.is_ready(subsystem) {
            return None;
        }
        let (cid, status) = (sqe.cid, status.field().into());
        let cqe = Cqe { result: result.into(), cid, status, ..Cqe::default() };
        let posted = self.queues.post(memory, *origin, cqe);
        self.posted(subsystem, posted).flatten()
    }

    /// The host's request for events with this identifier is answered; the vector to fire.
    pub fn tell(
        &mut self,
        subsystem: &mut Subsystem,
        memory: &impl Memory,
        (cid, result): (u16, u64),
    ) -> Option<u16> {
        let origin = self.queues.admin()?;
        let cqe = Cqe { result: result.into(), cid: cid.into(), ..Cqe::default() };
        let posted = self.queues.post(memory, origin, cqe);
        self.posted(subsystem, posted).flatten()
    }

    /// Posts completions for which there was no room before; the vectors to fire.
    pub fn post_waiting(&mut self, subsystem: &mut Subsystem, memory: &impl Memory) -> Vec<u16> {
        let posted = self.queues.post_waiting(memory);
        self.posted(subsystem, posted).unwrap_or_default()
    }

    /// A completion queue that is not there any more is fatal: its host would wait for ever.
    fn posted<T>(&self, subsystem: &mut Subsystem, posted: Result<T, Unreachable>) -> Option<T> {
        if posted.is_err() {
            subsystem.fail(self.controller);
        }
        posted.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Flat;
    use super::*;
    use crate::subsystem::tests::subsystem;

    fn registers(function: &Function, subsystem: &Subsystem, at: u64) -> u32 {
        let bytes = function.read(subsystem, Region::Registers, at, 4);
        u32::from_le_bytes(bytes.try_into().unwrap())
    }

    fn put(function: &mut Function, subsystem: &mut Subsystem, at: u64, value: u32) -> bool {
        function.write(subsystem, Region::Registers, at, &value.to_le_bytes())
    }

    /// A function whose admin queues of 32 entries lie at 1000h and 2000h.
    fn enabled() -> (Function, Subsystem) {
        let mut subsystem = subsystem();
        let mut function = Function::new(subsystem.attach().unwrap().controller);
        for (at, value) in
            [(0x24, 0x001f_001f), (0x28, 0x1000), (0x2c, 0), (0x30, 0x2000), (0x14, 0x0046_0001)]
        {
            put(&mut function, &mut subsystem, at, value);
        }
        assert_eq!(registers(&function, &subsystem, 0x1c), 1);
        (function, subsystem)
    }

    #[test]
    fn registers_are_read_in_any_part_and_written_where_they_can_be() {
        let (mut function, mut subsystem) = enabled();
        let cap = function.read(&subsystem, Region::Registers, 0, 8);
        assert_eq!(u64::from_le_bytes(cap.try_into().unwrap()), 0x0820_0f01_03ff);
        assert_eq!(registers(&function, &subsystem, 8), 0x0002_0000);
        assert_eq!(function.read(&subsystem, Region::Registers, 0x16, 1), [0x46]);
        assert_eq!(registers(&function, &subsystem, 0x1000), 0, "doorbells are not read");
        put(&mut function, &mut subsystem, 0x24, u32::MAX);
        assert_eq!(registers(&function, &subsystem, 0x24), 0x0fff_0fff);
        function.write(&mut subsystem, Region::Registers, 0x30, &[0xff; 8]);
        assert_eq!(registers(&function, &subsystem, 0x30), 0xffff_f000);
        assert_eq!(registers(&function, &subsystem, 0x34), u32::MAX);
        put(&mut function, &mut subsystem, 0x2c, 7);
        assert_eq!(registers(&function, &subsystem, 0x28), 0x1000, "its other half stays");
        for at in [0x00, 0x08, 0x1c, 0x38, 0x3ffc] {
            let before = registers(&function, &subsystem, at);
            put(&mut function, &mut subsystem, at, 0x55);
            assert_eq!(registers(&function, &subsystem, at), before, "{at:#x}");
        }
    }

    #[test]
    fn a_queue_of_one_entry_or_in_no_memory_is_a_fatal_status_until_the_reset() {
        let (mut function, mut subsystem) = enabled();
        put(&mut function, &mut subsystem, 0x14, 0);
        put(&mut function, &mut subsystem, 0x24, 0x001f_0000);
        put(&mut function, &mut subsystem, 0x14, 0x0046_0001);
        assert_eq!(registers(&function, &subsystem, 0x1c), 3);
        let (mut function, mut subsystem) = enabled();
        assert!(put(&mut function, &mut subsystem, 0x1000, 1));
        assert!(function.take(&mut subsystem, &Flat::new(0x1000)).is_none());
        assert_eq!(registers(&function, &subsystem, 0x1c), 3, "no memory where the queue is");
        assert!(!put(&mut function, &mut subsystem, 0x1000, 2), "nothing is done");
        put(&mut function, &mut subsystem, 0x14, 0);
        put(&mut function, &mut subsystem, 0x14, 0x0046_0001);
        assert_eq!(registers(&function, &subsystem, 0x1c), 1);
    }

    #[test]
    fn data_that_has_no_memory_is_a_status() {
        let (mut function, mut subsystem) = enabled();
        let memory = Flat::new(0x4000);
        put(&mut function, &mut subsystem, 0x1000, 1);
        memory.put(0x1000 + 24, &0x8000_u64.to_le_bytes());
        let taken = function.take(&mut subsystem, &memory).unwrap();
        assert_eq!(function.data(&memory, &taken, 512), Err(Status::DATA_TRANSFER));
        assert_eq!(function.give(&memory, &taken, &[1; 512]), Err(Status::DATA_TRANSFER));
        let ended = (Status::DATA_TRANSFER, 7);
        assert_eq!(function.end(&mut subsystem, &memory, &taken, ended), Some(0));
        let entry: [u8; 16] = memory.get(0x2000);
        assert_eq!((entry[0], &entry[14..]), (7, &[4 << 1 | 1, 0][..]), "may be tried again");
    }

    #[test]
    fn wrong_doorbells_are_told_as_errors_once_until_the_log_is_read() {
        let (mut function, mut subsystem) = enabled();
        let memory = Flat::new(0x4000);
        let number = function.controller();
        memory.put(0x1000, &[0x0c, 0, 5, 0]);
        put(&mut function, &mut subsystem, 0x1000, 1);
        let taken = function.take(&mut subsystem, &memory).unwrap();
        subsystem.admin(number, &taken.sqe, &[], &crate::Around::default());
        put(&mut function, &mut subsystem, 0x1000, 32);
        put(&mut function, &mut subsystem, 0x1010, 1);
        let event = subsystem.event(number).unwrap();
        assert_eq!(event, (5, 0x0001_0100), "an error, of a value, and its log page");
        assert_eq!(function.tell(&mut subsystem, &memory, event), Some(0));
        let entry: [u8; 16] = memory.get(0x2000);
        assert_eq!((entry[1], entry[8], entry[12]), (1, 1, 5));
    }

    #[test]
    fn a_reset_forgets_queues_and_a_shutdown_is_done_at_once() {
        let (mut function, mut subsystem) = enabled();
        put(&mut function, &mut subsystem, 0x14, 0x0046_4001);
        assert_eq!(registers(&function, &subsystem, 0x1c), 1 | 2 << 2);
        put(&mut function, &mut subsystem, 0x1000, 1);
        function.write(&mut subsystem, Region::Config, 4, &[6, 0]);
        function.reset(&mut subsystem);
        assert_eq!(registers(&function, &subsystem, 0x1c), 0);
        assert_eq!(function.read(&subsystem, Region::Config, 4, 2), [0, 0]);
        assert!(function.take(&mut subsystem, &Flat::new(0x4000)).is_none());
    }

    #[test]
    fn a_command_of_before_a_reset_ends_in_no_queue_of_after() {
        let (mut function, mut subsystem) = enabled();
        let memory = Flat::new(0x4000);
        put(&mut function, &mut subsystem, 0x1000, 1);
        let taken = function.take(&mut subsystem, &memory).unwrap();
        function.reset(&mut subsystem);
        for (at, value) in [(0x24, 0x001f_001f), (0x28, 0x1000), (0x30, 0x2000), (0x14, 1)] {
            put(&mut function, &mut subsystem, at, value);
        }
        memory.put(0x1000 + 24, &0x3000_u64.to_le_bytes());
        assert_eq!(function.give(&memory, &taken, &[1; 512]), Ok(()));
        let ended = function.end(&mut subsystem, &memory, &taken, (Status::SUCCESS, 0));
        assert_eq!((ended, memory.get::<16>(0x2000)), (None, [0; 16]));
        assert_eq!(memory.get::<16>(0), [0; 16], "its data goes nowhere, too");
    }
}
