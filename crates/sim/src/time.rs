//! Instants and spans of simulated time, in whole nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// An instant of simulated time: nanoseconds since the device was made.
///
/// ```
/// use leyden_sim::{Span, Time};
/// let t = Time::ZERO + Span::from_us(60);
/// assert_eq!(t.as_ns(), 60_000);
/// assert_eq!(t - Time::ZERO, Span::from_us(60));
/// ```
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// The start of every run.
    pub const ZERO: Self = Self(0);
    /// Later than anything that happens.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `ns` nanoseconds after the start.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }
    /// The earliest of times at which something happens, if anything does.
    #[inline]
    pub fn earliest<const N: usize>(times: [Option<Self>; N]) -> Option<Self> {
        let mut earliest: Option<Self> = None;
        for time in times {
            earliest = match (earliest, time) {
                (Some(one), Some(other)) => Some(one.min(other)),
                (one, other) => one.or(other),
            };
        }
        earliest
    }
    /// Nanoseconds since the start.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// The span since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// A length of simulated time, in nanoseconds. Configuration writes it with a unit: `"60 us"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }
    /// `us` microseconds.
    pub const fn from_us(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000_000)
    }
    /// In nanoseconds.
    pub const fn as_ns(self) -> u64 {
        self.0
    }
    /// In seconds, for reports only: the core never computes with floats.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// `self * n`, stopping at the largest span.
    #[must_use]
    pub const fn saturating_mul(self, n: u64) -> Self {
        Self(self.0.saturating_mul(n))
    }
}

impl Add<Span> for Time {
    type Output = Self;
    /// Saturates: an instant past the end of time is the end of time, which no run reaches.
    #[inline]
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}

impl Sub for Time {
    type Output = Span;
    /// # Panics
    /// If `other` is later than `self`: time ran backwards, a bug of ours.
    #[inline]
    fn sub(self, other: Self) -> Span {
        assert!(self.0 >= other.0, "time ran backwards: {self:?} - {other:?}");
        Span(self.0 - other.0)
    }
}

impl Add for Span {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_and_spans_add_up() {
        let t = Time::from_ns(5) + Span::from_us(1);
        assert_eq!(t.as_ns(), 1_005);
        assert_eq!(t - Time::from_ns(5), Span::from_ns(1_000));
        assert_eq!(Time::ZERO.since(t), Span::ZERO);
        assert_eq!(Time::MAX + Span::from_ns(1), Time::MAX);
    }

    #[test]
    #[should_panic(expected = "time ran backwards")]
    fn time_never_runs_backwards() {
        let _ = Time::ZERO - Time::from_ns(1);
    }
}
