//! Rights of this process.

/// capabilities(7): its number.
const CAP_SYS_ADMIN: u32 = 21;

/// Whether this process may mount, and make namespaces, as it is. The root of a container often may not.
pub fn may_mount() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    has(&status, CAP_SYS_ADMIN)
}

/// Whether a process has a capability, by proc_pid_status(5).
fn has(status: &str, capability: u32) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let effective = effective.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    effective.is_some_and(|mask| mask >> capability & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The masks of root on a machine, of root in a container of Docker or Podman, and of a user.
    #[test]
    fn root_in_a_container_may_not_mount() {
        for (mask, may) in [
            ("000001ffffffffff", true),
            ("00000000a80425fb", false),
            ("00000000800405fb", false),
            ("0000000000000000", false),
        ] {
            assert_eq!(has(&format!("Name:\tx\nCapEff:\t{mask}\n"), CAP_SYS_ADMIN), may, "{mask}");
        }
        assert!(!has("", CAP_SYS_ADMIN));
    }
}
