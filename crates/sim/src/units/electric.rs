//! Capacitance, voltage, power and energy: `"2200 uF"`, `"12 V"`, `"2.5 W"`, `"120 mJ"`.
//!
//! The smallest units are chosen such that a milliwatt for a nanosecond is a picojoule: sums of
//! programs and base power are exact.

use std::borrow::Cow;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::{Dimension, UnitError};
use crate::Span;

const CAPACITANCE: Dimension = Dimension {
    what: "a capacitance",
    example: "2200 uF",
    units: &[("nF", 1), ("\u{b5}F", 1_000), ("uF", 1_000), ("mF", 1_000_000), ("F", 1_000_000_000)],
    aliases: &[],
    exact: true,
};

const VOLTAGE: Dimension = Dimension {
    what: "a voltage",
    example: "12 V",
    units: &[("mV", 1), ("V", 1_000)],
    aliases: &[],
    exact: true,
};

const POWER: Dimension = Dimension {
    what: "a power",
    example: "2.5 W",
    units: &[("mW", 1), ("W", 1_000)],
    aliases: &[],
    exact: true,
};

const ENERGY: Dimension = Dimension {
    what: "an energy",
    example: "120 mJ",
    units: &[
        ("pJ", 1),
        ("nJ", 1_000),
        ("\u{b5}J", 1_000_000),
        ("uJ", 1_000_000),
        ("mJ", 1_000_000_000),
        ("J", 1_000_000_000_000),
    ],
    aliases: &[],
    exact: true,
};

/// A capacitance, in nanofarads: `"2200 uF"`, `"3.3 mF"`.
///
/// ```
/// use leyden_sim::Capacitance;
/// assert_eq!("3.3 mF".parse(), Ok(Capacitance::from_uf(3_300)));
/// assert_eq!(Capacitance::from_nf(4_400).to_string(), "4.4 uF");
/// assert!("3 MF".parse::<Capacitance>().is_err(), "mega is not milli");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Capacitance(u64);

impl Capacitance {
    /// `nf` nanofarads.
    pub const fn from_nf(nf: u64) -> Self {
        Self(nf)
    }
    /// `uf` microfarads.
    pub const fn from_uf(uf: u64) -> Self {
        Self(uf * 1_000)
    }
    /// In nanofarads.
    pub const fn as_nf(self) -> u64 {
        self.0
    }
    /// In microfarads, for reports.
    pub fn as_uf_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// `n` of these in parallel, stopping at the largest.
    #[must_use]
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
    /// The difference to `other`; zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// A voltage, in millivolts: `"12 V"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Voltage(u64);

impl Voltage {
    /// `mv` millivolts.
    pub const fn from_mv(mv: u64) -> Self {
        Self(mv)
    }
    /// In millivolts.
    pub const fn as_mv(self) -> u64 {
        self.0
    }
}

/// A power, in milliwatts: `"2.5 W"`.
///
/// ```
/// use leyden_sim::{Energy, Power, Span};
/// let power: Power = "2.5 W".parse().unwrap();
/// assert_eq!(power.during(Span::from_ms(4)), "10 mJ".parse().unwrap());
/// assert_eq!(power.lasts(Energy::from_uj(10_000)), Span::from_ms(4));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Power(u64);

impl Power {
    /// None at all.
    pub const ZERO: Self = Self(0);

    /// `mw` milliwatts.
    pub const fn from_mw(mw: u64) -> Self {
        Self(mw)
    }
    /// In milliwatts.
    pub const fn as_mw(self) -> u64 {
        self.0
    }
    /// The energy that this power takes in `span`: exact, stopping at the largest energy.
    pub const fn during(self, span: Span) -> Energy {
        Energy(self.0.saturating_mul(span.as_ns()))
    }
    /// How long `energy` lasts at this power, rounded down; without end for a power of zero.
    pub const fn lasts(self, energy: Energy) -> Span {
        match energy.0.checked_div(self.0) {
            Some(ns) => Span::from_ns(ns),
            None => Span::from_ns(u64::MAX),
        }
    }
    /// How long this power takes to bring `energy`, rounded up; without end for a power of zero.
    pub const fn time_to_bring(self, energy: Energy) -> Span {
        if self.0 == 0 {
            return Span::from_ns(u64::MAX);
        }
        Span::from_ns(energy.0.div_ceil(self.0))
    }
}

/// An energy, in picojoules: `"120 mJ"`. Sums stop at the largest, 18 MJ.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Energy(u64);

impl Energy {
    /// None at all.
    pub const ZERO: Self = Self(0);
    /// More than any bank holds.
    pub const MAX: Self = Self(u64::MAX);

