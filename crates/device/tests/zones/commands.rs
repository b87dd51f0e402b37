//! Reads, writes, appends and reports, and the exact status of each misuse.

use leyden_buffer::Region;
use leyden_device::{
    Action, BlockDevice, Command, Lba, Op, Ssd, Stamp, Status, ZoneAction, ZoneFilter, ZoneState,
};

use super::{BLOCK, CAPACITY, Drive, SIZE, config, selective};

#[test]
fn what_is_written_reads_back_from_the_buffer_and_from_flash() {
    for mut drive in [Drive::new(&config()), Drive::new(&selective())] {
        assert_eq!(drive.write(0, 5), Status::Success);
        assert_eq!(drive.append(0, 4).appended(), Some(Drive::lba(0, 5)));
        let expected = [1, 1, 1, 1, 1, 2, 2, 2, 2, 0, 0];
        assert_eq!(drive.read(0, 0, 11), expected);
        drive.run(Command::flush());
        drive.settle();
        assert_eq!(drive.read(0, 0, 11), expected);
        assert_eq!(drive.wp(0), Some(9));
        assert_eq!(drive.act(ZoneAction::Reset, 0), Status::Success);
        assert_eq!((drive.read(0, 0, 11), drive.wp(0)), (vec![0; 11], Some(0)));
        drive.settle();
    }
}

#[test]
fn each_misuse_has_its_status() {
    let mut drive = Drive::new(&config());
    drive.write(0, 4);
    let status = |drive: &mut Drive, zone, block, blocks| {
        let command = drive.write_at(zone, block, blocks);
        drive.run(command).status
    };
    assert_eq!(status(&mut drive, 0, 3, 1), Status::ZoneInvalidWrite);
    assert_eq!(status(&mut drive, 0, 5, 1), Status::ZoneInvalidWrite);
    assert_eq!(status(&mut drive, 0, 4, CAPACITY as u32 - 3), Status::ZoneBoundary);
    assert_eq!(status(&mut drive, 0, 4, SIZE as u32), Status::ZoneBoundary);
    assert_eq!(drive.append(0, CAPACITY as u32 - 15).status, Status::InvalidField, "above ZASL");
    drive.write(0, 16);
    assert_eq!(drive.append(0, 13).status, Status::ZoneBoundary);
    let mut run = |command: Command<Stamp>| drive.run(command).status;
    let lba = Drive::lba(0, 20);
    assert_eq!(
        run(Command::zone_append(lba, BLOCK, 1)),
        Status::InvalidField,
        "not a zone's start"
    );
    assert_eq!(run(Command::write(Lba(lba.0 + 1), BLOCK, 1)), Status::InvalidField);
    assert_eq!(run(Command::write(lba, BLOCK / 2, 1)), Status::InvalidField);
    assert_eq!(run(Command::write(lba, 0, 1)), Status::InvalidField);
    assert_eq!(run(Command::zone(ZoneAction::Reset, lba)), Status::InvalidField);
    assert_eq!(run(Command::zone(ZoneAction::Reset, Lba(1 << 40))), Status::LbaOutOfRange);
    assert_eq!(run(Command::write(Lba(1 << 40), BLOCK, 1)), Status::LbaOutOfRange);
    assert_eq!(run(Command::zone_report(Lba(1 << 40))), Status::LbaOutOfRange);
    assert_eq!(run(Command::read(Drive::lba(0, SIZE - 1), 2 * BLOCK)), Status::ZoneBoundary);
    assert_eq!(run(Command::trim(lba, BLOCK)), Status::Success);
    drive.ssd.fail_zone(leyden_device::ZoneId(2));
    assert_eq!(drive.zone(2).state, ZoneState::Offline);
    let read = Command::read(Drive::lba(2, 0), BLOCK);
    assert_eq!(drive.run(read).status, Status::ZoneOffline);
    assert_eq!(drive.ssd.take_changed_zones(), [leyden_device::ZoneId(2)]);
    assert_eq!(drive.ssd.take_changed_zones(), []);
    drive.settle();
}

#[test]
fn reads_may_cross_zones_if_the_drive_says_so() {
    let mut config = config();
    config.zoned.as_mut().unwrap().read_across_zones = true;
    let mut drive = Drive::new(&config);
    drive.write(1, 2);
    let data = drive.read(0, SIZE - 2, 5);
    assert_eq!(data, [0, 0, 1, 1, 0]);
}

