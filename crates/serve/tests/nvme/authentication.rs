//! Hosts that prove who they are (DH-HMAC-CHAP with SHA-256 and no group): each message is built and checked here. With groups,
//! and against stock Linux, see `integrations/nvme`.

use std::collections::BTreeMap;

use hmac::{Hmac, Mac};
use leyden_serve::{HostSecrets, Limits, Secret};
use sha2::Sha256;

use super::*;

const NOT_AUTHENTICATED: u16 = 0x4191;
/// 32 bytes, as they are: those from 0 on, and those from 100 on.
const SECRET: &str = "DHHC-1:00:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
const OTHER: &str = "DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOeXryU:";
const PAST: [u8; 2] = [0x34, 0x12];

fn key(first: u8) -> [u8; 32] {
    std::array::from_fn(|at| first + at as u8)
}

fn served(limits: Limits) -> Served {
    let secret = |text| Secret::parse(text).unwrap();
    let secrets = HostSecrets { host: secret(SECRET), controller: Some(secret(OTHER)) };
    let secrets = BTreeMap::from([(HOST.to_owned(), secrets)]);
    Served::with(Options { secrets, limits, ..Options::default() })
}

fn keyed(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().to_vec()
}

fn message(kind: u8, id: u8, rest: &[u8]) -> Vec<u8> {
    [&[kind, id, 0, 0], &PAST[..], rest].concat()
}

impl Queue {
    fn tell(&mut self, message: &[u8]) -> Ended {
        let entry = Entry::fabrics(5).u16(40, 0x100).u16(42, 0xe901);
        self.ask(entry.u32(44, message.len() as u32), message, 0)
    }

    fn hear(&mut self, bytes: usize) -> Ended {
        let entry = Entry::fabrics(6).u16(40, 0x100).u16(42, 0xe901);
        self.ask(entry.u32(44, bytes as u32), &[], bytes)
    }

    /// Proves to know `with`, and looks whether the controller knows the other one. What it says last.
    fn prove(&mut self, with: &[u8]) -> Vec<u8> {
        let mut offer = vec![0, 1, 1, 0, 1, 1];
        offer.resize(66, 0);
        offer[6] = 1; // SHA-256; the null group is 0
        self.tell(&message(0, 0, &offer)).good();
        let challenge = self.hear(4_096).good().data;
        assert_eq!((&challenge[..2], challenge[6]), (&[1, 1][..], 32));
        assert_eq!((challenge[8], challenge[9]), (1, 0));
        let names = [HOST.as_bytes(), &[0], NAME.as_bytes()].concat();
        let answer = keyed(
            with,
            &[&challenge[16..48], &challenge[12..16], &PAST, &[0], b"HostHost", &names],
        );
        let mut reply = vec![32, 0, 1, 0, 0, 0, 9, 0, 0, 0];
        reply.extend(answer);
        reply.extend([0x5a; 32]);
        self.tell(&message(1, 2, &reply)).good();
        let heard = self.hear(4_096).good().data;
        if heard[..2] == [1, 3] {
            let names = [NAME.as_bytes(), &[0], HOST.as_bytes()].concat();
            let parts: [&[u8]; 6] =
                [&[0x5a; 32], &[9, 0, 0, 0], &PAST, &[0], b"Controller", &names];
            assert_eq!(heard[8], 1);
            assert_eq!(heard[16..48], keyed(&key(100), &parts));
            self.tell(&message(1, 4, &[0; 10])).good();
        }
        heard
    }
}

fn connected(served: &Served) -> Queue {
    let mut queue = Queue::open(served.at(), 0);
    let result = queue.connect(&Connect::admin(NAME)).good().result;
    assert_eq!(result >> 16, 2, "the host is asked who it is");
    queue
}

fn enable(admin: &mut Queue) {
    admin.set_property(0x14, 0x0046_0061).good();
}

