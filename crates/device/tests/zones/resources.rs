//! Limits of open and active zones (ZNS 1.1, 2.1.1.4). The drive of these tests has 3 and 5.

use leyden_device::{Status, ZoneAction, ZoneState};

use super::{Drive, config};

#[test]
fn an_implicitly_open_zone_makes_room_for_another() {
    let mut drive = Drive::new(&config());
    for zone in 0..4 {
        assert_eq!(drive.write(zone, 1), Status::Success);
    }
    let states = [0, 1, 2, 3].map(|zone| drive.zone(zone).state);
    let open = ZoneState::ImplicitlyOpen;
    assert_eq!(states, [ZoneState::Closed, open, open, open]);
    assert_eq!((drive.ssd.zone_resources(), drive.ssd.zoned_stats().implicit_closes), ((3, 4), 1));
    drive.settle();
}

#[test]
fn explicitly_open_zones_are_never_closed_for_others() {
    let mut drive = Drive::new(&config());
    for zone in 0..3 {
        assert_eq!(drive.act(ZoneAction::Open, zone), Status::Success);
    }
    assert_eq!(drive.act(ZoneAction::Open, 3), Status::TooManyOpenZones);
    assert_eq!(drive.append(3, 1).status, Status::TooManyOpenZones);
    assert_eq!(drive.wp(3), Some(0));
    assert_eq!(drive.act(ZoneAction::Close, 0), Status::Success);
    assert_eq!(drive.append(3, 1).status, Status::Success);
}

#[test]
fn the_limit_of_active_zones_is_asked_first() {
    let mut drive = Drive::new(&config());
    for zone in 0..5 {
        assert_eq!(drive.write(zone, 1), Status::Success);
    }
    assert_eq!(drive.write(5, 1), Status::TooManyActiveZones);
    assert_eq!(drive.act(ZoneAction::Finish, 5), Status::Success, "that takes no resource");
    assert_eq!(drive.act(ZoneAction::Finish, 0), Status::Success);
    assert_eq!(drive.write(6, 1), Status::Success);
    assert_eq!(drive.ssd.zone_resources(), (3, 5));
    drive.settle();
}

#[test]
fn opening_all_needs_resources_for_all() {
    let mut drive = Drive::new(&config());
    for zone in 0..5 {
        drive.write(zone, 1);
        drive.act(ZoneAction::Close, zone);
    }
    let all = leyden_device::Command::all_zones(ZoneAction::Open);
    assert_eq!(drive.run(all).status, Status::TooManyOpenZones);
    assert_eq!(drive.ssd.zone_resources(), (0, 5), "nothing has changed");
}
