//! Quantities as people write them in a configuration: `"64 MiB"`, `"60 us"`, `"1200 MB/s"`, `"7 %"`.
//!
//! A bare number is refused: which unit was meant is exactly what goes wrong. What electricity is
//! measured in is in `electric`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

use crate::Span;

/// Why a quantity could not be read. Its message names the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnitError {
    /// Not `number unit` at all.
    #[error("`{text}` is not {what}: write a number and a unit, like \"{example}\"")]
    Malformed {
        /// The text that was given.
        text: String,
        /// The kind of value expected, with its article: "a size".
        what: &'static str,
        /// A value that would do.
        example: &'static str,
    },
    /// A number with a unit that this quantity does not have.
    #[error("unknown unit `{unit}` in `{text}`: expected one of {expected}")]
    UnknownUnit {
        /// The text that was given.
        text: String,
        /// The unit in it.
        unit: String,
        /// The units there are.
        expected: String,
    },
    /// Not a whole number of the smallest unit.
    #[error("`{text}` is not a whole number of {unit}; write it in a smaller unit, or round it")]
    NotWhole {
        /// The text that was given.
        text: String,
        /// The smallest unit.
        unit: &'static str,
    },
    /// More than the type holds.
    #[error("`{text}` is out of range for {what}")]
    OutOfRange {
        /// The text that was given.
        text: String,
        /// The kind of value expected.
        what: &'static str,
    },
}

/// One kind of quantity: its name, its units in ascending order, the first being 1.
struct Dimension {
    what: &'static str,
    example: &'static str,
    units: &'static [(&'static str, u64)],
    /// Other names that people write, and those above that they stand for.
    aliases: &'static [(&'static str, &'static str)],
    /// Capitals matter: `mW` is not `MW`.
    exact: bool,
}

impl Dimension {
    /// Reads `text` as a decimal number and a unit, exactly (no floating point).
    fn parse(&self, text: &str) -> Result<u64, UnitError> {
        let trimmed = text.trim();
        let split = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
        let (number, unit) = trimmed.split_at(split.unwrap_or(trimmed.len()));
        let unit = unit.trim();
        if number.is_empty() || unit.is_empty() {
            return Err(UnitError::Malformed {
                text: text.to_owned(),
                what: self.what,
                example: self.example,
            });
        }
        let is_it = |name: &str| name == unit || !self.exact && name.eq_ignore_ascii_case(unit);
        let alias =
            self.aliases.iter().find(|(name, _)| is_it(name)).map(|(_, stands_for)| stands_for);
        let is_it =
            |name: &str| alias.map_or_else(|| is_it(name), |stands_for| name == *stands_for);
        let Some(&(_, scale)) = self.units.iter().find(|(name, _)| is_it(name)) else {
            let names: Vec<_> = self.units.iter().map(|(name, _)| *name).collect();
            return Err(UnitError::UnknownUnit {
                text: text.to_owned(),
                unit: unit.to_owned(),
                expected: names.join(", "),
            });
        };
        scaled(number, scale).map_err(|failure| match failure {
            NotScaled::TooLarge => UnitError::OutOfRange { text: text.to_owned(), what: self.what },
            NotScaled::Garbled => UnitError::Malformed {
                text: text.to_owned(),
                what: self.what,
                example: self.example,
            },
            NotScaled::Fraction => {
                UnitError::NotWhole { text: text.to_owned(), unit: self.units[0].0 }
            }
        })
    }

    /// Writes `value` in the largest unit that divides it; if capitals matter, the units are
    /// decimal, and it is the largest unit that `value` holds.
    fn format(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.exact {
            return self.format_decimal(value, f);
        }
        let (name, scale) = self
            .units
            .iter()
            .rev()
            .find(|(_, scale)| value != 0 && value.is_multiple_of(*scale))
            .unwrap_or(&self.units[0]);
        write!(f, "{} {name}", value / scale)
    }

