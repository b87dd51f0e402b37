//! What the fuzz target and the short fuzz test call: any bytes as what an NBD client sends.
//!
//! **Invariants**: whatever it is, it is read or refused, and what is read takes no more memory than came in.

use crate::nbd::{
    ClientFlags, ClientOption, NbdError, OPTION_HEADER_BYTES, OptionHeader, REQUEST_BYTES, Request,
    RequestKind,
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
                assert!(name.len() <= data.len(), "a name longer than what came in");
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

/// What a client that writes, reads and goes sends.
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

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}
