//! The channel against a drive that notes what it is asked.

use std::collections::BTreeSet;
use std::num::NonZeroU8;

use leyden_device::{Action, Config, Ssd, Stamp};
use leyden_sim::{Ratio, Span};
use proptest::prelude::*;

use super::*;
use crate::mock::{Mock, command};

const UNITS: usize = 4_096;

fn channel(config: &HintChannelConfig) -> HintChannel<Mock> {
    HintChannel::new(config, Mock::new(UNITS), 1).unwrap()
}

fn piggyback() -> HintChannelConfig {
    HintChannelConfig::default()
}

fn in_commands(batch: u32) -> HintChannelConfig {
    let max_delay = Span::from_ms(1);
    HintChannelConfig { channel: Channel::Command, batch, max_delay, ..piggyback() }
}

fn hint(first: u32, units: u8) -> Hint {
    Hint::new(first, NonZeroU8::new(units).unwrap())
}

fn us(us: u64) -> Time {
    Time::from_ns(us * 1_000)
}

fn hint_of(command: &Command<Stamp>) -> Option<Hint> {
    match command.action {
        Action::Read { hint, .. } | Action::Write { hint, .. } => hint,
        _ => None,
    }
}

/// The hints that rode along, command by command.
fn ridden(channel: &HintChannel<Mock>) -> Vec<Option<Hint>> {
    channel.device().asked.iter().map(|(_, command)| hint_of(command)).collect()
}

/// The commands of its own: microseconds, ranges.
fn batches(channel: &HintChannel<Mock>) -> Vec<(u64, Vec<Hint>)> {
    let asked = channel.device().asked.iter();
    let batch = |(time, command): &(Time, Command<Stamp>)| {
        let Action::WritePrepare { ranges } = &command.action else { return None };
        Some((time.as_ns() / 1_000, ranges.to_vec()))
    };
    asked.filter_map(batch).collect()
}

/// Lets everything happen.
fn finish(channel: &mut HintChannel<Mock>) -> Vec<Completion<Stamp>> {
    let mut ended = Vec::new();
    while let Some(event) = channel.next_event() {
        channel.advance(event, &mut ended);
    }
    ended
}

#[test]
fn each_read_or_write_takes_the_oldest_hint_along() {
    let mut channel = channel(&piggyback());
    for (i, first) in [80, 40, 60].into_iter().enumerate() {
        channel.announce(us(i as u64), hint(first, 4));
    }
    channel.submit(us(5), command(Op::Flush, 0, 0));
    channel.submit(us(5), command(Op::Trim, 0, 8));
    channel.submit(us(5), command(Op::Read, 0, 1));
    let own = command(Op::Read, 0, 1).hint(Some(hint(9, 1)));
    channel.submit(us(6), own);
    channel.submit(us(6), command(Op::Write, 200, 1));
    channel.submit(us(7), command(Op::Write, 200, 1));
    channel.submit(us(7), command(Op::Write, 200, 1));
    let expected = [80, 0, 40, 60].map(|first| (first > 0).then(|| hint(first, 4)));
    let mut expected = [&[None, None], &expected[..], &[None]].concat();
    expected[3] = Some(hint(9, 1)); // the host's own stays
    assert_eq!(ridden(&channel), expected);
    assert_eq!((channel.stats().sent, channel.stats().waiting_peak.get()), (3, 3));
    assert!(channel.next_event() == channel.device().next_event());
}

#[test]
fn hints_of_written_or_trimmed_units_are_withdrawn() {
    let mut channel = channel(&piggyback());
    channel.announce(us(0), hint(10, 10));
    channel.announce(us(1), hint(50, 1));
    // The write of the middle does not bring the hint that it makes untrue: the rest goes in two.
    channel.submit(us(2), command(Op::Write, 13, 2));
    // Part of a unit: on a write the unit is new as a whole, on a trim it keeps its data.
    channel.submit(us(3), Command::trim(Lba(15 * 8), 12));
    channel.submit(us(4), Command::write(Lba(17 * 8 + 7), 2, 0));
    channel.submit(us(5), command(Op::Read, 0, 1));
    channel.submit(us(6), command(Op::Read, 0, 1));
    channel.submit(us(7), command(Op::Read, 0, 1));
    let expected = [hint(10, 3), hint(16, 1), hint(19, 1), hint(50, 1)].map(Some);
    assert_eq!(ridden(&channel), [&expected[..1], &[None], &expected[1..], &[None]].concat());
    assert_eq!(channel.stats().withdrawn_units, 5);
}

