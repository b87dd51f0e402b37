//! Points drawn from ranges: Sobol's sequence or a Latin hypercube.

use leyden_report::{Dimension, quantity};
use leyden_sim::Rng;
use serde::Deserialize;
use toml::{Table, Value};

use crate::error::SweepError;
use crate::settings::{flatten, text_of};

/// The most points of Sobol's sequence, and the most keys: more is beyond the tables of the library that has them.
const MOST_SOBOL: (u64, usize) = (65_536, 256);

/// `[sample]` of a plan.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Text {
    #[serde(default)]
    method: Method,
    points: u64,
    #[serde(default)]
    seed: u32,
    range: Table,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Method {
    /// Sobol's sequence, scrambled after Owen: more points keep the ones before them.
    #[default]
    Sobol,
    /// A Latin hypercube: each key has one value in each of as many equal parts as there are points.
    LatinHypercube,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeText {
    from: Value,
    to: Value,
    #[serde(default)]
    scale: Scale,
    #[serde(default)]
    step: Option<Value>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Scale {
    #[default]
    Linear,
    Log,
}

/// A key and where its values lie.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) key: String,
    pub(crate) dimension: Dimension,
    /// Its values are shares: written with a per cent sign, since some keys take no bare number.
    is_share: bool,
    from: f64,
    to: f64,
    scale: Scale,
    step: Option<f64>,
}

/// The sample of a plan.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    method: Method,
    pub(crate) points: u64,
    seed: u32,
    pub(crate) ranges: Vec<Range>,
    /// Of a Latin hypercube: for each key, the order of its parts.
    orders: Vec<Vec<u32>>,
}

impl Sample {
    pub(crate) fn new(plan: &str, text: &Text) -> Result<Self, SweepError> {
        let is_range = |table: &Table| table.contains_key("from") || table.contains_key("to");
        let found = flatten(&text.range, &|_, table| is_range(table)).into_iter();
        let ranges = found.map(|(key, value)| Range::new(plan, key, value));
        let ranges: Vec<Range> = ranges.collect::<Result<_, _>>()?;
        let wrong = |key: &str, problem: String, help: &str| {
            Err(SweepError::plan(format!("{plan}: `sample.{key}`"), problem, help))
        };
        if ranges.is_empty() {
            let help = "name keys: device.buffer.size = { from = \"1 MiB\", to = \"64 MiB\" }";
            return wrong("range", "no key has a range".to_owned(), help);
        }
        let most = match text.method {
            Method::Sobol if ranges.len() > MOST_SOBOL.1 => {
                let problem = format!("{} keys are more than {}", ranges.len(), MOST_SOBOL.1);
                return wrong("range", problem, "use method = \"latin_hypercube\"");
            }
            Method::Sobol => MOST_SOBOL.0,
            Method::LatinHypercube => 1_000_000,
        };
        if text.points == 0 || text.points > most {
            let problem = format!("{} points are not between 1 and {most}", text.points);
            return wrong("points", problem, "draw fewer, or take a grid");
        }
        let orders = match text.method {
            Method::Sobol => Vec::new(),
            Method::LatinHypercube => ranges
                .iter()
                .map(|range| shuffled(text.points as u32, text.seed, &range.key))
                .collect(),
        };
        Ok(Self { method: text.method, points: text.points, seed: text.seed, ranges, orders })
    }

    /// The value of each key at point `index`, as `--set` takes it.
    pub(crate) fn values(&self, index: u64) -> Vec<String> {
        let value = |(at, range): (usize, &Range)| range.at(self.unit(index, at, range));
        self.ranges.iter().enumerate().map(value).collect()
    }

    /// Where in its range a key's value lies: 0 to 1.
    fn unit(&self, index: u64, at: usize, range: &Range) -> f64 {
        match self.method {
            Method::Sobol => f64::from(sobol_burley::sample(index as u32, at as u32, self.seed)),
            Method::LatinHypercube => {
                let purpose = format!("sweep/{}/{index}", range.key);
                let within = Rng::new(self.seed.into(), &purpose).unit_f64();
                (f64::from(self.orders[at][index as usize]) + within) / self.points as f64
            }
        }
    }
}

/// The numbers below `count` in an order of chance (Fisher and Yates).
fn shuffled(count: u32, seed: u32, key: &str) -> Vec<u32> {
    let mut rng = Rng::new(seed.into(), &format!("sweep/{key}"));
    let mut order: Vec<u32> = (0..count).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    order
}

