//! Queues in the host's memory.

use std::collections::{BTreeMap, VecDeque};

use super::{Memory, PAGE_BYTES, Prps, Unreachable, VECTORS};
use crate::controller::QUEUE_MOST;
use crate::status::Status;
use crate::wire::{Cqe, SQE_BYTES, Sqe};
use zerocopy::IntoBytes;

const CQE_BYTES: u64 = size_of::<Cqe>() as u64;
const CONTIGUOUS: u32 = 1;
const INTERRUPTS: u32 = 1 << 1;

/// The submission queue of a command. One that was made later is another, whatever its number is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    /// Its number: 0 for admin commands.
    pub queue: u16,
    serial: u64,
}

/// A command that was taken from a queue.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// From where.
    pub origin: Origin,
    /// The command.
    pub sqe: Sqe,
}

#[derive(Clone, Debug)]
struct Submission {
    base: u64,
    size: u32,
    head: u32,
    tail: u32,
    completions: u16,
    serial: u64,
}

#[derive(Clone, Debug)]
struct Completion {
    base: u64,
    size: u32,
    head: u32,
    tail: u32,
    phase: bool,
    vector: Option<u16>,
    /// Entries for which there was no room, and from which queue each is.
    backlog: VecDeque<(Origin, Cqe)>,
}

/// All queues of a function.
#[derive(Clone, Debug, Default)]
pub(super) struct Queues {
    submissions: BTreeMap<u16, Submission>,
    completions: BTreeMap<u16, Completion>,
    /// Queues that were made so far.
    serial: u64,
    /// The queue that was looked at last.
    turn: u16,
}

/// A doorbell has a value that it cannot have, or none has this number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum BadDoorbell {
    None,
    Value,
}

impl Completion {
    const fn new(base: u64, size: u32, vector: Option<u16>) -> Self {
        let backlog = VecDeque::new();
        Self { base, size, head: 0, tail: 0, phase: true, vector, backlog }
    }

    const fn is_full(&self) -> bool {
        (self.tail + 1) % self.size == self.head
    }

    /// Writes an entry: its phase last, by itself, so that a host that looks at it finds the rest.
    fn put(&mut self, memory: &impl Memory, mut cqe: Cqe) -> Result<(), Unreachable> {
        let at = self.base + u64::from(self.tail) * CQE_BYTES;
        cqe.status = (cqe.status.get() & !1 | u16::from(self.phase)).into();
        let (entry, status) = cqe.as_bytes().split_at(CQE_BYTES as usize - 2);
        memory.write(at, entry)?;
        memory.write(at + CQE_BYTES - 2, status)?;
        self.tail += 1;
        if self.tail == self.size {
            (self.tail, self.phase) = (0, !self.phase);
        }
        Ok(())
    }
}

impl Queues {
    fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Forgets all queues. Numbers of those to come are others.
    pub(super) fn clear(&mut self) {
        self.submissions.clear();
        self.completions.clear();
    }

    /// Makes the admin queues.
    pub(super) fn begin(&mut self, submission: (u64, u32), completion: (u64, u32)) {
        self.clear();
        let serial = self.next_serial();
        let (base, size) = submission;
        let queue = Submission { base, size, head: 0, tail: 0, completions: 0, serial };
        self.submissions.insert(0, queue);
        let (base, size) = completion;
        self.completions.insert(0, Completion::new(base, size, Some(0)));
    }