    /// Writes `value` exactly, with a fraction if need be.
    fn format_decimal(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let holds = |(_, scale): &&(&str, u64)| *scale <= value;
        let (name, scale) = self.units.iter().rev().find(holds).unwrap_or(&self.units[0]);
        let (whole, rest) = (value / scale, value % scale);
        if rest == 0 {
            return write!(f, "{whole} {name}");
        }
        let digits = scale.ilog10() as usize;
        write!(f, "{whole}.{} {name}", format!("{rest:0digits$}").trim_end_matches('0'))
    }
}

/// Why a number has no whole multiple.
enum NotScaled {
    Garbled,
    TooLarge,
    Fraction,
}

/// `number * scale`, where `number` is decimal digits with at most one point.
fn scaled(number: &str, scale: u64) -> Result<u64, NotScaled> {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let fraction = fraction.trim_end_matches('0');
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_digits(whole) || !is_digits(fraction) {
        return Err(NotScaled::Garbled);
    }
    if fraction.len() > 18 {
        return Err(NotScaled::Fraction);
    }
    let digits: u128 = format!("{whole}{fraction}").parse().map_err(|_| NotScaled::TooLarge)?;
    let scaled = digits.checked_mul(u128::from(scale)).ok_or(NotScaled::TooLarge)?;
    let denominator = 10_u128.pow(fraction.len() as u32);
    if scaled % denominator != 0 {
        return Err(NotScaled::Fraction);
    }
    u64::try_from(scaled / denominator).map_err(|_| NotScaled::TooLarge)
}

const SPAN: Dimension = Dimension {
    what: "a time",
    example: "60 us",
    units: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
    aliases: &[
        ("µs", "us"), // U+00B5, the micro sign
        ("μs", "us"), // U+03BC, the Greek letter
        ("usec", "us"),
        ("msec", "ms"),
        ("sec", "s"),
    ],
    exact: false,
};

const BYTES: Dimension = Dimension {
    what: "a size",
    example: "64 MiB",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("KiB", 1 << 10),
        ("MB", 1_000_000),
        ("MiB", 1 << 20),
        ("GB", 1_000_000_000),
        ("GiB", 1 << 30),
        ("TB", 1_000_000_000_000),
        ("TiB", 1 << 40),
    ],
    // As fio has it: a letter alone is a power of two.
    aliases: &[("k", "KiB"), ("M", "MiB"), ("G", "GiB"), ("T", "TiB")],
    exact: false,
};

const RATE: Dimension = Dimension {
    what: "a bandwidth",
    example: "1200 MB/s",
    units: &[
        ("B/s", 1),
        ("kB/s", 1_000),
        ("KiB/s", 1 << 10),
        ("MB/s", 1_000_000),
        ("MiB/s", 1 << 20),
        ("GB/s", 1_000_000_000),
        ("GiB/s", 1 << 30),
    ],
    // Transfers of the eight lines of a channel: a byte each.
    aliases: &[("MT/s", "MB/s"), ("GT/s", "GB/s")],
    exact: false,
};

const RATIO: Dimension = Dimension {
    what: "a share",
    example: "7 %",
    units: &[("ppm", 1), ("%", 10_000)],
    aliases: &[("percent", "%")],
    exact: false,
};

macro_rules! quantity {
    ($type:ident, $dimension:ident, $pattern:literal, $doc:literal, $get:expr, $make:expr) => {
        impl FromStr for $type {
            type Err = UnitError;
            fn from_str(text: &str) -> Result<Self, UnitError> {
                $dimension.parse(text).map($make)
            }
        }
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                $dimension.format($get(self), f)
            }
        }
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Text;
                impl de::Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        write!(f, "{} with its unit, like \"{}\"", $dimension.what, $dimension.example)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": $doc,
                               "examples": [$dimension.example] })
            }
        }
    };
}

mod electric;

pub use electric::{Capacitance, Energy, Power, Voltage};