impl Range {
    fn new(plan: &str, key: String, value: Value) -> Result<Self, SweepError> {
        let place = format!("{plan}: `sample.range.{key}`");
        let help = "write { from = \"5 %\", to = \"28 %\" }, with scale = \"log\" or step = \"1 %\" \
                    if that is meant";
        let wrong = |problem: String| SweepError::plan(place.clone(), problem, help);
        let text: RangeText =
            value.try_into().map_err(|error: toml::de::Error| wrong(error.message().to_owned()))?;
        let number = |value: &Value| {
            let text = text_of(value);
            quantity(&text)
                .map(|(number, dimension)| (number, dimension, text.contains('%')))
                .ok_or_else(|| wrong(format!("`{text}` is no quantity")))
        };
        let (from, dimension, from_share) = number(&text.from)?;
        let (to, other, to_share) = number(&text.to)?;
        if dimension != other || from_share != to_share {
            return Err(wrong("its ends have different units".to_owned()));
        }
        if from >= to {
            return Err(wrong("it ends before it begins".to_owned()));
        }
        if text.scale == Scale::Log && from <= 0.0 {
            return Err(wrong("there is no logarithm of 0".to_owned()));
        }
        let step = text.step.as_ref().map(number).transpose()?;
        let step = match step {
            Some((step, unit, _)) if step > 0.0 && unit == dimension => Some(step),
            Some(_) => return Err(wrong("its step is no distance in its unit".to_owned())),
            None => None,
        };
        Ok(Self { key, dimension, is_share: from_share, from, to, scale: text.scale, step })
    }

    /// The value at `unit` of the way.
    fn at(&self, unit: f64) -> String {
        let value = match self.scale {
            Scale::Linear => self.from + unit * (self.to - self.from),
            Scale::Log => self.from * libm::pow(self.to / self.from, unit),
        };
        let value = match self.step {
            Some(step) => ((value / step).round() * step).clamp(self.from, self.to),
            None => value,
        };
        match self.dimension {
            Dimension::Bytes => format!("{} B", value.round()),
            Dimension::Seconds => format!("{} ns", (value * 1e9).round()),
            Dimension::Plain if self.is_share => format!("{:.4} %", value * 100.0),
            Dimension::Plain if self.step.is_some_and(|step| step.fract() == 0.0) => {
                format!("{}", value.round())
            }
            Dimension::Plain => format!("{value}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(method: &str, points: u64, range: &str) -> Sample {
        let text = format!("method = \"{method}\"\npoints = {points}\n[range]\n{range}");
        Sample::new("plan", &toml::from_str(&text).unwrap()).unwrap()
    }

    #[test]
    fn a_latin_hypercube_has_one_value_in_each_part() {
        let range = "a = { from = 0, to = 100 }\nb = { from = \"0 %\", to = \"100 %\" }";
        let sample = sample("latin_hypercube", 50, range);
        for key in 0..2 {
            let mut parts: Vec<u32> = (0..50)
                .map(|index| quantity(&sample.values(index)[key]).unwrap().0)
                .map(|value| if key == 0 { value / 2.0 } else { value * 50.0 })
                .map(|part| part.floor() as u32)
                .collect();
            parts.sort_unstable();
            assert_eq!(parts, (0..50).collect::<Vec<_>>());
        }
        assert_ne!(sample.orders[0], sample.orders[1]);
    }

    /// In each of 16 squares of a side there are as many of 256 points as there are squares to a side: a (0, 2)-sequence.
    #[test]
    fn sobol_fills_a_square_evenly() {
        let sample = sample("sobol", 256, "a = { from = 0, to = 1 }\nb = { from = 0, to = 1 }");
        let mut counts = [0; 256];
        for index in 0..256 {
            let values = sample.values(index);
            let part = |at: usize| (values[at].parse::<f64>().unwrap() * 16.0) as usize;
            counts[part(0) * 16 + part(1)] += 1;
        }
        assert_eq!(counts, [1; 256]);
    }

    #[test]
    fn values_are_within_their_range_and_on_its_steps() {
        let range = "a = { from = \"1 MiB\", to = \"64 MiB\", scale = \"log\", step = \"1 MiB\" }\n\
                     b = { from = 1, to = 9, step = 1 }";
        let sample = sample("sobol", 64, range);
        let values: Vec<Vec<String>> = (0..64).map(|index| sample.values(index)).collect();
        let small = values.iter().filter(|point| {
            let (bytes, _) = quantity(&point[0]).unwrap();
            assert!(bytes % f64::from(1 << 20) == 0.0 && bytes >= f64::from(1 << 20), "{bytes}");
            bytes < f64::from(8 << 20)
        });
        assert!((28..=36).contains(&small.count()), "half of the logarithms lie below 8 MiB");
        assert!(values.iter().all(|point| (1..=9).contains(&point[1].parse::<u32>().unwrap())));
    }

    #[test]
    fn impossible_ranges_are_refused() {
        for (text, problem) in [
            ("a = { from = 2, to = 1 }", "ends before"),
            ("a = { from = 0, to = 1, scale = \"log\" }", "logarithm"),
            ("a = { from = \"1 MiB\", to = \"1 s\" }", "different units"),
            ("a = { from = 1, to = 2, step = \"1 s\" }", "step"),
            ("a = { from = 1, to = 2, stp = 1 }", "unknown field `stp`"),
            ("a = { from = \"x\", to = 2 }", "no quantity"),
        ] {
            let text: Text = toml::from_str(&format!("points = 4\n[range]\n{text}")).unwrap();
            let error = Sample::new("plan", &text).unwrap_err().to_string();
            assert!(error.contains(problem), "{error}");
        }
    }
}
