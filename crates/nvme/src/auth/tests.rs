//! Exchanges whose answers were computed by another implementation (Python's `hmac`, `hashlib` and `pow`).

use super::*;

const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";
const SUBSYSTEM: &str = "nqn.2026-01.local.leyden:disk";
/// The bytes from 0 to 31, bound to a name by SHA-256.
const SECRET: &str = "DHHC-1:01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:";
/// 48 bytes from 100 on, as they are.
const CONTROLLER: &str =
    "DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOEhYaHiImKi4yNjo+QkZKTvGwQfg==:";
const TRANSACTION: [u8; 2] = [0xef, 0xbe];
/// Answers of the host and of the controller: SHA-256 without a group, and SHA-512 with ffdhe2048.
const ANSWERS: [[&str; 2]; 2] = [
    [
        "58d36b9a1400870dda4cbf7e8bd7275c74af954414b262706c63e10d24cb3fc4",
        "f9234c7c708917155e1375764c0898def28babba92fb2155d7538efd8d5cb582",
    ],
    [
        "d899523015b49d3ed751994445778150d4e08817a049b7be0e72f9c17a1d4c8ad7da181dae6cb5372304010990a8f4db\
         5cd5213893367577e4c6a8f44c7f3bea",
        "2807d59261dac85c58410edb4e594a33e9267aa9dbad9eb5dc439404eabf8fe9fe1c87e43a327e79e9be6553268a0b1a\
         22df40d47c3e13945534507e19504347",
    ],
];

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks(2).map(|it| std::str::from_utf8(it).unwrap());
    pairs.map(|it| u8::from_str_radix(it, 16).unwrap()).collect()
}

fn entropy() -> Entropy {
    let challenge = std::array::from_fn(|at| 0x40 + at as u8);
    Entropy { challenge, exponent: [0x11; 64], sequence: 0x0102_0304 }
}

fn exchange(controller: Option<&str>) -> Exchange {
    let controller = controller.map(|text| Secret::parse(text).unwrap());
    let secrets = HostSecrets { host: Secret::parse(SECRET).unwrap(), controller };
    Exchange::new(HOST, SUBSYSTEM, secrets)
}

fn negotiate(hashes: &[u8], groups: &[u8]) -> Vec<u8> {
    let mut text = vec![0; 72];
    text[4..6].copy_from_slice(&TRANSACTION);
    (text[7], text[8]) = (1, 1);
    (text[10], text[11]) = (hashes.len() as u8, groups.len() as u8);
    text[12..12 + hashes.len()].copy_from_slice(hashes);
    text[42..42 + groups.len()].copy_from_slice(groups);
    text
}

/// The host's message of this kind; its challenge in return is what the answers were computed with.
fn reply(answer: &[u8], asks: bool, public: &[u8]) -> Vec<u8> {
    let mut text = vec![1, 2, 0, 0];
    text.extend(TRANSACTION);
    text.extend([answer.len() as u8, 0, asks.into(), 0]);
    text.extend((public.len() as u16).to_le_bytes());
    text.extend(0x0a0b_0c0d_u32.to_le_bytes());
    text.extend(answer);
    text.extend((0..answer.len()).map(|at| 0xa0 + (at % 64) as u8));
    text.extend(public);
    text
}

/// The message that is due, without what it was filled up with; and its identifier.
fn fetch(exchange: &mut Exchange) -> (u8, Vec<u8>) {
    let text = exchange.receive(MESSAGE_MOST).unwrap();
    assert_eq!((text.len(), &text[4..6]), (MESSAGE_MOST, &TRANSACTION[..]));
    (text[1], text)
}

/// How an exchange fails, and that the host is told so and its connection ends.
fn fails(mut exchange: Exchange) -> (u8, Wrong) {
    assert!(!exchange.is_authenticated() && !exchange.is_over());
    let (id, text) = fetch(&mut exchange);
    assert!(exchange.is_over());
    assert_eq!((text[0], id, text[6]), (0, 0xf1, 1));
    (text[7], exchange.wrong().unwrap())
}

#[test]
fn a_host_and_a_controller_prove_who_they_are() {
    for ([host, controller], (hash, group)) in ANSWERS.into_iter().zip([(1, 0), (3, 1)]) {
        let mut it = exchange(Some(CONTROLLER));
        it.send(&negotiate(&[hash], &[group]), entropy());
        let (id, text) = fetch(&mut it);
        let length = bytes(host).len();
        assert_eq!((id, text[6], text[8], text[9]), (1, length as u8, hash, group));
        assert_eq!(text[12..16], [4, 3, 2, 1]);
        assert_eq!(text[16..16 + length], entropy().challenge[..length]);
        let mut public = Vec::new();
        if group == 1 {
            assert_eq!(text[10..12], 256_u16.to_le_bytes());
            let begin = bytes("699b90a819eaf85b06b321894e520dae");
            assert_eq!(text[16 + length..][..16], begin);
            public = Group::Ffdhe2048.public(&[0x77; 40]);
        }
        it.send(&reply(&bytes(host), true, &public), entropy());
        let (id, text) = fetch(&mut it);
        assert_eq!((id, text[6], text[8]), (3, length as u8, 1));
        assert_eq!(text[16..16 + length], bytes(controller));
        assert!(!it.is_authenticated(), "the host has not confirmed it");
        it.send(&[&[1, 4, 0, 0], &TRANSACTION[..], &[0; 10]].concat(), entropy());
        assert!(it.is_authenticated() && !it.is_over());
    }
}