#[test]
fn a_command_goes_when_it_is_full_or_its_first_range_has_waited() {
    let mut channel = channel(&in_commands(3));
    channel.announce(us(10), hint(0, 1));
    assert_eq!(channel.next_event(), Some(us(1_010)));
    channel.announce(us(20), hint(10, 1));
    channel.announce(us(30), hint(20, 1));
    assert_eq!(channel.next_event(), Some(us(30)));
    let mut ended = Vec::new();
    channel.advance(us(30), &mut ended);
    channel.announce(us(40), hint(30, 1));
    channel.announce(us(50), hint(30, 2));
    channel.submit(us(60), command(Op::Read, 0, 1));
    ended.extend(finish(&mut channel));
    let full = vec![hint(0, 1), hint(10, 1), hint(20, 1)];
    assert_eq!(batches(&channel), [(30, full), (1_040, vec![hint(30, 2)])]);
    let ended: Vec<_> = ended.iter().map(|end| (end.op, end.time)).collect();
    assert_eq!(ended, [(Op::Read, us(160))], "its own ends are not the host's");
    let stats = channel.stats();
    assert_eq!((stats.sent, stats.commands, stats.repeated_units), (4, 2, 1));
    assert_eq!(channel.next_event(), None);
}

#[test]
fn a_command_of_the_hosts_own_ends_at_the_host() {
    let mut channel = channel(&in_commands(1));
    channel.announce(us(0), hint(0, 1));
    let id = channel.submit(us(0), command(Op::WritePrepare, 0, 0));
    let ended = finish(&mut channel);
    assert_eq!(ended.iter().map(|end| end.id).collect::<Vec<_>>(), [id]);
    assert_eq!(channel.stats().commands, 1);
}

#[test]
fn a_slow_drive_has_only_so_many_under_way() {
    let mut channel = channel(&in_commands(1));
    channel.device_mut().latency = Span::from_ms(50);
    for i in 0..40 {
        channel.announce(us(i), hint(i as u32 * 2, 1));
        channel.advance(us(i), &mut Vec::new());
    }
    assert_eq!((channel.stats().commands, channel.waiting()), (32, 8));
    finish(&mut channel);
    assert_eq!(channel.stats().commands, 40);
    assert_eq!(batches(&channel)[32].0, 50_000);
}

#[test]
fn late_announcements_wait_before_they_enter_the_queue() {
    let late = Span::from_ms(2);
    let mut channel = channel(&HintChannelConfig { late, ..piggyback() });
    channel.announce(us(0), hint(0, 4));
    channel.announce(us(500), hint(3, 2)); // a range that waits already is not held back again
    channel.announce(us(600), hint(8, 1));
    channel.submit(us(1_999), command(Op::Read, 100, 1));
    channel.submit(us(2_000), command(Op::Write, 1, 1));
    channel.submit(us(2_400), command(Op::Write, 8, 1));
    channel.submit(us(2_500), command(Op::Read, 100, 1));
    channel.submit(us(2_700), command(Op::Read, 100, 1));
    let expected = [None, Some(hint(0, 1)), Some(hint(2, 2)), Some(hint(4, 1)), None];
    assert_eq!(ridden(&channel), expected);
    assert_eq!((channel.stats().withdrawn_units, channel.stats().repeated_units), (2, 1));

    let mut channel = self::channel(&HintChannelConfig { late, ..in_commands(2) });
    channel.announce(us(0), hint(0, 1));
    assert_eq!(channel.next_event(), Some(us(2_000)));
    finish(&mut channel);
    assert_eq!(batches(&channel), [(3_000, vec![hint(0, 1)])]);
}

#[test]
fn announcements_go_missing_and_are_made_up_as_often_as_asked() {
    let shares = |missing, false_share| HintChannelConfig {
        missing: Ratio::from_percent(missing),
        false_share: Ratio::from_percent(false_share),
        ..piggyback()
    };
    let mut channel = channel(&shares(30, 10));
    for i in 0..10_000 {
        channel.announce(us(i), hint(i as u32 % 64 * 8, 4));
        channel.submit(us(i), command(Op::Read, 0, 1));
    }
    let stats = channel.stats();
    assert!((11_600..12_400).contains(&stats.missing_units), "{stats:?}");
    assert!((920..1_080).contains(&stats.false_hints), "{stats:?}");
    let sent = ridden(&channel).into_iter().flatten();
    let beyond: BTreeSet<u32> = sent.map(Hint::first_unit).filter(|&first| first >= 512).collect();
    assert!(beyond.len() > 500, "{} places outside what was announced", beyond.len());

    let mut channel = self::channel(&shares(100, 0));
    channel.announce(us(0), hint(0, 4));
    channel.submit(us(1), command(Op::Read, 0, 1));
    assert_eq!((ridden(&channel), channel.stats().missing_units), (vec![None], 4));
}

