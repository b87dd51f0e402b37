//! Units of figures: the record's, and how a value in it is written for people.

use crate::format;

/// The unit in which a record has a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A number of things.
    Count,
    /// A plain number.
    Number,
    /// A ratio.
    Factor,
    /// A share of one.
    Share,
    /// Bytes.
    Bytes,
    /// MiB.
    Mib,
    /// MiB per second.
    MibPerS,
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
    /// Millijoules.
    Millijoules,
    /// Microfarads.
    Microfarads,
}

impl Unit {
    /// Its symbol; empty for a plain number.
    pub fn name(self) -> &'static str {
        match self {
            Self::Count | Self::Number | Self::Factor => "",
            Self::Share => "0..1",
            Self::Bytes => "B",
            Self::Mib => "MiB",
            Self::MibPerS => "MiB/s",
            Self::Micros => "µs",
            Self::Millis => "ms",
            Self::Seconds => "s",
            Self::Millijoules => "mJ",
            Self::Microfarads => "µF",
        }
    }

    /// A value, with the unit that suits it.
    pub fn text(self, value: f64) -> String {
        match self {
            Self::Count => format::count(value),
            Self::Number => format::number(value),
            Self::Factor => format::factor(value),
            Self::Share => format::percent(value),
            Self::Bytes => format::bytes(value.round()),
            Self::Mib => format::bytes((value * 1024.0 * 1024.0).round()),
            Self::MibPerS => format::mib_per_s(value),
            Self::Micros => format::latency(value),
            Self::Millis => format::seconds(value / 1e3),
            Self::Seconds => format::seconds(value),
            Self::Millijoules => format::energy(value),
            Self::Microfarads => format::capacitance(value),
        }
    }
}
