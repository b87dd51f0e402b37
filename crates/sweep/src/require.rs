//! Rules that the keys of a point keep: `require = ["device.buffer.size <= 64 MiB"]`.

use leyden_report::quantity;

use crate::error::SweepError;

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
    pub(crate) fn parse(plan: &str, text: &str, keys: &[&str]) -> Result<Self, SweepError> {
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
        if let (Side::Value(value), Side::Value(_)) = (&left, &right) {
            let problem = format!("`{value}` is no key that the plan varies");
            let help = match leyden_config::nearest(value, keys.iter().copied()) {
                Some(near) => format!("the nearest one is `{near}`"),
                None => format!("the plan varies {}", keys.join(", ")),
            };
            return Err(SweepError::plan(place, problem, help));
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

    fn holds(text: &str, values: [&str; 2]) -> bool {
        let require = Require::parse("plan", text, &["a", "b"]).unwrap();
        require.holds(&values.map(str::to_owned))
    }

    #[test]
    fn quantities_are_compared_in_their_units() {
        assert!(holds("a <= b", ["1024 KiB", "1 MiB"]) && !holds("a < b", ["1024 KiB", "1 MiB"]));
        assert!(holds("b > 2 ms", ["1", "2001 us"]) && !holds("a != 50 %", ["0.5", "1"]));
        assert!(holds("a == greedy", ["greedy", "1"]) && !holds("a >= greedy", ["fifo", "1"]));
    }

    #[test]
    fn a_key_that_is_not_varied_is_refused_with_the_nearest_one() {
        let error = Require::parse("plan", "device.bufer <= 3", &["device.buffer"]).unwrap_err();
        assert!(error.to_string().contains("nearest one is `device.buffer`"), "{error}");
        assert!(Require::parse("plan", "a", &["a"]).is_err());
    }
}