/// A size in bytes. Configuration writes it with a unit: `"64 MiB"`, `"2 TB"`.
///
/// ```
/// use leyden_sim::Bytes;
/// assert_eq!("64 MiB".parse::<Bytes>().unwrap(), Bytes::new(64 << 20));
/// assert_eq!(Bytes::new(1536).to_string(), "1536 B");
/// assert!("64".parse::<Bytes>().unwrap_err().to_string().contains("unit"));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Bytes(u64);

impl Bytes {
    /// `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }
    /// As a number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A bandwidth in bytes per second: `"1200 MB/s"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct BytesPerSec(u64);

impl BytesPerSec {
    /// `rate` bytes per second.
    pub const fn new(rate: u64) -> Self {
        Self(rate)
    }
    /// As a number of bytes per second.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// How long `bytes` take at this rate, rounded up to a nanosecond.
    ///
    /// # Panics
    /// If the rate is zero; configurations refuse that.
    pub fn time_for(self, bytes: u64) -> Span {
        assert!(self.0 > 0, "a bandwidth of zero never finishes");
        let ns = (u128::from(bytes) * 1_000_000_000).div_ceil(u128::from(self.0));
        Span::from_ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// A share, in parts per million: `"7 %"`, `"0.5 %"`, `"250 ppm"`; a plain number in `0..=1000` is
/// read as a fraction (`0.07`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Ratio(u64);

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The whole.
    pub const ONE: Self = Self(1_000_000);

    /// `ppm` parts per million.
    pub const fn from_ppm(ppm: u64) -> Self {
        Self(ppm)
    }
    /// `percent` parts per hundred.
    pub const fn from_percent(percent: u64) -> Self {
        Self(percent * 10_000)
    }
    /// In parts per million.
    pub const fn as_ppm(self) -> u64 {
        self.0
    }
    /// As a fraction, for reports and generators; the core uses [`Ratio::of`].
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// This share of `whole`, rounded down.
    pub fn of(self, whole: u64) -> u64 {
        u64::try_from(u128::from(whole) * u128::from(self.0) / 1_000_000).unwrap_or(u64::MAX)
    }
    /// Reads a plain fraction, refusing what is no share: NaN, negative, absurd.
    fn from_fraction(fraction: f64) -> Option<Self> {
        // Written as a text first, so that 0.07 means 70000 ppm and not the nearest double below.
        (fraction.is_finite() && (0.0..=1000.0).contains(&fraction))
            .then(|| Self((fraction * 1e6).round() as u64))
    }
}

quantity!(
    Span,
    SPAN,
    r"^\s*[0-9._]+\s*(ns|us|µs|μs|usec|ms|msec|s|sec|min|h)\s*$",
    "A time with its unit.",
    |v: &Span| v.as_ns(),
    Span::from_ns
);
quantity!(
    Bytes,
    BYTES,
    r"^\s*[0-9._]+\s*(B|kB|KiB|MB|MiB|GB|GiB|TB|TiB|k|M|G|T)\s*$",
    "A size with its unit.",
    |v: &Bytes| v.0,
    Bytes
);
quantity!(
    BytesPerSec,
    RATE,
    r"^\s*[0-9._]+\s*(B|kB|KiB|MB|MiB|GB|GiB|MT|GT)/s\s*$",
    "A bandwidth with its unit.",
    |v: &BytesPerSec| v.0,
    BytesPerSec
);

impl FromStr for Ratio {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Self, UnitError> {
        match text.trim().parse::<f64>() {
            Ok(fraction) => Self::from_fraction(fraction)
                .ok_or_else(|| UnitError::OutOfRange { text: text.to_owned(), what: RATIO.what }),
            Err(_) => RATIO.parse(text).map(Self),
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 10_000, self.0 % 10_000);
        if rest == 0 {
            write!(f, "{whole} %")
        } else {
            write!(f, "{whole}.{} %", format!("{rest:04}").trim_end_matches('0'))
        }
    }
}

impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Share;
        impl de::Visitor<'_> for Share {
            type Value = Ratio;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share, like \"7 %\" or 0.07")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Ratio, E> {
                text.parse().map_err(E::custom)
            }
            fn visit_f64<E: de::Error>(self, fraction: f64) -> Result<Ratio, E> {
                Ratio::from_fraction(fraction).ok_or_else(|| {
                    E::custom(format!("`{fraction}` is not a share: write \"7 %\" or 0.07"))
                })
            }
            fn visit_u64<E: de::Error>(self, whole: u64) -> Result<Ratio, E> {
                self.visit_f64(whole as f64)
            }
            fn visit_i64<E: de::Error>(self, whole: i64) -> Result<Ratio, E> {
                self.visit_f64(whole as f64)
            }
        }
        deserializer.deserialize_any(Share)
    }
}