#[test]
fn each_queue_takes_commands_once_its_host_is_known() {
    let served = served(Limits::default());
    let mut admin = Queue::open(served.at(), 3);
    let controller = admin.connect(&Connect::admin(NAME)).good().result as u16;
    assert_eq!(admin.property(0x1c, false).status, NOT_AUTHENTICATED);
    assert_eq!(admin.set_property(0x14, 0x0046_0061).status, NOT_AUTHENTICATED);
    assert_eq!(admin.identify(1, 0, 0).status, NOT_AUTHENTICATED);
    assert_eq!(admin.prove(&key(0))[..2], [1, 3]);
    enable(&mut admin);
    admin.identify(1, 0, 0).good();
    let mut io = Queue::open(served.at(), 3);
    let to = Connect { controller, queue: 1, ..Connect::admin(NAME) };
    assert_eq!(io.connect(&to).good().result >> 16, 2);
    let block = vec![7; BLOCK];
    assert_eq!(io.write(PLAIN, 0, &block, BLOCK).status, NOT_AUTHENTICATED);
    assert_eq!(io.write(PLAIN, 0, &[7; 8 * BLOCK], BLOCK).status, NOT_AUTHENTICATED, "not invited");
    assert_eq!(io.read(PLAIN, 0, 1, BLOCK).status, NOT_AUTHENTICATED);
    assert_eq!(io.prove(&key(0))[..2], [1, 3]);
    assert_eq!(io.read(PLAIN, 0, 1, BLOCK).good().data, vec![0; BLOCK], "nothing was written");
    io.write(PLAIN, 0, &block, BLOCK).good();
    assert_eq!(io.prove(&key(0))[..2], [1, 3], "a host may prove it again");
    assert_eq!(io.read(PLAIN, 0, 1, BLOCK).good().data, block);
}

#[test]
fn who_does_not_know_the_secret_goes_and_others_stay() {
    let served = served(Limits::default());
    let mut honest = connected(&served);
    assert_eq!(honest.prove(&key(0))[..2], [1, 3]);
    enable(&mut honest);
    let mut wrong = connected(&served);
    let failure = wrong.prove(&key(1));
    assert_eq!((&failure[..2], failure[6], failure[7]), (&[0, 0xf1][..], 1, 1));
    assert_eq!(wrong.next_pdu().map(|it| it.kind), None);
    let mut early = connected(&served);
    early.tell(&message(1, 2, &[0; 90])).good();
    assert_eq!(early.hear(64).good().data[7], 7, "another message was due");
    assert_eq!(early.next_pdu().map(|it| it.kind), None);
    let mut unknown = Queue::open(served.at(), 0);
    let other = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555556";
    let refused = unknown.connect(&Connect { host: other, ..Connect::admin(NAME) });
    assert_eq!(refused.status, 0x4184);
    honest.identify(1, 0, 0).good();
}

#[test]
fn malformed_messages_have_their_status() {
    let served = served(Limits::default());
    let mut queue = connected(&served);
    let send = |protocol: u16, bytes: u32| {
        Entry::fabrics(5).u16(40, 0x100).u16(42, protocol).u32(44, bytes)
    };
    assert_eq!(queue.ask(send(0xe902, 16), &[0; 16], 0).status, 0x4002);
    assert_eq!(queue.ask(send(0xea01, 16), &[0; 16], 0).status, 0x4002);
    assert_eq!(queue.ask(send(0xe901, 17), &[0; 16], 0).status, 0x4002);
    assert_eq!(queue.ask(send(0xe901, 0), &[], 0).status, 0x4002);
    assert_eq!(queue.tell(&[0; 4_097]).status, 0x4002);
    assert_eq!(queue.hear(4_097).status, 0x4002);
    assert_eq!(queue.prove(&key(0))[..2], [1, 3], "none of them was a message");
    let open = Served::new();
    let mut host = open.host(1, 0);
    assert_eq!(host.admin.tell(&message(0, 0, &[0; 66])).status, 0x4001, "nobody is asked");
}

/// Whoever has not proved who he is takes no place from those who could.
#[test]
fn hosts_without_the_secret_make_room() {
    let served = served(Limits::new(256 << 20, 4).unwrap());
    let mut first = connected(&served);
    assert_eq!(first.prove(&key(0))[..2], [1, 3]);
    enable(&mut first);
    let strangers: Vec<Queue> = (0..12).map(|_| connected(&served)).collect();
    let mut second = connected(&served);
    assert_eq!(second.prove(&key(0))[..2], [1, 3]);
    enable(&mut second);
    first.identify(1, 0, 0).good();
    drop(strangers);
}