    /// Carries out one of the commands that make and delete queues, of a host that may have `most` of each kind.
    pub(super) fn manage(&mut self, sqe: &Sqe, most: u16) -> Result<(), Status> {
        let (cdw10, cdw11) = (sqe.cdw10.get(), sqe.cdw11.get());
        let (queue, size) = (cdw10 as u16, (cdw10 >> 16) + 1);
        let is_number = queue > 0 && queue <= most;
        match sqe.opcode {
            0x00 if is_number => self.submissions.remove(&queue).map(drop),
            0x04 if self.submissions.values().any(|it| it.completions == queue && queue > 0) => {
                return Err(Status::QUEUE_DELETION);
            }
            0x04 if is_number => self.completions.remove(&queue).map(drop),
            0x01 | 0x05 => {
                let is_new = match sqe.opcode {
                    0x01 => !self.submissions.contains_key(&queue),
                    _ => !self.completions.contains_key(&queue),
                };
                if !is_number || !is_new {
                    return Err(Status::QUEUE_NUMBER);
                }
                if size < 2 || size > u32::from(QUEUE_MOST) {
                    return Err(Status::QUEUE_SIZE);
                }
                if cdw11 & CONTIGUOUS == 0 {
                    return Err(Status::INVALID_FIELD);
                }
                let base = Prps::of(sqe).first();
                if !base.is_multiple_of(PAGE_BYTES) {
                    return Err(Status::PRP_OFFSET);
                }
                return self.make(sqe.opcode == 0x01, queue, base, size, cdw11);
            }
            _ => None,
        }
        .ok_or(Status::QUEUE_NUMBER)
    }

    fn make(
        &mut self,
        is_submission: bool,
        queue: u16,
        base: u64,
        size: u32,
        cdw11: u32,
    ) -> Result<(), Status> {
        let other = (cdw11 >> 16) as u16;
        if is_submission {
            if other == 0 || !self.completions.contains_key(&other) {
                return Err(Status::COMPLETION_QUEUE);
            }
            let serial = self.next_serial();
            let made = Submission { base, size, head: 0, tail: 0, completions: other, serial };
            self.submissions.insert(queue, made);
        } else {
            if other >= VECTORS {
                return Err(Status::VECTOR);
            }
            let vector = (cdw11 & INTERRUPTS != 0).then_some(other);
            self.completions.insert(queue, Completion::new(base, size, vector));
        }
        Ok(())
    }

    /// The host has rung the doorbell with this number: those of submission queues are even.
    pub(super) fn ring(&mut self, doorbell: u64, value: u32) -> Result<(), BadDoorbell> {
        let queue = u16::try_from(doorbell / 2).map_err(|_| BadDoorbell::None)?;
        if doorbell.is_multiple_of(2) {
            let queue = self.submissions.get_mut(&queue).ok_or(BadDoorbell::None)?;
            if value >= queue.size {
                return Err(BadDoorbell::Value);
            }
            queue.tail = value;
        } else {
            let queue = self.completions.get_mut(&queue).ok_or(BadDoorbell::None)?;
            let ahead = |of: u32| (of + queue.size - queue.head) % queue.size;
            if value >= queue.size || ahead(value) > ahead(queue.tail) {
                return Err(BadDoorbell::Value);
            }
            queue.head = value;
        }
        Ok(())
    }

    /// The next command, of the queues in turn. One whose completions have no room waits.
    pub(super) fn take(&mut self, memory: &impl Memory) -> Result<Option<Taken>, Unreachable> {
        let behind = self.submissions.range(self.turn + 1..).map(|it| *it.0);
        let order: Vec<u16> =
            behind.chain(self.submissions.range(..=self.turn).map(|it| *it.0)).collect();
        for number in order {
            let Some(queue) = self.submissions.get_mut(&number) else { continue };
            let completions = self.completions.get(&queue.completions);
            if queue.head == queue.tail || completions.is_none_or(|it| !it.backlog.is_empty()) {
                continue;
            }
            let mut bytes = [0; SQE_BYTES];
            memory.read(queue.base + u64::from(queue.head) * SQE_BYTES as u64, &mut bytes)?;
            queue.head = (queue.head + 1) % queue.size;
            self.turn = number;
            let origin = Origin { queue: number, serial: queue.serial };
            return Ok(Some(Taken { origin, sqe: zerocopy::transmute!(bytes) }));
        }
        Ok(None)
    }

    /// The admin queue, if there is one.
    pub(super) fn admin(&self) -> Option<Origin> {
        self.submissions.get(&0).map(|it| Origin { queue: 0, serial: it.serial })
    }

    /// True if a command's queue is still there.
    pub(super) fn has(&self, origin: Origin) -> bool {
        self.submissions.get(&origin.queue).is_some_and(|it| it.serial == origin.serial)
    }

