//! I/O errors that come and go: which commands of a served drive fail, and for how long.
//!
//! A command that is made to fail does not reach the drive: it has changed nothing, and a FLUSH has promised nothing. The
//! text of a rule is what `leyden fault` takes: `write`, `read:lba=2048+8,times=all`, `flush:nth=3,for=5s`.

use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use leyden_device::{SECTOR_BYTES, Status};
use leyden_sim::Span;
use serde::{Deserialize, Serialize};

use crate::ask::Ask;

/// No drive has more rules.
pub(crate) const RULES_MOST: usize = 64;

/// Commands of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Reads.
    Read,
    /// Writes, zeroes and appends.
    Write,
    /// Flushes.
    Flush,
    /// Trims.
    Trim,
    /// Changes of zones.
    Zone,
    /// All of these.
    Any,
}

const KINDS: [(&str, FaultKind); 6] = [
    ("read", FaultKind::Read),
    ("write", FaultKind::Write),
    ("flush", FaultKind::Flush),
    ("trim", FaultKind::Trim),
    ("zone", FaultKind::Zone),
    ("any", FaultKind::Any),
];

/// A rule: which commands fail.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Of which kind.
    pub on: FaultKind,
    /// Those that touch these sectors only: the first, and how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lba: Option<(u64, u64)>,
    /// From which of them on, counted from one.
    pub nth: u64,
    /// So many; all if there is no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// Until so many nanoseconds have passed, by the host's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub for_ns: Option<u64>,
}

impl Fault {
    fn matches(&self, ask: &Ask) -> bool {
        let (kind, range) = match *ask {
            Ask::Read(lba, sectors) => (FaultKind::Read, Some((lba.0, sectors.into()))),
            Ask::Write(lba, ref data, _) => {
                (FaultKind::Write, Some((lba.0, data.len() as u64 / SECTOR_BYTES)))
            }
            // An append has no place yet: its zone's first sector is what it names.
            Ask::Append(lba, ..) => (FaultKind::Write, Some((lba.0, 1))),
            Ask::WriteZeroes(lba, sectors, _) => (FaultKind::Write, Some((lba.0, sectors.into()))),
            Ask::Trim(lba, sectors) => (FaultKind::Trim, Some((lba.0, sectors.into()))),
            Ask::Flush => (FaultKind::Flush, None),
            Ask::Zone(ask) => (FaultKind::Zone, Some((ask.lba.0, 1))),
            Ask::Zones(..) | Ask::Extents(..) | Ask::Mark(_) => return false,
        };
        if self.on != kind && self.on != FaultKind::Any {
            return false;
        }
        let Some((first, count)) = self.lba else { return true };
        range.is_some_and(|(from, sectors)| {
            from < first.saturating_add(count) && first < from.saturating_add(sectors)
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KINDS.iter().find(|(_, kind)| *kind == self.on).map_or("", |(name, _)| *name);
        write!(f, "{name}:nth={}", self.nth)?;
        match self.times {
            Some(times) => write!(f, ",times={times}")?,
            None => f.write_str(",times=all")?,
        }
        if let Some((first, count)) = self.lba {
            write!(f, ",lba={first}+{count}")?;
        }
        match self.for_ns {
            Some(ns) => write!(f, ",for={}", Span::from_ns(ns).to_string().replace(' ', "")),
            None => Ok(()),
        }
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some((_, on)) = KINDS.iter().find(|(known, _)| *known == name) else {
            return Err(format!(
                "{name:?} is no kind of command: write read, write, flush, trim, zone or any"
            ));
        };
        let mut fault = Self { on: *on, lba: None, nth: 1, times: Some(1), for_ns: None };
        let mut says_times = false;
        for part in rest.split(',').filter(|part| !part.is_empty()) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let number = || {
                let number = value.parse::<u64>().ok().filter(|&number| number > 0);
                number.ok_or_else(|| format!("{key}={value}: write a number from 1 on"))
            };
            match key {
                "nth" => fault.nth = number()?,
                "times" if value == "all" => (fault.times, says_times) = (None, true),
                "times" => (fault.times, says_times) = (Some(number()?), true),
                "lba" => fault.lba = Some(range_of(value)?),
                "for" => {
                    let span = value.parse::<Span>().map_err(|error| format!("for: {error}"))?;
                    fault.for_ns = Some(span.as_ns());
                }
                _ => {
                    return Err(format!(
                        "{key:?} is no part of a rule: write nth, times, lba or for"
                    ));
                }
            }
        }
        if !says_times && fault.for_ns.is_some() {
            fault.times = None; // for that time all of them
        }
        Ok(fault)
    }
}

fn range_of(text: &str) -> Result<(u64, u64), String> {
    let (first, count) = text.split_once('+').unwrap_or((text, "1"));
    match (first.parse(), count.parse()) {
        (Ok(first), Ok(count)) if count > 0 => Ok((first, count)),
        _ => Err(format!("lba={text}: write lba=FIRST+SECTORS, in sectors of 512 bytes")),
    }
}

/// A rule, and what came of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FaultReport {
    /// The rule, as it may be written again.
    pub rule: String,
    /// Commands that it is about, so far.
    pub seen: u64,
    /// Those of them that it made fail.
    pub failed: u64,
    /// It will make no more fail.
    pub is_over: bool,
}

#[derive(Debug)]
struct Rule {
    fault: Fault,
    since: Instant,
    seen: u64,
    failed: u64,
}

