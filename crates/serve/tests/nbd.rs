//! The server as a client finds it: negotiation, requests, power cuts.

mod harness;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;

use leyden_buffer::Region;
use leyden_device::Lba;
use leyden_image::WriteFlags;
use leyden_serve::{Answer, Ask, ControlAnswer, ControlAsk, Failure, Handle, Pace, control};

use harness::*;

const EIO: u32 = 5;
const EINVAL: u32 = 22;
const ENOSPC: u32 = 28;
const EOVERFLOW: u32 = 75;

#[test]
fn what_is_written_is_read() {
    for pace in [Pace::Times(1.0), Pace::Times(20.0), Pace::Untimed] {
        let mut served = Served::new(Region::None, pace);
        let mut client = served.client();
        assert_eq!(client.write(4_096, &[7; 12_288]), 0);
        assert_eq!(client.write(5_120, &[8; 512]), 0);
        assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), 0);
        let mut expected = vec![7; 12_288];
        expected[1_024..1_536].fill(8);
        assert_eq!(client.read(4_096, 12_288).unwrap(), expected);
        assert_eq!(client.ask(0, TRIM, 4_096, 4_096, &[]), 0);
        assert_eq!(client.ask(FUA, WRITE_ZEROES, 8_192, 512, &[]), 0);
        expected[..4_096 + 512].fill(0);
        assert_eq!(served.client().read(4_096, 12_288).unwrap(), expected, "another connection");
        served.stop();
        served.reopen();
        assert_eq!(served.client().read(4_096, 12_288).unwrap(), expected);
    }
}

#[test]
fn requests_that_make_no_sense_get_the_protocols_errors() {
    let served = Served::new(Region::None, Pace::Untimed);
    let mut client = served.client();
    let end = client.bytes;
    assert_eq!(client.write(end, &[0; 512]), ENOSPC);
    assert_eq!(client.write(end - 512, &[0; 1_024]), ENOSPC);
    assert_eq!(client.read(end, 512), Err(EINVAL));
    assert_eq!(client.read(u64::MAX - 100, 512), Err(EINVAL));
    assert_eq!(client.read(1, 512), Err(EINVAL));
    assert_eq!(client.read(0, 100), Err(EINVAL));
    assert_eq!(client.read(0, 0), Err(EINVAL));
    assert_eq!(
        client.ask(0, READ, 0, 64 << 20, &[]),
        if end > 64 << 20 { EOVERFLOW } else { EINVAL }
    );
    assert_eq!(client.ask(0, 99, 0, 512, &[]), EINVAL);
    assert_eq!(client.ask(1 << 9, READ, 0, 512, &[]), EINVAL);
    assert_eq!(client.ask(0, 7, 0, 512, &[]), EINVAL, "block status was not agreed on");
    assert_eq!(client.read(0, 512).unwrap(), [0; 512], "and the connection goes on");
}

/// The minimum and the preferred block size that a client is told (NBD_OPT_GO with NBD_INFO_BLOCK_SIZE).
fn block_sizes(served: &Served) -> [u32; 2] {
    let mut stream = UnixStream::connect(served.socket()).unwrap();
    take::<18>(&mut stream);
    stream.write_all(&3_u32.to_be_bytes()).unwrap();
    stream.write_all(b"IHAVEOPT\0\0\0\x07\0\0\0\x08\0\0\0\0\0\x01\0\x03").unwrap();
    loop {
        take::<12>(&mut stream); // magic and option
        let kind = u32::from_be_bytes(take(&mut stream));
        let length = u32::from_be_bytes(take(&mut stream));
        let mut data = vec![0; length as usize];
        stream.read_exact(&mut data).unwrap();
        assert_ne!(kind, 1, "an acknowledgement, and no block size");
        if kind == 3 && data[..2] == [0, 3] {
            let word = |at: usize| u32::from_be_bytes(data[at..at + 4].try_into().unwrap());
            return [word(2), word(6)];
        }
    }
}

