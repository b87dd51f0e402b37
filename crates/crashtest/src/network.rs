//! A network for each worker that runs a cluster: several states are tried at once, and their members have the same ports.

#![expect(unsafe_code, reason = "the kernel takes the flags of an interface by address")]

use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

use nix::libc;
use nix::sched::{CloneFlags, unshare};

use crate::error::CrashError;

nix::ioctl_write_ptr_bad!(set_flags, libc::SIOCSIFFLAGS, libc::ifreq);

/// Gives this thread, and all that it starts from now on, a network with nothing but the loopback interface.
///
/// # Errors
/// If the kernel does not allow it.
pub(crate) fn have_own() -> Result<(), CrashError> {
    let lacking = |what: &str, error: std::io::Error| {
        CrashError::Lacking(format!(
            "{what}: {error}\n  help: crash tests of several drives need network namespaces (unshare --net)"
        ))
    };
    unshare(CloneFlags::CLONE_NEWNET)
        .map_err(|error| lacking("cannot have a network namespace", error.into()))?;
    up().map_err(|error| lacking("cannot start the loopback interface", error))
}

/// Starts the loopback interface: a new network has it, and it is down.
fn up() -> std::io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: zeroes are a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
    // SAFETY: the kernel reads the request.
    unsafe { set_flags(socket.as_raw_fd(), &raw const request) }?;
    Ok(())
}
