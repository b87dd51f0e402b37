//! Every cell of the state machine, through commands (ZNS 1.1, 2.1.1.3 and 3.4.3).

use leyden_device::{Command, Status, ZoneAction, ZoneState};

use ZoneState as S;

use super::{CAPACITY, Drive, config};

/// The specification's row for a state: for each action the state after it, or the status. `None`
/// for states that only a fault makes.
type Row = (ZoneState, [Result<ZoneState, Status>; 8]);

const EMPTY: Result<ZoneState, Status> = Ok(ZoneState::Empty);
const IMPLICIT: Result<ZoneState, Status> = Ok(ZoneState::ImplicitlyOpen);
const EXPLICIT: Result<ZoneState, Status> = Ok(ZoneState::ExplicitlyOpen);
const CLOSED: Result<ZoneState, Status> = Ok(ZoneState::Closed);
const FULL: Result<ZoneState, Status> = Ok(ZoneState::Full);
const OFFLINE: Result<ZoneState, Status> = Ok(ZoneState::Offline);
const BAD: Result<ZoneState, Status> = Err(Status::ZoneInvalidTransition);

/// Write, append, Open, Close, Finish, Reset, Offline, Set Zone Descriptor Extension.
#[rustfmt::skip]
const ROWS: [Row; 7] = [
    (ZoneState::Empty,          [IMPLICIT, IMPLICIT, EXPLICIT, BAD, FULL, EMPTY, BAD, CLOSED]),
    (ZoneState::ImplicitlyOpen, [IMPLICIT, IMPLICIT, EXPLICIT, CLOSED, FULL, EMPTY, BAD, BAD]),
    (ZoneState::ExplicitlyOpen, [EXPLICIT, EXPLICIT, EXPLICIT, CLOSED, FULL, EMPTY, BAD, BAD]),
    (ZoneState::Closed,         [IMPLICIT, IMPLICIT, EXPLICIT, CLOSED, FULL, EMPTY, BAD, BAD]),
    (ZoneState::Full,           [Err(Status::ZoneFull), Err(Status::ZoneFull), BAD, BAD, FULL, EMPTY, BAD, BAD]),
    (ZoneState::ReadOnly,       [Err(Status::ZoneReadOnly), Err(Status::ZoneReadOnly), BAD, BAD, BAD, BAD, OFFLINE, BAD]),
    (ZoneState::Offline,        [Err(Status::ZoneOffline), Err(Status::ZoneOffline), BAD, BAD, BAD, BAD, OFFLINE, BAD]),
];

/// A drive whose zone 1 is in `state`.
fn drive_with(state: ZoneState) -> Drive {
    let mut drive = Drive::new(&config());
    let all = CAPACITY as u32;
    match state {
        ZoneState::Empty => {}
        ZoneState::ImplicitlyOpen => assert_eq!(drive.write(1, 3), Status::Success),
        ZoneState::ExplicitlyOpen => {
            assert_eq!(drive.act(ZoneAction::Open, 1), Status::Success);
            assert_eq!(drive.write(1, 3), Status::Success);
        }
        ZoneState::Closed => {
            assert_eq!(drive.write(1, 3), Status::Success);
            assert_eq!(drive.act(ZoneAction::Close, 1), Status::Success);
        }
        ZoneState::Full => assert_eq!(drive.write(1, all), Status::Success),
        ZoneState::ReadOnly => {
            assert_eq!(drive.write(1, 3), Status::Success);
            drive.ssd.fail_zone(leyden_device::ZoneId(1));
        }
        ZoneState::Offline => drive.ssd.fail_zone(leyden_device::ZoneId(1)),
    }
    assert_eq!(drive.zone(1).state, state);
    drive
}

/// The status of the action in column `at`.
fn act(drive: &mut Drive, at: usize) -> Status {
    let sent = [ZoneAction::Open, ZoneAction::Close, ZoneAction::Finish, ZoneAction::Reset];
    match at {
        0 => {
            // A zone that can't be written has no write pointer to tell.
            let wp = drive.wp(1).unwrap_or(0);
            let command = drive.write_at(1, wp, 1);
            drive.run(command).status
        }
        1 => drive.append(1, 1).status,
        6 => drive.act(ZoneAction::Offline, 1),
        7 => {
            let (lba, data) = (Drive::lba(1, 0), vec![7; 64].into());
            let action = leyden_device::Action::ZoneExtension { lba, data };
            drive.run(Command::from(action)).status
        }
        _ => drive.act(sent[at - 2], 1),
    }
}

#[test]
fn every_cell_is_as_specified() {
    for (state, row) in ROWS {
        for (at, expected) in row.into_iter().enumerate() {
            let mut drive = drive_with(state);
            let before = drive.zone(1);
            let status = act(&mut drive, at);
            let after = drive.zone(1);
            match expected {
                Ok(to) => {
                    assert_eq!(
                        (status, after.state),
                        (Status::Success, to),
                        "{state:?}, column {at}"
                    );
                }
                Err(why) => {
                    assert_eq!(status, why, "{state:?}, column {at}");
                    assert_eq!(after, before, "what is refused changes nothing");
                }
            }
            drive.settle();
        }
    }
}

/// A write of the last block makes the zone Full from every state in which it may be written.
#[test]
fn the_last_block_makes_a_zone_full() {
    for state in [S::Empty, S::ImplicitlyOpen, S::ExplicitlyOpen, S::Closed] {
        let mut drive = drive_with(state);
        let rest = CAPACITY - drive.wp(1).unwrap();
        assert_eq!(drive.write(1, rest as u32), Status::Success);
        assert_eq!(drive.zone(1).state, S::Full, "{state:?}");
        drive.settle();
    }
}

#[test]
fn select_all_acts_where_it_may_and_nowhere_else() {
    let mut drive = Drive::new(&config());
    drive.write(0, 2); // implicitly open
    drive.act(ZoneAction::Open, 1);
    drive.write(2, 2);
    drive.act(ZoneAction::Close, 2);
    drive.write(3, CAPACITY as u32);
    let states = |drive: &Drive| [0, 1, 2, 3, 4].map(|zone| drive.zone(zone).state);
    let all = |drive: &mut Drive, action| drive.run(Command::all_zones(action)).status;
    assert_eq!(all(&mut drive, ZoneAction::Open), Status::Success);
    assert_eq!(
        states(&drive),
        [S::ImplicitlyOpen, S::ExplicitlyOpen, S::ExplicitlyOpen, S::Full, S::Empty]
    );
    assert_eq!(all(&mut drive, ZoneAction::Close), Status::Success);
    assert_eq!(states(&drive), [S::Closed, S::Closed, S::Closed, S::Full, S::Empty]);
    assert_eq!(all(&mut drive, ZoneAction::Finish), Status::Success);
    assert_eq!(states(&drive), [S::Full, S::Full, S::Full, S::Full, S::Empty]);
    assert_eq!(all(&mut drive, ZoneAction::Reset), Status::Success);
    assert_eq!(states(&drive), [S::Empty; 5]);
    for action in [ZoneAction::SetExtension, ZoneAction::FlushZrwa] {
        assert_eq!(all(&mut drive, action), Status::InvalidField);
    }
    drive.settle();
}
