//! Features off, policies the first, numbers smaller: of whatever options there are.
//!
//! Options are walked as the data that they are written as, beside the same run with every feature off
//! ([`Run::plain`]). So an option is shrunk because it is an option.

use serde_json::Value;

use super::Shrinking;
use crate::Outcome;
use crate::subject::Run;

/// Fields that distinguish runs and rounds, or that shrinking has steps of its own for.
const LEFT_ALONE: [&str; 3] = ["seed", "number", "rounds"];

/// Bytes of each unit that sizes are written in.
const UNITS: [(&str, u64); 5] =
    [("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];

impl<R: Run, F: FnMut(&R) -> Outcome> Shrinking<'_, R, F> {
    /// Turns off what is not needed.
    pub(super) fn features(&mut self) {
        for change in R::reductions() {
            self.try_change(change);
        }
        let plain = value_of(&self.best.options.plain());
        self.reduce("", Some(&plain));
    }

    /// Reduces the value at `path`; `plain` is that of a plain run.
    fn reduce(&mut self, path: &str, plain: Option<&Value>) {
        let Some(here) = value_of(&self.best.options).pointer(path).cloned() else { return };
        match &here {
            Value::Object(fields) => {
                // Whether it is there at all, or another policy.
                let is_whole = fields.contains_key("policy") || plain.is_none_or(Value::is_null);
                let wanted = plain.unwrap_or(&Value::Null);
                if is_whole && here != *wanted && self.try_value(path, wanted.clone()) {
                    return;
                }
                for key in fields.keys().filter(|key| !LEFT_ALONE.contains(&key.as_str())) {
                    let plain = plain.and_then(|plain| plain.get(key));
                    self.reduce(&format!("{path}/{key}"), plain);
                }
            }
            Value::Array(items) => self.reduce_array(path, items, plain),
            Value::Number(number) => {
                if let Some(number) = number.as_u64() {
                    self.reduce_number(path, number, plain.and_then(Value::as_u64));
                }
            }
            Value::Bool(true) if plain.is_none_or(|plain| *plain == Value::Bool(false)) => {
                self.try_value(path, Value::Bool(false));
            }
            Value::String(text) => self.reduce_text(path, text, plain.and_then(Value::as_str)),
            Value::Bool(_) | Value::Null => {}
        }
    }

    /// Leaves out items, from the last one on; and reduces those that stay.
    fn reduce_array(&mut self, path: &str, items: &[Value], plain: Option<&Value>) {
        if plain.is_some_and(Value::is_array) && !items.is_empty() {
            let nothing = Value::Array(Vec::new());
            if self.try_value(path, nothing) {
                return;
            }
        }
        let mut kept = items.to_vec();
        for at in (0..items.len()).rev() {
            let mut fewer = kept.clone();
            fewer.remove(at);
            if self.try_value(path, Value::Array(fewer.clone())) {
                kept = fewer;
            }
        }
        for at in 0..kept.len() {
            self.reduce(&format!("{path}/{at}"), None);
        }
    }

    /// The plain number, if it is smaller; else ever smaller ones.
    fn reduce_number(&mut self, path: &str, number: u64, plain: Option<u64>) {
        let least = plain.filter(|&plain| plain < number);
        if least.is_some_and(|plain| self.try_value(path, plain.into())) {
            return;
        }
        let mut number = number;
        while number > 1 && self.try_value(path, number.div_ceil(2).into()) {
            number = number.div_ceil(2);
        }
        if number > 1 {
            self.try_value(path, (number - 1).into());
        }
    }

    /// The plain text, unless it is a larger size; sizes and shares are halved as long as that helps.
    fn reduce_text(&mut self, path: &str, text: &str, plain: Option<&str>) {
        let larger = |of: fn(&str) -> Option<u64>| {
            plain.and_then(of).zip(of(text)).is_some_and(|(plain, here)| plain > here)
        };
        let is_larger = larger(bytes) || larger(ppm);
        let other = plain.filter(|&plain| plain != text && !is_larger);
        if other.is_some_and(|plain| self.try_value(path, plain.into())) {
            return;
        }
        if let Some(mut size) = bytes(text) {
            while size > 1 && self.try_value(path, format!("{} B", size / 2).into()) {
                size /= 2;
            }
        }
        if let Some(mut share) = ppm(text).map(|ppm| ppm / 10_000) {
            if self.try_value(path, "0 %".into()) {
                return;
            }
            while share > 1 && self.try_value(path, format!("{} %", share / 2).into()) {
                share /= 2;
            }
        }
    }

    /// Takes `new` at `path` if there are such options and they still fail in the same way.
    fn try_value(&mut self, path: &str, new: Value) -> bool {
        let mut value = value_of(&self.best.options);
        match value.pointer_mut(path) {
            Some(here) if *here != new => *here = new,
            _ => return false,
        }
        let Ok(options) = serde_json::from_value::<R>(value) else { return false };
        options.checked().is_ok() && self.try_change(|best| *best = options)
    }
}

fn value_of<R: Run>(options: &R) -> Value {
    serde_json::to_value(options).expect("options are plain data")
}

/// A size, as it is written.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let (_, each) = UNITS.iter().find(|(name, _)| *name == unit)?;
    number.parse::<u64>().ok()?.checked_mul(*each)
}