#[test]
fn hints_beyond_the_end_are_ignored_whole() {
    let mut channel = channel(&in_commands(1));
    channel.announce(us(0), hint(UNITS as u32 - 1, 2));
    channel.announce(us(0), hint(u32::MAX, 1));
    channel.announce(us(0), hint(UNITS as u32 - 1, 1));
    finish(&mut channel);
    assert_eq!(batches(&channel), [(0, vec![hint(UNITS as u32 - 1, 1)])]);
    assert_eq!(channel.stats().beyond_end_units, 3);
}

/// 255 sectors, as the paper's length byte counts (Zombie Chasing, section 4.1).
#[test]
fn a_hint_names_no_more_than_it_may() {
    let paper = HintChannelConfig { max_sectors: 255, ..piggyback() };
    for (config, expected) in [
        (piggyback(), vec![hint(0, 52)]),
        (paper.clone(), vec![hint(0, 12), hint(12, 31), hint(43, 9)]),
        (
            HintChannelConfig { merge: false, ..paper },
            vec![hint(0, 4), hint(4, 4), hint(8, 4), hint(12, 31), hint(43, 9)],
        ),
    ] {
        let mut channel = channel(&config);
        for announced in [hint(0, 4), hint(4, 4), hint(8, 4), hint(12, 40)] {
            channel.announce(us(0), announced);
        }
        for _ in 0..5 {
            channel.submit(us(1), command(Op::Read, 100, 1));
        }
        let sent: Vec<Hint> = ridden(&channel).into_iter().flatten().collect();
        assert_eq!(sent.iter().map(|hint| hint.units()).sum::<u32>(), 52);
        assert_eq!(sent, expected, "{config:?}");
    }
}

#[test]
fn a_flood_drops_the_oldest() {
    let mut channel = channel(&HintChannelConfig { queue: 2, ..piggyback() });
    for i in 0..1_000 {
        channel.announce(us(i), hint(i as u32 * 4, 3));
    }
    assert_eq!((channel.waiting(), channel.stats().dropped_units), (2, 2_994));
    channel.submit(us(1_000), command(Op::Read, 0, 1));
    assert_eq!(ridden(&channel), [Some(hint(3_992, 3))]);
}

#[test]
fn nothing_outlives_the_power() {
    let late = Span::from_ms(1);
    let mut channel = channel(&HintChannelConfig { late, ..piggyback() });
    channel.announce(us(0), hint(0, 4));
    channel.submit(us(1_000), command(Op::Flush, 0, 0));
    channel.announce(us(1_000), hint(8, 1));
    assert_eq!((channel.waiting(), channel.waiting_units()), (1, 5));
    channel.lose_power();
    channel.submit(us(9_000), command(Op::Read, 0, 1));
    assert_eq!(ridden(&channel), [None, None]);
    assert_eq!(channel.stats().lost_units, 5);
}

#[test]
fn switched_off_it_forgets() {
    let off = HintChannelConfig { channel: Channel::Off, ..piggyback() };
    let mut channel = channel(&off);
    channel.announce(us(0), hint(0, 4));
    channel.submit(us(1), command(Op::Read, 0, 1));
    assert_eq!(ridden(&channel), [None]);
    assert_eq!(*channel.stats(), HintChannelStats::default());
}

#[test]
fn impossible_configurations_are_refused() {
    let of = |change: fn(&mut HintChannelConfig)| {
        let mut config = piggyback();
        change(&mut config);
        HintChannel::new(&config, Mock::new(8), 1).map(|_| ()).unwrap_err().to_string()
    };
    assert_eq!(of(|c| c.batch = 0), "batch: 0 is not in 1..=256");
    assert_eq!(of(|c| c.batch = 257), "batch: 257 is not in 1..=256");
    assert_eq!(of(|c| c.queue = 0), "queue: 0 is not in 1..=16777216");
    let length = |n: u32| {
        format!("max_sectors: {n} is not in 8..=2040: a hint names 1 to 255 units of 4 KiB")
    };
    assert_eq!(of(|c| c.max_sectors = 7), length(7));
    assert_eq!(of(|c| c.max_sectors = 2_041), length(2_041));
    let too_much = Ratio::from_percent(101);
    let mut config = HintChannelConfig { missing: too_much, ..piggyback() };
    assert_eq!(config.check().unwrap_err().to_string(), "missing: 101 % is more than 100 %");
    (config.missing, config.false_share) = (Ratio::ONE, too_much);
    assert_eq!(config.check().unwrap_err().key, "false_share");
}