impl JsonSchema for Ratio {
    fn schema_name() -> Cow<'static, str> {
        "Ratio".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A share: a text with its unit, or a plain fraction.",
            "anyOf": [
                { "type": "string", "pattern": r"^\s*[0-9._]+\s*(%|ppm)\s*$" },
                { "type": "number", "minimum": 0, "maximum": 1000 }
            ],
            "examples": ["7 %", 0.07]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("60us".parse(), Ok(Span::from_us(60)));
        assert_eq!(" 0.7 ms ".parse(), Ok(Span::from_us(700)));
        assert_eq!("1.92 TB".parse(), Ok(Bytes::new(1_920_000_000_000)));
        assert_eq!("4 kib".parse(), Ok(Bytes::new(4096)));
        for micro in ["700 µs", "700 μs", "700usec", "0.7 msec", "0.700000 ms"] {
            assert_eq!(micro.parse(), Ok(Span::from_us(700)), "{micro}");
        }
        assert_eq!(
            ("64M".parse(), "64m".parse()),
            (Ok(Bytes::new(64 << 20)), Ok(Bytes::new(64 << 20)))
        );
        assert_eq!("800 MT/s".parse(), Ok(BytesPerSec::new(800_000_000)));
        let said = "8.2 GiB".parse::<Bytes>().unwrap_err().to_string();
        assert!(said.contains("not a whole number of B"), "{said}");
        assert_eq!("7 %".parse(), Ok(Ratio::from_percent(7)));
        assert_eq!("0.07".parse(), Ok(Ratio::from_percent(7)));
        assert_eq!("102.4 MB/s".parse::<BytesPerSec>().unwrap().time_for(4096), Span::from_us(40));
    }

    #[test]
    fn refuses_the_rest_and_names_the_remedy() {
        for bad in ["", "64", "MiB", "-1 MiB", "NaN B", "1e9 B", "0.3 B", "99999999999 TiB", "."] {
            assert!(bad.parse::<Bytes>().is_err(), "{bad}");
        }
        for bad in ["NaN", "-0.1", "inf", "x", "5 MiB", "1001"] {
            assert!(bad.parse::<Ratio>().is_err(), "{bad}");
        }
        let error = "60 uses".parse::<Span>().unwrap_err().to_string();
        assert!(error.contains("uses") && error.contains("us, ms"), "{error}");
    }

    #[test]
    fn writes_what_it_reads() {
        for text in ["60 us", "1 s", "0 ns", "90 min"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("7.25 %".parse::<Ratio>().unwrap().to_string(), "7.25 %");
        assert_eq!(Bytes::new(4096).to_string(), "4 KiB");
    }

    proptest::proptest! {
        #[test]
        fn round_trips(value: u64, ppm in 0_u64..1_000_000_000) {
            proptest::prop_assert_eq!(Bytes::new(value).to_string().parse(), Ok(Bytes::new(value)));
            proptest::prop_assert_eq!(Span::from_ns(value).to_string().parse(), Ok(Span::from_ns(value)));
            proptest::prop_assert_eq!(Ratio::from_ppm(ppm).to_string().parse(), Ok(Ratio::from_ppm(ppm)));
        }

        #[test]
        fn never_panics(text: String) {
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Span>();
            let _ = text.parse::<Ratio>();
            let _ = text.parse::<BytesPerSec>();
        }
    }
}
