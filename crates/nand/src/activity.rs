//! A read-only view of what each die is doing.

use leyden_sim::Time;

use crate::die::Stage;
use crate::{ChannelId, DieId, Flash, Kind, Operation};

/// An operation in progress on a die.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Activity {
    /// The die.
    pub die: DieId,
    /// Its channel.
    pub channel: ChannelId,
    /// The operation in progress.
    pub operation: Operation,
    /// How far it is.
    pub phase: Phase,
}

/// How far an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// It waits for its channel.
    Waiting,
    /// It is in the array, from when until when.
    Array(Time, Time),
    /// A read's data is on the channel, from when until when.
    ReadTransfer(Time, Time),
    /// A program: on the channel from the first time to the second, then in the array until the third.
    Program(Time, Time, Time),
}

impl Flash {
    /// The operation of each busy die. An operation whose transfer has just ended is reported until its
    /// outcome has been handed out.
    pub fn activity(&self) -> impl Iterator<Item = Activity> + '_ {
        let dies = (0..self.geometry().dies()).map(DieId).zip(self.dies());
        dies.filter_map(|(id, die)| {
            let operation = die.current?;
            let begin = die.began;
            let (_, transfer) = self.read_times(operation.units);
            let phase = match (die.stage, operation.kind) {
                (Stage::Idle, _) => return None,
                (Stage::WaitingForChannel, _) => Phase::Waiting,
                (Stage::Transferring, Kind::Program(_)) => {
                    let end = begin + self.span_of(&operation);
                    Phase::Program(begin, begin + transfer, end)
                }
                (Stage::Transferring, _) => {
                    // A channel carries one transfer at a time: this die's.
                    let end = self.channel_busy_until(die.channel);
                    Phase::ReadTransfer(Time::from_ns(end.as_ns() - transfer.as_ns()), end)
                }
                (Stage::Array, _) => Phase::Array(begin, begin + self.span_of(&operation)),
            };
            Some(Activity { die: id, channel: die.channel, operation, phase })
        })
    }
}

#[cfg(test)]
mod tests {
    use leyden_sim::{Bytes, Span};

    use super::*;
    use crate::{Config, Ppn};

    #[test]
    fn a_read_is_in_the_array_and_then_on_the_channel() {
        let config = Config::default();
        let geometry = config.geometry(Bytes::new(4096)).unwrap();
        let mut flash = Flash::new(&config, geometry, 1);
        let operation = Operation { kind: Kind::HostRead(Ppn(0)), units: 1, tag: 7 };
        flash.submit(Time::ZERO, operation);
        let (read, transfer) = flash.read_times(1);
        let at = |flash: &Flash| flash.activity().map(|it| it.phase).collect::<Vec<_>>();
        let array_end = Time::ZERO + read;
        assert_eq!(at(&flash), [Phase::Array(Time::ZERO, array_end)]);
        assert_eq!(flash.next_outcome(array_end), None);
        assert_eq!(at(&flash), [Phase::ReadTransfer(array_end, array_end + transfer)]);
        assert!(flash.next_outcome(array_end + transfer).is_some());
        assert_eq!(at(&flash), []);
    }

    #[test]
    fn a_program_holds_its_channel_and_then_its_die() {
        let config = Config::default();
        let geometry = config.geometry(Bytes::new(4096)).unwrap();
        let mut flash = Flash::new(&config, geometry, 1);
        let units = geometry.units_per_page();
        flash.submit(Time::ZERO, Operation { kind: Kind::Program(Ppn(0)), units, tag: 7 });
        let (_, transfer) = flash.read_times(units);
        let Some(Activity { phase: Phase::Program(begin, on_die, end), .. }) =
            flash.activity().next()
        else {
            panic!("{:?}", flash.activity().next())
        };
        assert_eq!((begin, on_die), (Time::ZERO, Time::ZERO + transfer));
        let mut ended = None;
        while ended.is_none() {
            ended = flash.next_outcome(flash.next_time());
        }
        assert_eq!(ended.unwrap().time, end);
        assert!(end > on_die + Span::ZERO);
    }
}
