//! The wall clock: for budgets and rates. No verdict depends on it, but for that of a check that hangs.

use std::time::Instant;

#[expect(
    clippy::disallowed_methods,
    reason = "a budget is of the wall's time; no state depends on it"
)]
pub(crate) fn wall() -> Instant {
    Instant::now()
}

#[expect(
    clippy::disallowed_methods,
    reason = "what files say of their last change; no state depends on it"
)]
pub(crate) fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}
