//! I/O errors that come and go: which commands of a drive fail, and for how long.
//!
//! A command that is made to fail never reaches the namespace: it changes nothing, and a FLUSH promises nothing. The text
//! of a rule is what `leyden fault` and `run.faults` take: `write`, `read:lba=2048+8,times=all`, `flush:nth=3,for=5s`.
//! **What doesn't live here**: flash that fails ([`leyden_nand`]'s faults), which a drive hides as long as it can.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use leyden_sim::Span;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Action, Payload, Status};

/// Commands of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// Reads.
    Read,
    /// Writes, zeroes, appends and copies.
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

/// The part of a command that a rule sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultTarget {
    /// Its kind; not [`FaultKind::Any`].
    pub kind: FaultKind,
    /// The sectors that it touches, and how many; of an append and of a change of a zone, the zone's first.
    pub range: Option<(u64, u64)>,
}

impl FaultTarget {
    /// The target of `action`; `None` if no rule is about it: hints, and reports of zones.
    pub(crate) fn of<P: Payload>(action: &Action<P>) -> Option<Self> {
        let (kind, range) = match action {
            Action::Read { lba, sectors, .. } => (FaultKind::Read, Some((lba.0, *sectors))),
            Action::Write { lba, sectors, .. } | Action::WriteZeroes { lba, sectors, .. } => {
                (FaultKind::Write, Some((lba.0, *sectors)))
            }
            Action::Copy { lba, ranges, .. } => {
                let sectors = ranges.iter().map(|range| range.sectors).sum();
                (FaultKind::Write, Some((lba.0, sectors)))
            }
            // An append has no place yet: its zone's first sector is what it names.
            Action::ZoneAppend { lba, .. } => (FaultKind::Write, Some((lba.0, 1))),
            Action::Flush { .. } => (FaultKind::Flush, None),
            Action::Trim { lba, sectors } => (FaultKind::Trim, Some((lba.0, *sectors))),
            Action::Zone { lba, .. } | Action::ZoneExtension { lba, .. } => {
                (FaultKind::Zone, Some((lba.0, 1)))
            }
            Action::WritePrepare { .. } | Action::ZoneReport { .. } => return None,
        };
        Some(Self { kind, range: range.map(|(first, count)| (first, u64::from(count))) })
    }
}

/// A rule: which commands fail.
///
/// ```
/// let rule: leyden_device::FaultRule = "write:nth=40,times=2".parse()?;
/// assert_eq!(rule.to_string(), "write:nth=40,times=2");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FaultRule {
    /// Of which kind.
    pub on: FaultKind,
    /// Those that touch these sectors only: the first, and how many.
    pub lba: Option<(u64, u64)>,
    /// From which of them on, counted from one.
    pub nth: u64,
    /// So many; all if there is no number.
    pub times: Option<u64>,
    /// Until so many nanoseconds have passed since the rule was given.
    pub for_ns: Option<u64>,
}

impl FaultRule {
    fn matches(&self, target: FaultTarget) -> bool {
        if self.on != target.kind && self.on != FaultKind::Any {
            return false;
        }
        let Some((first, count)) = self.lba else { return true };
        target.range.is_some_and(|(from, sectors)| {
            from < first.saturating_add(count) && first < from.saturating_add(sectors)
        })
    }
}

impl fmt::Display for FaultRule {
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

impl FromStr for FaultRule {
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

impl Serialize for FaultRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for FaultRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for FaultRule {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "FaultRule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^(read|write|flush|trim|zone|any)(:[a-z]+=[^,]+(,[a-z]+=[^,]+)*)?$",
            "examples": ["write:nth=40", "read:lba=2048+8,times=all", "flush:nth=3,for=5s"],
        })
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

#[derive(Clone, Debug)]
struct Given {
    rule: FaultRule,
    since_ns: u64,
    seen: u64,
    failed: u64,
}

impl Given {
    fn is_over(&self, now_ns: u64) -> bool {
        self.rule.times.is_some_and(|times| self.failed >= times)
            || self.rule.for_ns.is_some_and(|span| now_ns.saturating_sub(self.since_ns) >= span)
    }
}

/// The rules of a drive. Its clock is its caller's, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct FaultRules {
    given: Vec<Given>,
    write_faults: u64,
}

impl FaultRules {
    /// No drive has more rules.
    pub const MOST: usize = 64;

