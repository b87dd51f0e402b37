//! The energy that is left during a dump.

use leyden_sim::{Energy, Power, Span};

/// A budget that runs down from a cut on. The controller draws base power until the last operation
/// that it has started has ended, and starts none that it could not finish.
///
/// All times are since the cut.
///
/// ```
/// use leyden_power::Budget;
/// use leyden_sim::{Energy, Power, Span};
/// // 1 mJ, and 1 W of base power: 500 us and 400 uJ of programs leave 100 uJ.
/// let mut budget = Budget::new(Energy::from_uj(1_000), Power::from_mw(1_000));
/// assert!(budget.commit(Span::from_us(500), Energy::from_uj(400)));
/// assert_eq!(budget.left(), Energy::from_uj(100));
/// assert!(!budget.can_start(Span::from_us(600), Energy::from_uj(1)));
/// assert!(budget.can_start(Span::from_us(500), Energy::from_uj(100)), "base power is paid once");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    energy: Energy,
    base: Power,
    committed: Energy,
    latest_end: Span,
}

impl Budget {
    /// A full bank of `energy`, and a controller that draws `base`.
    pub const fn new(energy: Energy, base: Power) -> Self {
        Self { energy, base, committed: Energy::ZERO, latest_end: Span::ZERO }
    }

    /// Whether an operation that ends at `end` and takes `energy` itself is sure to end.
    pub fn can_start(&self, end: Span, energy: Energy) -> bool {
        let end = end.max(self.latest_end);
        self.committed + energy + self.base.during(end) <= self.energy
    }

    /// Starts an operation if it is sure to end; false, and nothing changed, if it isn't.
    #[must_use]
    pub fn commit(&mut self, end: Span, energy: Energy) -> bool {
        let can = self.can_start(end, energy);
        if can {
            self.committed += energy;
            self.latest_end = self.latest_end.max(end);
        }
        can
    }

    /// When the last operation started ends.
    pub const fn latest_end(&self) -> Span {
        self.latest_end
    }

    /// The energy of everything started: the operations, and base power until the last ends.
    pub fn used(&self) -> Energy {
        self.used_until(self.latest_end)
    }

    /// The energy drawn by `end` if the controller stays on until then: everything started, and
    /// base power.
    pub fn used_until(&self, end: Span) -> Energy {
        self.committed + self.base.during(end)
    }

    /// The energy left when everything started has ended.
    pub fn left(&self) -> Energy {
        self.energy.saturating_sub(self.used())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_exact_to_the_picojoule() {
        // 10 ns at 3 mW are 30 pJ.
        let mut budget = Budget::new(Energy::from_pj(100), Power::from_mw(3));
        assert!(!budget.can_start(Span::from_ns(10), Energy::from_pj(71)));
        assert!(budget.commit(Span::from_ns(10), Energy::from_pj(70)));
        assert_eq!((budget.used(), budget.left()), (Energy::from_pj(100), Energy::ZERO));
        assert!(!budget.commit(Span::from_ns(11), Energy::ZERO));
        assert_eq!(budget.latest_end(), Span::from_ns(10), "what does not fit changes nothing");
        assert_eq!(budget.used_until(Span::from_ns(20)), Energy::from_pj(130));
    }

    #[test]
    fn an_earlier_end_costs_no_base_power() {
        let mut budget = Budget::new(Energy::from_pj(100), Power::from_mw(3));
        assert!(budget.commit(Span::from_ns(20), Energy::from_pj(10)));
        assert!(budget.commit(Span::from_ns(5), Energy::from_pj(30)));
        assert_eq!(budget.left(), Energy::ZERO);
    }

    #[test]
    fn no_sum_overflows_into_a_yes() {
        let mut budget = Budget::new(Energy::from_uj(1), Power::from_mw(u64::MAX));
        assert!(!budget.commit(Span::from_ns(u64::MAX), Energy::MAX));
        assert!(budget.commit(Span::ZERO, Energy::from_uj(1)));
    }
}