/// A share, as it is written, in millionths.
fn ppm(text: &str) -> Option<u64> {
    let number = text.strip_suffix(" %")?;
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let part = format!("{part:0<4}");
    Some(whole.parse::<u64>().ok()? * 10_000 + part.get(..4)?.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use leyden_nand::FaultConfig;
    use leyden_sim::Ratio;

    use super::*;
    use crate::shrink::shrink;
    use crate::zoned::ZonedOptions;
    use crate::zoned_block::ZonedBlockOptions;
    use crate::{Coverage, Failure, Kind, Tally};

    fn fails(fails: bool) -> Outcome {
        let failure = Failure { kind: Kind::Zone, cuts: 3, message: "it does".to_owned() };
        let (tally, coverage) = (Tally::default(), Coverage::default());
        Outcome { tally, digest: 0, failure: fails.then_some(failure), coverage }
    }

    #[test]
    fn what_a_zoned_run_does_not_need_is_left_out() {
        let attempt = |it: &ZonedOptions| fails(it.commands > 2 && it.cuts >= 3);
        let small = shrink(&ZonedOptions::draw(7), 2_000, attempt).unwrap();
        let it = small.options;
        assert_eq!((it.commands, it.cuts, it.queue_depth, it.largest), (3, 3, 1, 1));
        assert_eq!(
            (it.zones, it.plp, it.again, it.aimed),
            (1, Ratio::ZERO, Ratio::ZERO, Ratio::ZERO)
        );
        assert_eq!(it.device.nand.faults, FaultConfig::default());
        assert!(small.attempts < 500 && it.checked().is_ok(), "{}", small.attempts);
        assert_eq!(shrink(&it, 3, |_| fails(false)), None);
    }

    #[test]
    fn what_a_run_on_two_drives_does_not_need_is_left_out() {
        let attempt = |it: &ZonedBlockOptions| {
            fails(it.run.rounds.iter().map(crate::Round::kept).sum::<u32>() > 4)
        };
        let small = shrink(&ZonedBlockOptions::draw(3), 4_000, attempt).unwrap().options;
        let kept: u32 = small.run.rounds.iter().map(crate::Round::kept).sum();
        assert_eq!((kept, small.run.rounds.len(), small.journal_moves), (5, 1, 0));
        assert_eq!((small.run.work.queue_depth, small.run.work.fill), (1, Ratio::ZERO));
        assert_eq!(small.layer.victim, leyden_host::zoned_block::victim::ReclaimConfig::default());
    }

    #[test]
    fn sizes_and_shares_are_read() {
        assert_eq!((bytes("12 KiB"), bytes("7 B"), bytes("7 ms")), (Some(12 << 10), Some(7), None));
        assert_eq!((ppm("68 %"), ppm("1.25 %"), ppm("1 B")), (Some(680_000), Some(12_500), None));
    }
}