#[test]
fn one_way_is_enough_and_a_host_may_begin_again() {
    let mut it = exchange(None);
    for _ in 0..2 {
        it.send(&negotiate(&[1, 9], &[0]), entropy());
        assert_eq!(fetch(&mut it).0, 1);
        it.send(&reply(&bytes(ANSWERS[0][0]), false, &[]), entropy());
        let (id, text) = fetch(&mut it);
        assert_eq!((id, text[6], text[8]), (3, 32, 0));
        assert!(it.is_authenticated());
    }
}

#[test]
fn whatever_is_wrong_ends_the_exchange_with_its_reason() {
    let answer = bytes(ANSWERS[0][0]);
    let begun = |hashes: &[u8], groups: &[u8]| {
        let mut it = exchange(None);
        it.send(&negotiate(hashes, groups), entropy());
        it
    };
    let challenged = || {
        let mut it = begun(&[1], &[0]);
        fetch(&mut it);
        it
    };
    let answered = |text: &[u8]| {
        let mut it = challenged();
        it.send(text, entropy());
        fails(it)
    };
    assert_eq!(fails(begun(&[7], &[0])), (4, Wrong::Hash));
    assert_eq!(fails(begun(&[1], &[9])), (5, Wrong::Group));
    let changed = |at: usize, to: u8| {
        let mut text = negotiate(&[1], &[0]);
        text[at] = to;
        let mut it = exchange(None);
        it.send(&text, entropy());
        fails(it)
    };
    assert_eq!(changed(6, 1), (3, Wrong::SecureChannel));
    assert_eq!(changed(8, 2), (2, Wrong::Protocol));
    assert_eq!(changed(7, 2), (6, Wrong::Payload), "a descriptor that is not there");
    assert_eq!(changed(10, 31), (6, Wrong::Payload), "more than there is room for");
    assert_eq!(changed(1, 2), (7, Wrong::Message));
    let mut other = answer.clone();
    other[31] ^= 1;
    assert_eq!(answered(&reply(&other, false, &[])), (1, Wrong::Answer));
    assert_eq!(answered(&reply(&answer[..31], false, &[])), (6, Wrong::Payload));
    assert_eq!(answered(&reply(&answer, false, &[1; 256])), (6, Wrong::Payload));
    assert_eq!(answered(&reply(&answer, true, &[])), (1, Wrong::Answer), "there is no secret");
    let mut text = reply(&answer, false, &[]);
    assert_eq!(answered(&text[..60]), (6, Wrong::Payload));
    text[4] ^= 1;
    assert_eq!(answered(&text), (6, Wrong::Payload), "of another transaction");
    assert_eq!(answered(&[]), (6, Wrong::Payload));
    assert_eq!(answered(&negotiate(&[1], &[0])), (7, Wrong::Message));
    let mut early = exchange(None);
    assert_eq!(early.receive(64).unwrap()[1], 0xf1);
    assert!(early.is_over() && early.wrong() == Some(Wrong::Message));
    let mut given_up = challenged();
    given_up.send(&[&[0, 0xf0, 0, 0], &TRANSACTION[..], &[1, 1]].concat(), entropy());
    assert!(given_up.is_over() && given_up.wrong() == Some(Wrong::Controller));
}

#[test]
fn a_message_that_does_not_fit_stays_due() {
    let mut it = exchange(None);
    it.send(&negotiate(&[3], &[2]), entropy());
    assert_eq!(it.receive(100), Err(16 + 64 + 384));
    assert_eq!(fetch(&mut it).0, 1);
}

#[test]
fn secrets_are_read_and_their_mistakes_named() {
    let changed = SECRET.replace("AAEC", "AAED");
    for (text, wrong) in [
        ("DHHC-1:04:AAAA:", SecretError::Form),
        ("secret", SecretError::Form),
        (SECRET.trim_end_matches(':'), SecretError::Form),
        ("DHHC-1:01:AAECAwQF:", SecretError::Length(2)),
        (&changed, SecretError::CheckSum),
    ] {
        assert_eq!(Secret::parse(text).unwrap_err(), wrong, "{text}");
    }
    let text = format!("# ours\n\n{HOST} {SECRET}\nnqn.2026-01.a:b {SECRET} {CONTROLLER}\n");
    let read = parse_secrets(&text).unwrap();
    assert_eq!((read.len(), read[HOST].controller.is_some()), (2, false));
    let problem = |text: &str| parse_secrets(text).unwrap_err().to_string();
    let twice = problem(&format!("{text}{HOST} {SECRET}"));
    assert!(twice.contains("line 5") && !twice.contains("AAEC"), "{twice}");
    assert!(problem(HOST).contains("line 1: it has 1 words"));
    assert!(!format!("{read:?}").contains("AAEC"));
}
