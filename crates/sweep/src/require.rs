//! Rules that the keys of a point keep: `require = ["device.buffer.size <= 64 MiB"]`.

use leyden_report::{Dimension, quantity};

use crate::error::SweepError;
use crate::settings::Varied;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
}

/// Longer signs first: `<=` begins with `<`.
const SIGNS: [(&str, Relation); 6] = [
    ("<=", Relation::LessOrEqual),
    (">=", Relation::GreaterOrEqual),
    ("==", Relation::Equal),
    ("!=", Relation::NotEqual),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

/// One side: a varied key, by its place among them, or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Side {
    Key(usize),
    Value(String),
}

/// A comparison that each point of a plan must satisfy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Require {
    left: Side,
    relation: Relation,
    right: Side,
}

impl Require {
    pub(crate) fn parse(plan: &str, text: &str, varied: &[Varied]) -> Result<Self, SweepError> {
        let keys: Vec<&str> = varied.iter().map(|varied| varied.key.as_str()).collect();
        let place = format!("{plan}: `require`");
        let help = "compare a varied key with another, or with a value: \
                    \"device.buffer.size <= 64 MiB\"";
        let found = SIGNS.iter().find_map(|(sign, relation)| {
            text.split_once(sign).map(|(left, right)| (left.trim(), *relation, right.trim()))
        });
        let Some((left, relation, right)) = found else {
            return Err(SweepError::plan(place, format!("\"{text}\" compares nothing"), help));
        };
        let side = |text: &str| match keys.iter().position(|key| *key == text) {
            Some(key) => Side::Key(key),
            None => Side::Value(text.to_owned()),
        };
        let (left, right) = (side(left), side(right));
        for (this, other) in [(&left, &right), (&right, &left)] {
            let Side::Value(value) = this else { continue };
            let quantity = quantity(value);
            let of_other = match other {
                Side::Key(key) => Some(varied[*key].dimension),
                Side::Value(_) => None,
            };
            let is_key = quantity.is_none() && value.contains('.');
            if is_key || of_other.is_none() {
                let problem = format!("`{value}` is no key that the plan varies");
                let help = match leyden_config::nearest(value, keys.iter().copied()) {
                    Some(near) => format!("the nearest one is `{near}`"),
                    None => format!("the plan varies {}", keys.join(", ")),
                };
                return Err(SweepError::plan(place, problem, help));
            }
            let fits = match (of_other.flatten(), quantity) {
                // A bare number stands for the unit of the other side.
                (Some(unit), Some((_, own))) => own == unit || own == Dimension::Plain,
                (Some(_), None) => false,
                (None, _) => matches!(relation, Relation::Equal | Relation::NotEqual),
            };
            if !fits {
                let problem = format!("\"{text}\" compares `{value}` with a value of another kind");
                return Err(SweepError::plan(place, problem, help));
            }
        }
        Ok(Self { left, relation, right })
    }

    /// Whether it holds of a point with these values. Quantities are compared as numbers, and names as texts, which are equal or
    /// not.
    pub(crate) fn holds(&self, values: &[String]) -> bool {
        let text = |side: &Side| match side {
            Side::Key(at) => values[*at].clone(),
            Side::Value(value) => value.clone(),
        };
        let (left, right) = (text(&self.left), text(&self.right));
        let order = match (quantity(&left), quantity(&right)) {
            (Some((left, _)), Some((right, _))) => left.partial_cmp(&right),
            _ if left == right => Some(std::cmp::Ordering::Equal),
            _ => None,
        };
        match self.relation {
            Relation::Less => order.is_some_and(std::cmp::Ordering::is_lt),
            Relation::LessOrEqual => order.is_some_and(std::cmp::Ordering::is_le),
            Relation::Greater => order.is_some_and(std::cmp::Ordering::is_gt),
            Relation::GreaterOrEqual => order.is_some_and(std::cmp::Ordering::is_ge),
            Relation::Equal => order.is_some_and(std::cmp::Ordering::is_eq),
            Relation::NotEqual => !order.is_some_and(std::cmp::Ordering::is_eq),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varied(values: [&str; 2]) -> Vec<Varied> {
        let of = |(key, value): (&str, &str)| Varied {
            key: key.to_owned(),
            dimension: quantity(value).map(|(_, dimension)| dimension),
        };
        ["a", "b"].into_iter().zip(values).map(of).collect()
    }

    fn holds(text: &str, values: [&str; 2]) -> bool {
        let require = Require::parse("plan", text, &varied(values)).unwrap();
        require.holds(&values.map(str::to_owned))
    }

    #[test]
    fn quantities_are_compared_in_their_units() {
        assert!(holds("a <= b", ["1024 KiB", "1 MiB"]) && !holds("a < b", ["1024 KiB", "1 MiB"]));
        assert!(holds("b > 2 ms", ["1", "2001 us"]) && !holds("a != 50 %", ["0.5", "1"]));
        assert!(holds("a == greedy", ["greedy", "1"]) && !holds("a == greedy", ["fifo", "1"]));
    }

    #[test]
    fn a_rule_that_compares_nothing_is_refused() {
        let refusal = |text: &str, values: [&str; 2]| {
            Require::parse("plan", text, &varied(values)).unwrap_err().to_string()
        };
        let sizes = ["1 MiB", "greedy"];
        assert!(refusal("a.c <= 3", sizes).contains("no key that the plan varies"));
        assert!(refusal("c <= 3", sizes).contains("no key that the plan varies"));
        assert!(refusal("a", sizes).contains("compares nothing"));
        for text in ["a <= 6 MiBB", "a <= 6 ms", "a >= large", "b < greedy"] {
            assert!(refusal(text, sizes).contains("another kind"), "{text}");
        }
        assert!(Require::parse("plan", "a <= device.nand.rad", &varied(sizes)).is_err());
        assert!(Require::parse("plan", "b != fifo", &varied(sizes)).is_ok());
    }
}