/// A drive of 4,096-byte sectors says so, and takes nothing smaller.
#[test]
fn sectors_of_4096_bytes_are_told_and_kept_to() {
    let mut served = Served::new(Region::None, Pace::Untimed);
    assert_eq!(block_sizes(&served), [512, 4_096]);
    served.stop();
    served.sector_bytes = 4_096;
    served.reopen();
    assert_eq!(block_sizes(&served), [4_096, 4_096]);
    let mut client = served.client();
    assert_eq!(client.write(4_096, &[7; 8_192]), 0);
    assert_eq!(client.write(512, &[8; 4_096]), EINVAL);
    assert_eq!(client.write(4_096, &[8; 512]), EINVAL);
    assert_eq!(client.read(4_096, 512), Err(EINVAL));
    assert_eq!(client.ask(0, TRIM, 0, 2_048, &[]), EINVAL);
    assert_eq!(client.read(4_096, 8_192).unwrap(), [7; 8_192], "and the connection goes on");
}

#[test]
fn a_cut_ends_what_is_under_way_and_loses_what_was_not_flushed() {
    for region in [Region::None, Region::Full] {
        let served = Served::new(region, Pace::Times(1.0));
        let mut client = served.client();
        assert_eq!(client.write(0, &[1; 4_096]), 0);
        assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), 0);
        assert_eq!(client.write(0, &[2; 4_096]), 0);
        let ControlAnswer::Cut(report) = control::ask(&served.image(), &ControlAsk::Cut).unwrap()
        else {
            panic!("the power is on")
        };
        assert_eq!(report.lost, [], "the bank reaches");
        assert_eq!(report.dumped_bytes, if region == Region::Full { 4_096 } else { 0 });
        assert_eq!(client.read(0, 4_096), Err(EIO));
        assert_eq!(client.write(0, &[3; 4_096]), EIO);
        assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), EIO);
        let again = control::ask(&served.image(), &ControlAsk::Cut).unwrap();
        assert!(matches!(again, ControlAnswer::Refused { .. }));
        let restore = ControlAsk::Restore { capacitance_nf: None };
        let restored = control::ask(&served.image(), &restore).unwrap();
        assert!(matches!(restored, ControlAnswer::Restored(report) if report.ready_in_ns > 0));
        let newest = if region == Region::Full { 2 } else { 1 };
        assert_eq!(client.read(0, 4_096).unwrap(), [newest; 4_096], "the same connection goes on");
    }
}

/// FLUSH covers what any connection has heard of, and force unit access its own command, zeroes too.
#[test]
fn what_was_flushed_or_forced_out_is_there_after_a_cut() {
    // Each alone: what is forced out takes along what waits for the same page.
    assert_eq!(after_a_cut(false), [2, 0, 3, 1, 1, 1]);
    assert_eq!(after_a_cut(true), [2, 0, 1, 0, 1, 1]);
}

/// A byte of each unit after writes, a FLUSH, a write or zeroes that are forced out, and what nobody promised.
fn after_a_cut(forces_zeroes: bool) -> Vec<u8> {
    let served = Served::new(Region::None, Pace::Untimed);
    let (mut one, mut other) = (served.client(), served.client());
    let unit = |at: u64| at * 4_096;
    for at in 0..6 {
        assert_eq!(one.ask(FUA, WRITE, unit(at), 4_096, &[1; 4_096]), 0);
    }
    assert_eq!(one.write(unit(0), &[2; 4_096]), 0);
    assert_eq!(other.ask(0, TRIM, unit(1), 4_096, &[]), 0);
    assert_eq!(one.ask(0, FLUSH, 0, 0, &[]), 0, "of both connections");
    if forces_zeroes {
        // Of a part of a unit, which is written: zeroes of a whole one are on flash as soon as its map entry is gone.
        assert_eq!(one.ask(FUA, WRITE_ZEROES, unit(3), 512, &[]), 0);
    } else {
        assert_eq!(one.ask(FUA, WRITE, unit(2), 4_096, &[3; 4_096]), 0);
    }
    // Not promised.
    assert_eq!(other.write(unit(4), &[4; 4_096]), 0);
    assert_eq!(one.ask(0, WRITE_ZEROES, unit(5), 512, &[]), 0);
    let cut = control::ask(&served.image(), &ControlAsk::Cut).unwrap();
    assert!(matches!(cut, ControlAnswer::Cut(_)), "{cut:?}");
    control::ask(&served.image(), &ControlAsk::Restore { capacitance_nf: None }).unwrap();
    (0..6).map(|at| one.read(unit(at), 4_096).unwrap()[17]).collect()
}

