//! What this program is a build of; `build.rs` finds it out.

/// The commit, with `+` if files differed from it; empty if it is not known.
pub(crate) const COMMIT: &str = env!("LEYDEN_COMMIT");
/// The version, and the commit in parentheses.
pub(crate) const VERSION: &str = env!("LEYDEN_VERSION");
