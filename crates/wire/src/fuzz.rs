//! The functions of the fuzz targets and of the short fuzz test: any bytes as an NBD client's, as
//! those between programs and a served drive, or as a log of dm-log-writes.
//!
//! **Invariants**: whatever it is, it is read or refused, and what is read takes no more memory than came in.

use crate::log_writes::{LogAction, LogEntry, LogError, LogReader, LogWriter};
use crate::nbd::{
    ClientFlags, ClientOption, NbdError, OPTION_HEADER_BYTES, OptionHeader, REQUEST_BYTES, Request,
    RequestKind,
};
use crate::programs::{
    GREETING_BYTES, Hello, Kind, Outcome, ProgramsError, REPLY_BYTES,
    REQUEST_BYTES as PROGRAM_BYTES, Reply, Request as ProgramRequest, Welcome, ZONE_BYTES,
    ZoneLine,
};

/// Reads a client's bytes as a server does: flags, options until one begins the transmission, requests.
///
/// # Errors
/// Where the client does not speak the protocol.
pub fn client(mut bytes: &[u8]) -> Result<(), NbdError> {
    let Some(flags) = take::<4>(&mut bytes) else { return Ok(()) };
    ClientFlags::parse(flags)?;
    while let Some(header) = take::<OPTION_HEADER_BYTES>(&mut bytes) {
        let header = OptionHeader::parse(&header)?;
        let Some((data, rest)) = bytes.split_at_checked(header.length as usize) else {
            return Ok(());
        };
        bytes = rest;
        match ClientOption::parse(header.option, data) {
            ClientOption::ExportName(name) => {
                assert!(name.len() <= data.len(), "a name longer than its option");
                break;
            }
            ClientOption::Info { go: true, .. } => break,
            ClientOption::Abort => return Ok(()),
            _ => {}
        }
    }
    while let Some(request) = take::<REQUEST_BYTES>(&mut bytes) {
        let request = Request::parse(&request)?;
        if request.kind == RequestKind::Write {
            let Some((_, rest)) = bytes.split_at_checked(request.length as usize) else {
                return Ok(());
            };
            bytes = rest;
        }
    }
    Ok(())
}

