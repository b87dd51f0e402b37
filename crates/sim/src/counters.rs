//! Counters, and how much they grew between two looks.
//!
//! **What lives here**: [`counters!`](macro@crate::counters), which declares a layer's counters, and
//! [`Counted`], the difference of two copies. **What doesn't**: what is counted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Span;

/// Counters that grow from some beginning on.
pub trait Counted {
    /// The growth since `earlier`, an older copy of the same counters.
    #[must_use]
    fn since(&self, earlier: &Self) -> Self;
}

impl Counted for u64 {
    fn since(&self, earlier: &Self) -> Self {
        self - earlier
    }
}

impl Counted for Span {
    fn since(&self, earlier: &Self) -> Self {
        Self::from_ns(self.as_ns() - earlier.as_ns())
    }
}

/// Of elements that the earlier copy has not got, all is new.
impl Counted for Vec<Span> {
    fn since(&self, earlier: &Self) -> Self {
        let earlier = earlier.iter().copied().chain(std::iter::repeat(Span::ZERO));
        self.iter().zip(earlier).map(|(now, then)| now.since(&then)).collect()
    }
}

/// A value that does not add up over time, such as a peak: what it was "since" a moment is what it is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Level(u64);

impl Level {
    /// A level.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The value.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Raises it to `value` if that is higher: the level is a peak.
    #[inline]
    pub fn raise_to(&mut self, value: impl Into<u64>) {
        self.0 = self.0.max(value.into());
    }
}

impl Counted for Level {
    fn since(&self, _: &Self) -> Self {
        *self
    }
}

/// Declares a struct of counters. Each field is [`Counted`]: a `u64`, a [`Span`], a [`Level`], or another
/// such struct.
///
/// ```
/// use leyden_sim::{Counted, Level, counters};
///
/// counters! {
///     /// What a till counts.
///     #[derive(Clone, Copy, Debug, Default, PartialEq)]
///     pub struct TillStats {
///         /// Coins taken.
///         pub coins: u64,
///         /// The most customers in the queue at once.
///         pub queue_peak: Level,
///     }
/// }
/// let morning = TillStats { coins: 5, queue_peak: Level::new(3) };
/// let mut evening = TillStats { coins: 12, ..morning };
/// evening.queue_peak.raise_to(2_u32);
/// assert_eq!(evening.since(&morning), TillStats { coins: 7, queue_peak: Level::new(3) });
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $( $(#[$field_attribute:meta])* $field_visibility:vis $field:ident: $type:ty, )+
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $( $(#[$field_attribute])* $field_visibility $field: $type, )+
        }

        impl $crate::Counted for $name {
            fn since(&self, earlier: &Self) -> Self {
                Self { $( $field: $crate::Counted::since(&self.$field, &earlier.$field), )+ }
            }
        }
    };
}