    /// `pj` picojoules.
    pub const fn from_pj(pj: u64) -> Self {
        Self(pj)
    }
    /// `nj` nanojoules.
    pub const fn from_nj(nj: u64) -> Self {
        Self(nj * 1_000)
    }
    /// `uj` microjoules.
    pub const fn from_uj(uj: u64) -> Self {
        Self(uj * 1_000_000)
    }
    /// In picojoules.
    pub const fn as_pj(self) -> u64 {
        self.0
    }
    /// In whole nanojoules, rounded down.
    pub const fn as_nj(self) -> u64 {
        self.0 / 1_000
    }
    /// In joules, for reports only: the core never computes with floats.
    pub fn as_joules_f64(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// `self * n`, stopping at the largest energy.
    #[must_use]
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
    /// The difference to `other`; zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Add for Energy {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Energy {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Energy {
    fn sum<I: Iterator<Item = Self>>(energies: I) -> Self {
        energies.fold(Self::ZERO, Add::add)
    }
}

quantity!(
    Capacitance,
    CAPACITANCE,
    r"^\s*[0-9._]+\s*(nF|µF|uF|mF|F)\s*$",
    "A capacitance with its unit.",
    |v: &Capacitance| v.0,
    Capacitance
);
quantity!(
    Voltage,
    VOLTAGE,
    r"^\s*[0-9._]+\s*(mV|V)\s*$",
    "A voltage with its unit.",
    |v: &Voltage| v.0,
    Voltage
);
quantity!(
    Power,
    POWER,
    r"^\s*[0-9._]+\s*(mW|W)\s*$",
    "A power with its unit.",
    |v: &Power| v.0,
    Power
);
quantity!(
    Energy,
    ENERGY,
    r"^\s*[0-9._]+\s*(pJ|nJ|µJ|uJ|mJ|J)\s*$",
    "An energy with its unit.",
    |v: &Energy| v.0,
    Energy
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_people_write() {
        assert_eq!("2200 uF".parse(), Ok(Capacitance::from_uf(2_200)));
        assert_eq!("0.47µF".parse(), Ok(Capacitance::from_nf(470)));
        assert_eq!("5.5 V".parse(), Ok(Voltage::from_mv(5_500)));
        assert_eq!("2.5 W".parse(), Ok(Power::from_mw(2_500)));
        assert_eq!("57.75 uJ".parse(), Ok(Energy::from_nj(57_750)));
    }

    #[test]
    fn refuses_the_rest_and_names_the_remedy() {
        for bad in ["", "12", "V", "-1 V", "NaN V", "1e3 V", "0.1 mV", "12 MV", "12 W", "12 v"] {
            assert!(bad.parse::<Voltage>().is_err(), "{bad}");
        }
        for bad in ["99999999999 F", "0.5 nF", "3 MF", "inf F", "1 uV"] {
            assert!(bad.parse::<Capacitance>().is_err(), "{bad}");
        }
        let error = "5 MW".parse::<Power>().unwrap_err().to_string();
        assert!(error.contains("MW") && error.contains("mW, W"), "{error}");
    }

    #[test]
    fn power_and_energy_convert_exactly() {
        assert_eq!(Power::from_mw(1).during(Span::from_ns(1)), Energy::from_pj(1));
        assert_eq!(Power::from_mw(3).lasts(Energy::from_pj(10)), Span::from_ns(3));
        assert_eq!(Power::from_mw(3).time_to_bring(Energy::from_pj(10)), Span::from_ns(4));
        assert_eq!(Power::ZERO.lasts(Energy::from_pj(10)), Span::from_ns(u64::MAX));
        assert_eq!(Power::ZERO.time_to_bring(Energy::ZERO), Span::from_ns(u64::MAX));
        assert_eq!(Power::from_mw(u64::MAX).during(Span::from_ns(2)), Energy::MAX);
    }

    #[test]
    fn writes_the_largest_unit() {
        assert_eq!(Voltage::from_mv(5_500).to_string(), "5.5 V");
        assert_eq!(Power::from_mw(165).to_string(), "165 mW");
        assert_eq!(Energy::from_pj(1_000_000_000_070).to_string(), "1.00000000007 J");
        assert_eq!(Capacitance::default().to_string(), "0 nF");
    }

    proptest::proptest! {
        #[test]
        fn round_trips(value: u64) {
            let energy = Energy::from_pj(value);
            proptest::prop_assert_eq!(energy.to_string().parse(), Ok(energy));
            let capacitance = Capacitance::from_nf(value);
            proptest::prop_assert_eq!(capacitance.to_string().parse(), Ok(capacitance));
        }
    }
}
