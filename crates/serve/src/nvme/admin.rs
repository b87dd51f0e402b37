//! Admin commands: the facts around them, and their ends.

use std::net::IpAddr;

use leyden_nvme::{Answer, Around};

use super::CutMode;
use super::house::Shared;
use super::io::Command;

/// Answers an admin command of `controller`, whose host has reached the server at `address`.
pub(super) fn carry_out(
    shared: &Shared,
    controller: u16,
    address: Option<(IpAddr, u16)>,
    command: Command,
) {
    let Command { sqe, data, replier, io: _ } = command;
    if shared.is_dark() && matches!(shared.cut, CutMode::Hang | CutMode::Dead) {
        return; // it never ends
    }
    let mut around = Around { now_ms: shared.now_ms(), address, ..Around::default() };
    if leyden_nvme::wants_health(&sqe) {
        around.health = shared.health(); // asks the drives' threads
    }
    let mut state = shared.lock();
    let answer = state.subsystem.admin(controller, &sqe, &data, &around);
    // Earlier events may answer a held request at once.
    state.tell();
    drop(state);
    match answer {
        Answer::Done { status, result, data } if status.is_success() => replier.data(data, result),
        Answer::Done { status, .. } => replier.end(status, 0),
        Answer::Held => {}
    }
}