    /// Adds a rule. False if there are too many.
    #[must_use]
    pub fn add(&mut self, rule: FaultRule, now_ns: u64) -> bool {
        let has_room = self.given.len() < Self::MOST;
        if has_room {
            self.given.push(Given { rule, since_ns: now_ns, seen: 0, failed: 0 });
        }
        has_room
    }

    /// True if there is none.
    pub const fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Commands that were made to end with Write Fault: each counts once, however many rules are about it.
    pub const fn write_faults(&self) -> u64 {
        self.write_faults
    }

    /// Everything works again.
    pub fn clear(&mut self) {
        self.given.clear();
    }

    /// How a command fails; `None` if it does not. Each rule that is about it counts it.
    pub fn fails(&mut self, target: FaultTarget, now_ns: u64) -> Option<Status> {
        let mut fails = false;
        for given in &mut self.given {
            if given.rule.matches(target) && !given.is_over(now_ns) {
                given.seen += 1;
                if given.seen >= given.rule.nth {
                    given.failed += 1;
                    fails = true;
                }
            }
        }
        let is_read = target.kind == FaultKind::Read;
        self.write_faults += u64::from(fails && !is_read);
        fails.then_some(if is_read { Status::UnrecoveredRead } else { Status::WriteFault })
    }

    /// The counts of each rule, in the order in which they were added.
    pub fn report(&self, now_ns: u64) -> Vec<FaultReport> {
        let report = |given: &Given| FaultReport {
            rule: given.rule.to_string(),
            seen: given.seen,
            failed: given.failed,
            is_over: given.is_over(now_ns),
        };
        self.given.iter().map(report).collect()
    }
}

#[cfg(test)]
mod tests {
    use leyden_sim::Rng;

    use super::*;

    const FLUSH: FaultTarget = FaultTarget { kind: FaultKind::Flush, range: None };

    const fn on(kind: FaultKind, lba: u64, sectors: u64) -> FaultTarget {
        FaultTarget { kind, range: Some((lba, sectors)) }
    }

    const fn write(lba: u64) -> FaultTarget {
        on(FaultKind::Write, lba, 8)
    }

    fn failing(rule: &str, targets: &[FaultTarget]) -> Vec<bool> {
        let mut rules = FaultRules::default();
        assert!(rules.add(rule.parse().unwrap(), 0));
        targets.iter().map(|&target| rules.fails(target, 0).is_some()).collect()
    }

    #[test]
    fn the_nth_fails_once_or_always_and_others_do_not() {
        let writes = [write(0), FLUSH, write(0), write(0), write(0)];
        assert_eq!(failing("write:nth=2", &writes), [false, false, true, false, false]);
        assert_eq!(failing("write:nth=2,times=2", &writes), [false, false, true, true, false]);
        assert_eq!(failing("write:nth=3,times=all", &writes), [false, false, false, true, true]);
        assert_eq!(failing("flush", &writes), [false, true, false, false, false]);
        assert_eq!(failing("any:times=all", &writes), [true; 5]);
    }

    #[test]
    fn a_range_is_what_commands_touch() {
        // Sectors 8 to 15.
        let all = [write(0), write(1), write(8), write(15), write(16), FLUSH];
        let hit = [false, true, true, true, false, false];
        assert_eq!(failing("write:lba=8+8,times=all", &all), hit);
        assert_eq!(failing("any:lba=8+8,times=all", &all), hit);
        let read = [(7, 1), (7, 2)].map(|(lba, sectors)| on(FaultKind::Read, lba, sectors));
        let both = [read[0], read[1], on(FaultKind::Trim, 8, 1)];
        assert_eq!(failing("read:lba=8", &both), [false, true, false]);
        assert_eq!(failing("trim:lba=8", &both), [false, false, true]);
    }

    #[test]
    fn a_time_ends_it() {
        let mut rules = FaultRules::default();
        let (began, second) = (7, 1_000_000_000);
        assert!(rules.add("read:for=5s".parse().unwrap(), began));
        let mut at = |seconds| rules.fails(on(FaultKind::Read, 0, 1), began + seconds * second);
        assert_eq!(at(0), Some(Status::UnrecoveredRead));
        assert_eq!(at(4), Some(Status::UnrecoveredRead));
        assert_eq!(at(5), None);
        let report = rules.report(began + 5 * second);
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
            let error = text.parse::<FaultRule>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn a_rule_reads_back() {
        let mut rng = Rng::new(1, "rules");
        for round in 0..2_000 {
            let mut number = || rng.next_u64() >> (round % 64);
            let fault = FaultRule {
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
