//! Messages of an exchange, byte for byte (Base 2.0, section 8.13).

use zerocopy::little_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::wire::wire;

/// Types of messages, and their identifiers.
pub(super) const COMMON: u8 = 0;
pub(super) const DHCHAP: u8 = 1;
pub(super) const NEGOTIATE: u8 = 0x00;
pub(super) const FAILURE2: u8 = 0xf0;
pub(super) const FAILURE1: u8 = 0xf1;
pub(super) const CHALLENGE: u8 = 0x01;
pub(super) const REPLY: u8 = 0x02;
pub(super) const SUCCESS1: u8 = 0x03;
pub(super) const SUCCESS2: u8 = 0x04;

wire! {
    /// What each message begins with.
    #[derive(PartialEq, Eq)]
    pub(super) struct Head {
        pub kind: u8,
        pub id: u8,
        pub reserved: U16,
        pub transaction: U16,
    }
}

wire! {
    /// The start: what follows are so many descriptors of protocols.
    pub(super) struct Negotiate {
        pub head: Head,
        pub secure_channel: u8,
        pub protocols: u8,
    }
}

wire! {
    /// A protocol that the host knows, with its hash functions and its groups.
    pub(super) struct Protocol {
        pub id: u8,
        pub reserved: u8,
        pub hashes: u8,
        pub groups: u8,
        pub hash_ids: [u8; 30],
        pub group_ids: [u8; 30],
    }
}

wire! {
    /// The challenge; it and the public value follow.
    pub(super) struct Challenge {
        pub head: Head,
        pub hash_bytes: u8,
        pub reserved: u8,
        pub hash: u8,
        pub group: u8,
        pub public_bytes: U16,
        pub sequence: U32,
    }
}

wire! {
    /// The answer; it, a challenge in return, and the public value follow.
    pub(super) struct Reply {
        pub head: Head,
        pub hash_bytes: u8,
        pub reserved: u8,
        pub has_challenge: u8,
        pub reserved2: u8,
        pub public_bytes: U16,
        pub sequence: U32,
    }
}

wire! {
    /// The answer was right; the answer to the challenge in return follows.
    pub(super) struct Success1 {
        pub head: Head,
        pub hash_bytes: u8,
        pub reserved: u8,
        pub has_answer: u8,
        pub reserved2: [u8; 7],
    }
}

wire! {
    /// The exchange has failed.
    pub(super) struct Failure {
        pub head: Head,
        pub reason: u8,
        pub explanation: u8,
    }
}

const _: () = assert!(size_of::<Negotiate>() == 8 && size_of::<Protocol>() == 64);
const _: () = assert!(size_of::<Challenge>() == 16 && size_of::<Reply>() == 16);
const _: () = assert!(size_of::<Success1>() == 16 && size_of::<Failure>() == 8);