/// A real drive hears what is sent, and is charged for the commands.
#[test]
fn a_drive_hears_it() {
    for kind in [Channel::Piggyback, Channel::Command] {
        let config = HintChannelConfig { channel: kind, ..in_commands(256) };
        let ssd = Ssd::<Stamp>::new(&Config::default(), 1).unwrap();
        let mut channel = HintChannel::new(&config, ssd, 1).unwrap();
        let mut ended = Vec::new();
        channel.submit(us(0), command(Op::Write, 0, 64));
        channel.advance(us(50_000), &mut ended);
        for first in (0..64).step_by(8) {
            channel.announce(us(50_000), hint(first, 4));
        }
        for _ in 0..8 {
            channel.submit(us(50_000), command(Op::Read, 100, 1));
        }
        channel.advance(us(100_000), &mut ended);
        let heard = channel.device().stats().ssd.hints;
        let expected = if kind == Channel::Command { (0, 1, 8, 32) } else { (8, 0, 0, 32) };
        assert_eq!((heard.piggybacked, heard.commands, heard.ranges, heard.units), expected);
        assert_eq!(ended.len(), 9);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Announce(u32, u8),
    Submit(Op, u64, u32),
    Wait(u64),
    Cut,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let ops = prop::sample::select(vec![Op::Read, Op::Write, Op::Trim, Op::WriteZeroes, Op::Flush]);
    let announce = (0_u32..110, 1_u8..9).prop_map(|(at, n)| Step::Announce(at, n));
    let submit = (ops, 0_u64..90 * 8, 1_u32..64).prop_map(|(op, at, n)| Step::Submit(op, at, n));
    let step = prop_oneof![
        8 => announce,
        8 => submit,
        4 => (0_u64..3_000).prop_map(Step::Wait),
        1 => Just(Step::Cut),
    ];
    prop::collection::vec(step, 0..120)
}

proptest! {
    /// Every unit is accounted for; no hint names what was not announced, or written since; the
    /// host's commands end as often as they came.
    #[test]
    fn sent_hints_are_true(
        steps in steps(),
        commands: bool,
        (batch, queue, late_us) in (1_u32..5, 1_u32..12, prop_oneof![Just(0_u64), 1_u64..2_000]),
        missing in 0_u64..40,
        (max_sectors, merge) in (prop_oneof![Just(2_040_u32), 8_u32..60], any::<bool>()),
    ) {
        let config = HintChannelConfig {
            channel: if commands { Channel::Command } else { Channel::Piggyback },
            queue,
            late: Span::from_us(late_us),
            missing: Ratio::from_percent(missing),
            max_sectors,
            merge,
            ..in_commands(batch)
        };
        let mut channel = HintChannel::new(&config, Mock::new(100), 7).unwrap();
        let (mut announced, mut seen, mut host, mut ended) = (BTreeSet::new(), 0, 0, Vec::new());
        let mut now = Time::ZERO;
        for step in steps {
            let mut changed = BTreeSet::new();
            match step {
                Step::Announce(first, units) => {
                    channel.announce(now, hint(first, units));
                    announced.extend(first..first + u32::from(units));
                }
                Step::Submit(op, lba, sectors) => {
                    channel.submit(now, Command::new(op, Lba(lba), sectors, 0));
                    host += 1;
                    let units = (lba / 8) as u32..(lba + u64::from(sectors)).div_ceil(8) as u32;
                    let whole = |&unit: &u32| u64::from(unit) * 8 >= lba
                        && u64::from(unit + 1) * 8 <= lba + u64::from(sectors);
                    match op {
                        Op::Write | Op::WriteZeroes => changed.extend(units),
                        Op::Trim => changed.extend(units.filter(whole)),
                        _ => {}
                    }
                }
                Step::Wait(us) => {
                    now += Span::from_us(us);
                    channel.advance(now, &mut ended);
                }
                Step::Cut => {
                    channel.lose_power();
                    announced.clear();
                }
            }
            announced.retain(|unit| !changed.contains(unit));
            for (_, command) in &channel.device().asked[seen..] {
                let hints = match &command.action {
                    Action::WritePrepare { ranges } => ranges.to_vec(),
                    _ => hint_of(command).into_iter().collect(),
                };
                for hint in hints {
                    prop_assert!(hint.sectors() <= max_sectors, "{hint:?}");
                    let named = hint.first_unit()..hint.first_unit() + hint.units();
                    prop_assert!(named.clone().all(|unit| announced.contains(&unit)), "{hint:?}");
                }
            }
            seen = channel.device().asked.len();
            prop_assert!(channel.waiting() <= queue as usize);
            let s = *channel.stats();
            let gone = s.sent_units + s.withdrawn_units + s.repeated_units + s.dropped_units
                + s.missing_units + s.beyond_end_units + s.lost_units;
            prop_assert_eq!(s.announced_units, gone + channel.waiting_units());
        }
        ended.extend(finish(&mut channel));
        let host_ended = ended.iter().filter(|end| end.op != Op::WritePrepare).count();
        prop_assert_eq!(host_ended, host);
    }
}