/// The bytes of a client that writes, reads and goes.
pub fn seed() -> Vec<u8> {
    let option = |kind: u32, data: &[u8]| {
        let mut option = b"IHAVEOPT".to_vec();
        option.extend(kind.to_be_bytes());
        option.extend((data.len() as u32).to_be_bytes());
        option.extend(data);
        option
    };
    let request = |kind: u16, offset: u64, length: u32| {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend([0, 0]);
        request.extend(kind.to_be_bytes());
        request.extend(7_u64.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        request
    };
    let mut bytes = 3_u32.to_be_bytes().to_vec();
    bytes.extend(option(8, &[])); // structured replies
    let mut contexts = vec![0, 0, 0, 4];
    contexts.extend(b"disk\0\0\0\x01\0\0\0\x0fbase:allocation");
    bytes.extend(option(10, &contexts));
    bytes.extend(option(7, b"\0\0\0\x04disk\0\x01\0\x03")); // go, with block sizes
    bytes.extend(request(1, 0, 512));
    bytes.extend([9; 512]);
    bytes.extend(request(0, 0, 512));
    bytes.extend(request(7, 0, 4_096));
    bytes.extend(request(3, 0, 0));
    bytes.extend(request(2, 0, 0));
    bytes
}

/// Reads the bytes of a program as a served drive does: a greeting, and requests with their payloads.
///
/// # Errors
/// Where it does not speak the protocol.
pub fn program(mut bytes: &[u8]) -> Result<(), ProgramsError> {
    let Some(hello) = take::<GREETING_BYTES>(&mut bytes) else { return Ok(()) };
    let _ = Hello::parse(&hello)?.version();
    while let Some(request) = take::<PROGRAM_BYTES>(&mut bytes) {
        let request = ProgramRequest::parse(&request)?;
        assert_eq!(ProgramRequest::parse(&request.encode()), Ok(request));
        let Some((_, rest)) = bytes.split_at_checked(request.payload as usize) else { break };
        bytes = rest;
    }
    Ok(())
}

/// Reads the bytes of a served drive as a program does: a greeting, and replies, whose payloads may be zones.
///
/// # Errors
/// Where it does not speak the protocol.
pub fn served(mut bytes: &[u8]) -> Result<(), ProgramsError> {
    let Some(welcome) = take::<GREETING_BYTES>(&mut bytes) else { return Ok(()) };
    Welcome::parse(&welcome)?;
    while let Some(reply) = take::<REPLY_BYTES>(&mut bytes) {
        let reply = Reply::parse(&reply)?;
        let Some((payload, rest)) = bytes.split_at_checked(reply.payload as usize) else { break };
        for zone in payload.as_chunks::<ZONE_BYTES>().0 {
            ZoneLine::parse(zone)?;
        }
        bytes = rest;
    }
    Ok(())
}

/// The bytes of a program that writes, asks for zones and goes.
pub fn program_seed() -> Vec<u8> {
    let mut bytes = Hello { oldest: 1, newest: 1, claims: true }.encode().to_vec();
    let mut ask = |kind, flags, offset, length, payload: &[u8]| {
        let (tag, payload_bytes) = (bytes.len() as u64, payload.len() as u32);
        let request = ProgramRequest { kind, flags, payload: payload_bytes, tag, offset, length };
        bytes.extend(request.encode());
        bytes.extend(payload);
    };
    ask(Kind::Identify, 0, 0, 0, &[]);
    ask(Kind::Write, 2, 4_096, 64, &[7; 64]);
    ask(Kind::Append, 1, 0, 64, &[8; 64]);
    ask(Kind::Zone, 2, 0, 3, &[]);
    ask(Kind::Zones, 0, 0, 9, &[]);
    ask(Kind::Mark, 0, 0, 0, b"here");
    bytes
}

/// The bytes of a served drive's answers to it.
pub fn served_seed() -> Vec<u8> {
    let mut bytes = Welcome::Version(1).encode().to_vec();
    let (start, capacity, write_pointer, held) = (0, 4_096, u64::MAX, 17);
    let line = ZoneLine {
        zone: 1,
        state: 14,
        has_area: true,
        is_changed: false,
        start,
        capacity,
        write_pointer,
        held,
    };
    for (outcome, payload) in [
        (Outcome::Done, line.encode().to_vec()),
        (Outcome::Status(0x1b9), b"Zone Is Full".to_vec()),
    ] {
        bytes.extend(Reply { outcome, payload: payload.len() as u32, tag: 1, value: 2 }.encode());
        bytes.extend(payload);
    }
    bytes
}

/// Reads a log of dm-log-writes; what was read is written as bytes that are read as the same.
///
/// # Errors
/// If it is none, or damaged.
pub fn log(bytes: &[u8]) -> Result<(), LogError> {
    let mut log = LogReader::new(bytes)?;
    let (mut entries, mut length) = (Vec::new(), 0);
    while let Some(entry) = log.entry()? {
        if let Some(LogAction::Write { data, .. }) = &entry.action {
            length += data.len();
        }
        assert!(length <= bytes.len(), "more data than came in");
        entries.push(entry);
    }
    let mut again = std::io::Cursor::new(Vec::new());
    let mut writer = LogWriter::new(&mut again, log.sector_bytes())?;
    for entry in &entries {
        writer.entry(entry)?;
    }
    writer.finish()?;
    let again = again.into_inner();
    let mut reader = LogReader::new(&again[..])?;
    for entry in entries {
        assert_eq!(reader.entry()?, Some(entry), "a written entry is read otherwise");
    }
    Ok(())
}

/// A log with an entry of each kind.
pub fn log_seed() -> Vec<u8> {
    let mut bytes = std::io::Cursor::new(Vec::new());
    let mut log = LogWriter::new(&mut bytes, 512).expect("memory takes everything");
    let data = vec![7; 1_024];
    for (flush, action) in [
        (false, Some(LogAction::Mark(b"begin".to_vec()))),
        (true, Some(LogAction::Write { offset_bytes: 512, data, fua: true })),
        (false, Some(LogAction::Discard { offset_bytes: 0, length_bytes: 4_096 })),
        (true, None),
    ] {
        log.entry(&LogEntry { flush, action }).expect("memory takes everything");
    }
    log.finish().expect("memory takes everything");
    bytes.into_inner()
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}