#[test]
fn commands_under_way_end_with_an_error_when_the_power_fails() {
    let served = Served::new(Region::None, Pace::Times(0.001));
    let mut client = served.client();
    // A thousand times slower than the flash: these are on their way for seconds.
    (0..8).for_each(|at| client.send(FUA, WRITE, at, at * 4_096, 4_096, &[1; 4_096]));
    let report = loop {
        let ControlAnswer::Status(status) =
            control::ask(&served.image(), &ControlAsk::Status).unwrap()
        else {
            panic!("no status")
        };
        if status.pending == 8 {
            break control::ask(&served.image(), &ControlAsk::Cut).unwrap();
        }
    };
    assert!(matches!(report, ControlAnswer::Cut(report) if report.interrupted_commands == 8));
    let mut ended: Vec<_> = (0..8).map(|_| client.reply()).collect();
    ended.sort_unstable();
    assert_eq!(ended, (0..8).map(|cookie| (cookie, EIO)).collect::<Vec<_>>());
}

#[test]
fn another_bank_changes_what_survives() {
    let served = Served::new(Region::Full, Pace::Untimed);
    let mut client = served.client();
    assert_eq!(client.write(0, &vec![1; 64 << 10]), 0);
    let ask = |ask| control::ask(&served.image(), &ask).unwrap();
    assert!(matches!(ask(ControlAsk::Cut), ControlAnswer::Cut(report) if report.lost.is_empty()));
    // Too small a bank is refused as a configuration is, and nothing changes.
    let small = ControlAsk::Restore { capacitance_nf: Some(1) };
    let refused = ask(small);
    assert!(
        matches!(&refused, ControlAnswer::Refused { why } if why.contains("power.bank")),
        "{refused:?}"
    );
    let large = ControlAsk::Restore { capacitance_nf: Some(100_000_000) };
    assert!(matches!(ask(large), ControlAnswer::Restored(_)));
    assert_eq!(client.read(0, 64 << 10).unwrap(), vec![1; 64 << 10]);
    assert!(matches!(ask(ControlAsk::Cut), ControlAnswer::Cut(report) if report.lost.is_empty()));
    // Enough for a page or two: the rest of what was promised is lost, and the report says what.
    let meagre = ControlAsk::Restore { capacitance_nf: Some(60_000) };
    assert!(matches!(ask(meagre), ControlAnswer::Restored(_)));
    assert_eq!(client.write(0, &vec![2; 64 << 10]), 0);
    let ControlAnswer::Cut(report) = ask(ControlAsk::Cut) else { panic!("the power is on") };
    let lost: u64 = report.lost.iter().map(|&(_, sectors)| sectors).sum();
    assert!((1..=128).contains(&lost), "{report:?}");
    ask(ControlAsk::Restore { capacitance_nf: None });
    for (lba, sectors) in report.lost {
        let data = client.read(lba * 512, (sectors * 512) as u32).unwrap();
        assert!(data.iter().all(|&byte| byte != 2), "what was lost is not there");
    }
}