#[test]
fn a_flag_without_its_region_is_refused() {
    let mut unprotected = config();
    unprotected.buffer.region = Region::None;
    unprotected.zoned.as_mut().unwrap().zrwa = None;
    let mut drive = Drive::new(&unprotected);
    let plp = Command::zone_append(Lba(0), BLOCK, 1).plp(true);
    assert_eq!(drive.run(plp).status, Status::InvalidField);
    assert_eq!(drive.wp(0), Some(0));

    let mut conventional = leyden_device::Config::default();
    conventional.buffer.region = Region::None;
    let mut ssd = Ssd::<Stamp>::new(&conventional, 1).unwrap();
    let zoned = [Op::ZoneAppend, Op::ZoneReport, Op::Zone(ZoneAction::Reset)];
    let commands = zoned.map(|op| Command::new(op, Lba(0), 8, 1));
    ssd.submit(ssd.now(), Command::write(Lba(0), 8, 1).plp(true));
    for command in commands {
        ssd.submit(ssd.now(), command);
    }
    let mut done = Vec::new();
    while let Some(time) = ssd.next_event() {
        ssd.advance(time, &mut done);
    }
    done.sort_by_key(|end| end.id);
    let statuses: Vec<_> = done.iter().map(|end| end.status).collect();
    let unknown = Status::InvalidOpcode;
    assert_eq!(statuses, [Status::InvalidField, unknown, unknown, unknown]);
}

#[test]
fn reports_filter_and_count() {
    let mut drive = Drive::new(&config());
    drive.write(1, 2);
    drive.write(3, CAPACITY as u32);
    drive.write(5, 1);
    let report = |drive: &mut Drive, lba, filter, partial, most| {
        let end = drive.run(Command::from(Action::ZoneReport { lba, filter, partial, most }));
        let report = end.zones().unwrap().clone();
        let starts: Vec<_> = report.zones.iter().map(|zone| zone.start.0 / 8 / SIZE).collect();
        (report.count, starts)
    };
    let open = ZoneFilter::In(ZoneState::ImplicitlyOpen);
    let zones = u64::from(drive.ssd.zone_shape().zones);
    assert_eq!(report(&mut drive, Lba(0), open, false, 1), (2, vec![1]));
    assert_eq!(report(&mut drive, Lba(0), open, true, 1), (1, vec![1]));
    assert_eq!(report(&mut drive, Drive::lba(2, 7), open, false, 9), (1, vec![5]));
    assert_eq!(report(&mut drive, Drive::lba(3, 0), ZoneFilter::All, true, 2), (2, vec![3, 4]));
    assert_eq!(report(&mut drive, Lba(0), ZoneFilter::All, false, 0), (zones, vec![]));
    for state in ZoneState::ALL {
        let (count, _) = report(&mut drive, Lba(0), ZoneFilter::In(state), false, 0);
        let expected = match state {
            ZoneState::Empty => zones - 3,
            ZoneState::ImplicitlyOpen => 2,
            ZoneState::Full => 1,
            _ => 0,
        };
        assert_eq!(count, expected, "{state:?}");
    }
    let descriptor = drive.zone(3);
    assert_eq!((descriptor.write_pointer, descriptor.capacity), (None, CAPACITY * 8));
}

#[test]
fn an_extension_lives_until_the_reset() {
    let mut drive = Drive::new(&config());
    let set = |bytes: usize| {
        Command::from(Action::ZoneExtension { lba: Lba(0), data: vec![9; bytes].into() })
    };
    assert_eq!(drive.run(set(65)).status, Status::InvalidField);
    assert_eq!(drive.run(set(64)).status, Status::Success);
    assert_eq!(drive.zone(0).extension.as_deref(), Some(&[9; 64][..]));
    drive.cut();
    assert_eq!((drive.zone(0).state, drive.wp(0)), (ZoneState::Closed, Some(0)));
    assert_eq!(drive.zone(0).extension.as_deref(), Some(&[9; 64][..]));
    drive.act(ZoneAction::Reset, 0);
    assert_eq!(drive.zone(0).extension, None);
}