    /// Posts a completion; the vector to fire.
    pub(super) fn post(
        &mut self,
        memory: &impl Memory,
        origin: Origin,
        cqe: Cqe,
    ) -> Result<Option<u16>, Unreachable> {
        let Some(queue) = self.submissions.get(&origin.queue) else { return Ok(None) };
        let (head, number) = (queue.head as u16, queue.completions);
        let Some(to) = self.completions.get_mut(&number) else { return Ok(None) };
        let cqe = Cqe { head: head.into(), queue: origin.queue.into(), ..cqe };
        if to.is_full() || !to.backlog.is_empty() {
            to.backlog.push_back((origin, cqe));
            return Ok(None);
        }
        to.put(memory, cqe)?;
        Ok(to.vector)
    }

    /// Posts completions that waited for room; the vectors to fire.
    pub(super) fn post_waiting(&mut self, memory: &impl Memory) -> Result<Vec<u16>, Unreachable> {
        let Self { submissions, completions, .. } = self;
        let mut vectors = Vec::new();
        for to in completions.values_mut() {
            let waited = to.backlog.len();
            while !to.is_full()
                && let Some((origin, cqe)) = to.backlog.pop_front()
            {
                // The commands of a queue that was deleted meanwhile have no end.
                let is_there = submissions.get(&origin.queue);
                if is_there.is_some_and(|it| it.serial == origin.serial) {
                    to.put(memory, cqe)?;
                }
            }
            vectors.extend(to.vector.filter(|_| to.backlog.len() < waited));
        }
        Ok(vectors)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Flat;
    use super::*;
    use crate::wire::Sgl;

    const SQ: u64 = 0x1000;
    const CQ: u64 = 0x2000;
    const MOST: u16 = 16;

    fn manage(opcode: u8, queue: u32, size: u32, cdw11: u32, base: u64) -> Sqe {
        let sgl = Sgl { address: base.into(), ..Sgl::default() };
        let cdw10 = (queue | (size - 1) << 16).into();
        Sqe { opcode, cdw10, cdw11: cdw11.into(), sgl, ..Sqe::default() }
    }

    fn queues() -> Queues {
        let mut queues = Queues::default();
        queues.begin((0, 32), (0x800, 32));
        queues.manage(&manage(5, 1, 4, 3 | 2 << 16, CQ), MOST).unwrap();
        queues.manage(&manage(1, 1, 8, 1 | 1 << 16, SQ), MOST).unwrap();
        queues
    }

    #[test]
    fn each_mistake_of_making_and_deleting_has_its_status() {
        let mut queues = queues();
        let mut status = |sqe: Sqe| queues.manage(&sqe, MOST).map_err(Status::code);
        let cases = [
            (manage(5, 0, 4, 3, CQ), 0x101), // the admin queue
            (manage(5, 1, 4, 3, CQ), 0x101), // it is there
            (manage(5, 17, 4, 3, CQ), 0x101),
            (manage(5, 2, 1, 3, CQ), 0x102),
            (manage(5, 2, 1_025, 3, CQ), 0x102),
            (manage(5, 2, 4, 2, CQ), 0x002), // not contiguous
            (manage(5, 2, 4, 3 | 17 << 16, CQ), 0x108),
            (manage(5, 2, 4, 3, CQ + 8), 0x013),
            (manage(1, 1, 4, 1 | 1 << 16, SQ), 0x101),
            (manage(1, 2, 4, 1, SQ), 0x100), // the admin completion queue
            (manage(1, 2, 4, 1 | 2 << 16, SQ), 0x100),
            (manage(0, 0, 1, 0, 0), 0x101),
            (manage(0, 2, 1, 0, 0), 0x101),
            (manage(4, 0, 1, 0, 0), 0x101),
            (manage(4, 1, 1, 0, 0), 0x10c), // it has a submission queue
            (manage(4, 2, 1, 0, 0), 0x101),
        ];
        for (sqe, code) in cases {
            assert_eq!(status(sqe), Err(code), "{sqe:?}");
        }
        assert_eq!(status(manage(0, 1, 1, 0, 0)), Ok(()));
        assert_eq!(status(manage(4, 1, 1, 0, 0)), Ok(()));
        assert!(queues.submissions.contains_key(&0) && queues.completions.contains_key(&0));
    }

    #[test]
    fn doorbells_have_their_values_and_no_others() {
        let mut queues = queues();
        assert_eq!(queues.ring(2, 7), Ok(()));
        assert_eq!(queues.ring(2, 8), Err(BadDoorbell::Value));
        assert_eq!(queues.ring(4, 0), Err(BadDoorbell::None));
        assert_eq!(queues.ring(1 << 40, 0), Err(BadDoorbell::None));
        assert_eq!(queues.ring(3, 0), Ok(()));
        assert_eq!(queues.ring(3, 1), Err(BadDoorbell::Value), "nothing is there to be taken");
    }

    #[test]
    fn a_full_completion_queue_holds_up_its_commands_and_loses_none() {
        let (memory, mut queues) = (Flat::new(0x4000), queues());
        for at in 0..7_u16 {
            memory.put(SQ as usize + usize::from(at) * 64 + 2, &at.to_le_bytes());
        }
        queues.ring(2, 7).unwrap();
        let taken: Vec<_> = (0..5).map(|_| queues.take(&memory).unwrap().unwrap()).collect();
        let post = |queues: &mut Queues, it: &Taken| {
            let cqe = Cqe { cid: it.sqe.cid, ..Cqe::default() };
            queues.post(&memory, it.origin, cqe).unwrap()
        };
        let fired: Vec<_> = taken.iter().map(|it| post(&mut queues, it)).collect();
        assert_eq!(fired, [Some(2), Some(2), Some(2), None, None]);
        assert!(queues.take(&memory).unwrap().is_none(), "it waits for room");
        assert_eq!(queues.post_waiting(&memory), Ok(Vec::new()));
        queues.ring(3, 2).unwrap();
        assert_eq!(queues.post_waiting(&memory), Ok(vec![2]));
        let entry = |at: usize| {
            let entry: [u8; 16] = memory.get(CQ as usize + at * 16);
            (entry[8], entry[12], entry[14] & 1)
        };
        // The fourth is the last of the first round, the fifth the first of the next: its phase is 0.
        assert_eq!([entry(0), entry(2), entry(3)], [(5, 4, 0), (5, 2, 1), (5, 3, 1)]);
        assert_eq!(queues.take(&memory).unwrap().unwrap().sqe.cid.get(), 5);
    }

    #[test]
    fn what_comes_of_a_deleted_queue_goes_nowhere() {
        let (memory, mut queues) = (Flat::new(0x4000), queues());
        queues.ring(2, 1).unwrap();
        let taken = queues.take(&memory).unwrap().unwrap();
        assert!(queues.has(taken.origin));
        queues.manage(&manage(0, 1, 1, 0, 0), MOST).unwrap();
        queues.manage(&manage(1, 1, 8, 1 | 1 << 16, SQ), MOST).unwrap();
        assert!(!queues.has(taken.origin), "another queue with its number");
        queues.begin((0, 32), (0x800, 32));
        assert!(!queues.has(Origin { queue: 0, serial: 1 }), "nor an admin queue before a reset");
    }

    #[test]
    fn queues_take_turns_and_memory_that_is_gone_is_noticed() {
        let (memory, mut queues) = (Flat::new(0x4000), queues());
        queues.ring(0, 2).unwrap();
        queues.ring(2, 2).unwrap();
        let order: Vec<u16> =
            (0..4).map(|_| queues.take(&memory).unwrap().unwrap().origin.queue).collect();
        assert_eq!(order, [1, 0, 1, 0]);
        queues.manage(&manage(1, 2, 8, 1 | 1 << 16, 0x8000), MOST).unwrap();
        queues.ring(4, 1).unwrap();
        assert_eq!(queues.take(&memory).unwrap_err(), Unreachable);
    }
}