/// A client that asks again for each answer, for ever: the drive is never idle of itself.
fn ask_again(handle: &Handle, unit: u64, told: &mpsc::Sender<Answer>) {
    let (again, to) = (handle.clone(), told.clone());
    handle.ask(Ask::Write(Lba(unit * 8), vec![1; 4_096], WriteFlags::fua(true)), move |answer| {
        match answer {
            Answer::Done => ask_again(&again, (unit + 13) % 500, &to),
            last => to.send(last).unwrap(),
        }
    });
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a scope would wait for a server that hangs")]
fn a_server_that_is_told_to_stop_ends_however_busy_its_clients_are() {
    let mut served = Served::new(Region::None, Pace::Times(1.0));
    let (told, last) = mpsc::channel();
    (0..64).for_each(|at| ask_again(served.server.as_ref().unwrap().handle(), at, &told));
    let (done, ended) = mpsc::channel();
    let stopping = std::thread::spawn(move || {
        served.stop();
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(30)).expect("the server ends");
    stopping.join().unwrap();
    drop(told);
    assert_eq!(last.iter().collect::<Vec<_>>(), vec![Answer::Failed(Failure::Gone); 64]);
}

#[test]
fn many_requests_at_once_are_each_answered_once() {
    let served = Served::new(Region::None, Pace::Untimed);
    let mut client = served.client();
    let count = 3_000_u64;
    let mut writer = client.stream.try_clone().unwrap();
    let requests: Vec<u8> = (0..count)
        .flat_map(|cookie| {
            let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
            request.extend([0, 0, 0, WRITE as u8]);
            request.extend(cookie.to_be_bytes());
            request.extend((cookie % 500 * 4_096).to_be_bytes());
            request.extend(4_096_u32.to_be_bytes());
            request.resize(request.len() + 4_096, cookie as u8);
            request
        })
        .collect();
    std::thread::scope(|scope| {
        scope.spawn(move || writer.write_all(&requests).unwrap());
        let mut seen = vec![false; count as usize];
        for _ in 0..count {
            let (cookie, error) = client.reply();
            assert_eq!(error, 0);
            assert!(!std::mem::replace(&mut seen[cookie as usize], true));
        }
    });
    for at in 0..500 {
        let last = (count - 500 + at) as u8;
        assert_eq!(client.read(at * 4_096, 4_096).unwrap(), [last; 4_096]);
    }
}

/// Errors come and go: a command that was made to fail has changed nothing, and the next one works.
#[test]
fn commands_fail_by_rule_and_work_again() {
    let served = Served::new(Region::None, Pace::Untimed);
    let fault = |rule: &str, clear| {
        let rule = (!rule.is_empty()).then(|| rule.parse().unwrap());
        match control::ask(&served.image(), &ControlAsk::Fault { rule, clear }).unwrap() {
            ControlAnswer::Faults { rules } => rules,
            other => panic!("{other:?}"),
        }
    };
    let mut client = served.client();
    assert_eq!(client.write(0, &[1; 4_096]), 0);
    fault("write:nth=2", false);
    assert_eq!(client.write(0, &[2; 4_096]), 0);
    assert_eq!(client.write(0, &[3; 4_096]), 5, "EIO");
    assert_eq!(client.read(0, 4_096).unwrap(), [2; 4_096], "it has changed nothing");
    assert_eq!(client.write(0, &[4; 4_096]), 0);
    fault("flush", false);
    assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), 5);
    assert_eq!(client.ask(0, FLUSH, 0, 0, &[]), 0);
    // A bad sector stays bad, and its neighbours are good.
    let rules = fault("read:lba=9,times=all", false);
    assert_eq!(rules.iter().map(|rule| rule.failed).collect::<Vec<_>>(), [1, 1, 0]);
    assert_eq!(client.read(4_096, 512).unwrap(), [0; 512]);
    assert_eq!(client.read(4_096, 1_024), Err(5));
    assert_eq!(client.read(4_608, 512), Err(5));
    assert!(fault("", true).is_empty());
    assert_eq!(client.read(4_608, 512).unwrap(), [0; 512]);
}

/// A cleaner of temporary files may remove a server's sockets: it ends all the same.
#[test]
#[expect(clippy::disallowed_methods, reason = "a scope would wait for a thread that hangs")]
fn a_server_whose_sockets_were_removed_ends() {
    let mut served = Served::new(Region::None, Pace::Untimed);
    let server = served.server.take().unwrap();
    std::fs::remove_file(served.socket()).unwrap();
    std::fs::remove_file(control::socket_of(&served.image())).unwrap();
    assert_eq!(server.handle().control(ControlAsk::Stop), Some(ControlAnswer::Stopped));
    let (to, ended) = mpsc::channel();
    std::thread::spawn(move || to.send(server.join()).unwrap());
    ended.recv_timeout(Duration::from_secs(20)).expect("it hangs").unwrap();
}
