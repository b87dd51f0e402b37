//! The version, commit and profile of this build; `build.rs` finds them.

/// The commit, with `+` if files differed from it; empty if it is not known.
pub(crate) const COMMIT: &str = env!("LEYDEN_COMMIT");
/// The profile of the build: `try`, `release`, `dev`, or what `./release` names. Printed beside every speed.
pub(crate) const PROFILE: &str = env!("LEYDEN_PROFILE");
/// The version, with commit and profile in parentheses.
pub(crate) const VERSION: &str = env!("LEYDEN_VERSION");

/// The build by which results of sweeps are compared: the version and the commit, in every profile
/// the same.
pub(crate) fn build() -> String {
    let version = env!("CARGO_PKG_VERSION");
    if COMMIT.is_empty() { version.to_owned() } else { format!("{version} ({COMMIT})") }
}