impl Rule {
    fn is_over(&self, now: Instant) -> bool {
        let limit = self.fault.for_ns.map(Duration::from_nanos);
        self.fault.times.is_some_and(|times| self.failed >= times)
            || limit.is_some_and(|limit| now.duration_since(self.since) >= limit)
    }
}

/// The rules of a served drive.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<Rule>);

impl Faults {
    /// Adds a rule. False if there are too many.
    pub(crate) fn add(&mut self, fault: Fault, now: Instant) -> bool {
        let has_room = self.0.len() < RULES_MOST;
        if has_room {
            self.0.push(Rule { fault, since: now, seen: 0, failed: 0 });
        }
        has_room
    }

    /// Everything works again.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// How a command fails; `None` if it does not. Each rule that is about it counts it.
    pub(crate) fn fails(&mut self, ask: &Ask, now: impl FnOnce() -> Instant) -> Option<Status> {
        if self.0.is_empty() {
            return None;
        }
        let (now, mut fails) = (now(), false);
        for rule in &mut self.0 {
            if rule.fault.matches(ask) && !rule.is_over(now) {
                rule.seen += 1;
                if rule.seen >= rule.fault.nth {
                    rule.failed += 1;
                    fails = true;
                }
            }
        }
        let status =
            if matches!(ask, Ask::Read(..)) { Status::UnrecoveredRead } else { Status::WriteFault };
        fails.then_some(status)
    }

    pub(crate) fn report(&self, now: Instant) -> Vec<FaultReport> {
        let report = |rule: &Rule| FaultReport {
            rule: rule.fault.to_string(),
            seen: rule.seen,
            failed: rule.failed,
            is_over: rule.is_over(now),
        };
        self.0.iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use leyden_device::Lba;
    use leyden_image::WriteFlags;
    use leyden_sim::Rng;

    use super::*;
    use crate::clock::wall;

    fn write(lba: u64) -> Ask {
        Ask::Write(Lba(lba), vec![0; 4_096], WriteFlags::default())
    }

    fn failing(rule: &str, asks: &[Ask]) -> Vec<bool> {
        let mut faults = Faults::default();
        assert!(faults.add(rule.parse().unwrap(), wall()));
        asks.iter().map(|ask| faults.fails(ask, wall).is_some()).collect()
    }

    #[test]
    fn the_nth_fails_once_or_always_and_others_do_not() {
        let writes = [write(0), Ask::Flush, write(0), write(0), write(0)];
        assert_eq!(failing("write:nth=2", &writes), [false, false, true, false, false]);
        assert_eq!(failing("write:nth=2,times=2", &writes), [false, false, true, true, false]);
        assert_eq!(failing("write:nth=3,times=all", &writes), [false, false, false, true, true]);
        assert_eq!(failing("flush", &writes), [false, true, false, false, false]);
        assert_eq!(failing("any:times=all", &writes), [true; 5]);
    }

    #[test]
    fn a_range_is_what_commands_touch() {
        // Sectors 8 to 15.
        let all = [write(0), write(1), write(8), write(15), write(16), Ask::Flush];
        let hit = [false, true, true, true, false, false];
        assert_eq!(failing("write:lba=8+8,times=all", &all), hit);
        assert_eq!(failing("any:lba=8+8,times=all", &all), hit);
        let read = [Ask::Read(Lba(7), 1), Ask::Read(Lba(7), 2), Ask::Trim(Lba(8), 1)];
        assert_eq!(failing("read:lba=8", &read), [false, true, false]);
        assert_eq!(failing("trim:lba=8", &read), [false, false, true]);
    }

    #[test]
    fn a_time_ends_it() {
        let mut faults = Faults::default();
        let began = wall();
        faults.add("read:for=5s".parse().unwrap(), began);
        let read = Ask::Read(Lba(0), 1);
        let mut at = |seconds| faults.fails(&read, || began + Duration::from_secs(seconds));
        assert_eq!(at(0), Some(Status::UnrecoveredRead));
        assert_eq!(at(4), Some(Status::UnrecoveredRead));
        assert_eq!(at(5), None);
        let report = faults.report(began + Duration::from_secs(5));
        assert_eq!((report[0].seen, report[0].failed, report[0].is_over), (2, 2, true));
        assert_eq!(report[0].rule, "read:nth=1,times=all,for=5s");
    }

    #[test]
    fn what_is_no_rule_says_what_one_is() {
        for (text, word) in [
            ("writes", "write read, write"),
            ("write:nth=0", "from 1 on"),
            ("write:nth=x", "from 1 on"),
            ("write:lba=8-9", "FIRST+SECTORS"),
            ("write:often", "nth, times, lba or for"),
            ("flush:for=soon", "for:"),
        ] {
            let error = text.parse::<Fault>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn a_rule_reads_back() {
        let mut rng = Rng::new(1, "rules");
        for round in 0..2_000 {
            let mut number = || rng.next_u64() >> (round % 64);
            let fault = Fault {
                on: KINDS[number() as usize % KINDS.len()].1,
                nth: number().max(1),
                times: (number() % 2 == 0).then(|| number().max(1)),
                lba: (number() % 2 == 0).then(|| (number(), number().max(1))),
                for_ns: (number() % 2 == 0).then(|| (number() >> 4).max(1)),
            };
            assert_eq!(fault.to_string().parse(), Ok(fault), "{fault}");
        }
    }
}
