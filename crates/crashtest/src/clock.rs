//! The wall clock: for budgets and rates. No verdict depends on it, but for that of a check that hangs.

use std::time::Instant;

#[expect(
    clippy::disallowed_methods,
    reason = "a budget is of the wall's time; no state depends on it"
)]
pub(crate) fn wall() -> Instant {
    Instant::now()
}
