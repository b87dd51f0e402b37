//! DH-HMAC-CHAP: on each queue a host proves that it knows its secret, and a controller that it knows its own, if the host asks
//! (Base 2.0, section 8.13.5).
//!
//! **Invariants**
//! - Messages come in one order. One that is out of it, or wrong, ends the exchange, and with it the connection.
//! - No secret is sent or logged. Answers are compared in constant time.

mod group;
mod hash;
mod message;
mod secret;
#[cfg(test)]
mod tests;

use group::Group;
use hash::Hash;
use thiserror::Error;
use zerocopy::{FromBytes, IntoBytes};

use message::{Failure, Head, Negotiate, Protocol, Reply, Success1};
pub use secret::{HostSecrets, Secret, SecretError, parse_secrets};

/// Bytes of a message at most.
pub const MESSAGE_MOST: usize = 4_096;

/// Chance for one exchange: fresh, and from a source that nobody can guess.
#[derive(Clone, Copy)]
pub struct Entropy {
    /// The challenge; of a shorter hash its first bytes.
    pub challenge: [u8; 64],
    /// The exponent of Diffie-Hellman: more than twice the strength of each group.
    pub exponent: [u8; 64],
    /// The number of the challenge.
    pub sequence: u32,
}

/// Why an exchange has failed, by the number that the other side is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Wrong {
    /// The controller's answer: the host has said so.
    #[error("the controller's secret is another one for it")]
    Controller = 0,
    /// Its answer.
    #[error("its secret is another one")]
    Answer = 1,
    /// Its protocols.
    #[error("it offers no protocol that is known here")]
    Protocol = 2,
    /// A secure channel.
    #[error("it asks for a secure channel")]
    SecureChannel = 3,
    /// Its hash functions.
    #[error("it offers no hash function that is known here")]
    Hash = 4,
    /// Its groups.
    #[error("it offers no group that is known here")]
    Group = 5,
    /// The content of a message.
    #[error("a message does not hold what it should")]
    Payload = 6,
    /// The order of messages.
    #[error("another message was due")]
    Message = 7,
}

/// The controller's side of what was challenged.
#[derive(Clone)]
struct Challenge {
    hash: Hash,
    group: Group,
    entropy: Entropy,
}

#[derive(Clone)]
enum Stage {
    /// The host begins.
    Negotiate,
    /// The host fetches the challenge.
    Challenge(Challenge),
    /// The host answers.
    Reply(Challenge),
    /// The host fetches the verdict, and the answer to its challenge in return.
    Success1 { hash: Hash, answer: Option<Vec<u8>> },
    /// The host confirms that answer.
    Success2,
    /// The host fetches what was wrong.
    Failed(Wrong),
    /// It is over, and so is the connection.
    Over,
}

/// The exchange on one queue.
#[derive(Clone)]
pub struct Exchange {
    host: String,
    subsystem: String,
    secrets: HostSecrets,
    transaction: u16,
    stage: Stage,
    is_authenticated: bool,
    wrong: Option<Wrong>,
}

impl Exchange {
    /// An exchange that the host is to begin.
    pub fn new(host: &str, subsystem: &str, secrets: HostSecrets) -> Self {
        Self {
            host: host.to_owned(),
            subsystem: subsystem.to_owned(),
            secrets,
            transaction: 0,
            stage: Stage::Negotiate,
            is_authenticated: false,
            wrong: None,
        }
    }

    /// True once the host has proved who it is. It may begin again later, and stays authenticated meanwhile.
    pub const fn is_authenticated(&self) -> bool {
        self.is_authenticated
    }

    /// True if it has failed and the host was told: its connection is to end.
    pub const fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over)
    }

    /// The reason of a failure.
    pub const fn wrong(&self) -> Option<Wrong> {
        self.wrong
    }

    /// Takes a message of the host (Authentication Send).
    pub fn send(&mut self, data: &[u8], entropy: Entropy) {
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        self.stage = match self.next(stage, data, entropy) {
            Ok(stage) => stage,
            Err(wrong) => self.fail(wrong),
        };
    }

    fn next(&mut self, stage: Stage, data: &[u8], entropy: Entropy) -> Result<Stage, Wrong> {
        let (head, _) = Head::ref_from_prefix(data).map_err(|_| Wrong::Payload)?;
        let (kind, id) = (head.kind, head.id);
        if (kind, id) == (message::COMMON, message::FAILURE2) {
            self.wrong = Some(Wrong::Controller);
            return Ok(Stage::Over);
        }
        if matches!(stage, Stage::Failed(_) | Stage::Over) {
            return Ok(stage);
        }
        if matches!(stage, Stage::Negotiate) {
            self.transaction = head.transaction.get();
        } else if head.transaction.get() != self.transaction {
            return Err(Wrong::Payload);
        }
        match (stage, kind, id) {
            (Stage::Negotiate, message::COMMON, message::NEGOTIATE) => {
                negotiate(data, entropy).map(Stage::Challenge)
            }
            (Stage::Reply(challenge), message::DHCHAP, message::REPLY) => {
                self.judge(&challenge, data)
            }
            (Stage::Success2, message::DHCHAP, message::SUCCESS2) => {
                self.is_authenticated = true;
                Ok(Stage::Negotiate)
            }
            _ => Err(Wrong::Message),
        }
    }

    /// The message that is due to the host (Authentication Receive), as long as it asks for.
    ///
    /// # Errors
    /// The bytes that are needed, if `bytes` are too few.
    pub fn receive(&mut self, bytes: usize) -> Result<Vec<u8>, usize> {
        let mut text = self.due();
        if text.len() > bytes {
            return Err(text.len());
        }
        text.resize(bytes, 0);
        let stage = std::mem::replace(&mut self.stage, Stage::Over);
        self.stage = match stage {
            Stage::Challenge(challenge) => Stage::Reply(challenge),
            Stage::Success1 { answer: Some(_), .. } => Stage::Success2,
            Stage::Success1 { answer: None, .. } => {
                self.is_authenticated = true;
                Stage::Negotiate
            }
            Stage::Failed(_) | Stage::Over => Stage::Over,
            Stage::Negotiate | Stage::Reply(_) | Stage::Success2 => {
                self.wrong = Some(Wrong::Message);
                Stage::Over
            }
        };
        Ok(text)
    }

    fn due(&self) -> Vec<u8> {
        match &self.stage {
            Stage::Challenge(challenge) => {
                let Challenge { hash, group, entropy } = challenge;
                let public = match group {
                    Group::Null => Vec::new(),
                    group => group.public(&entropy.exponent),
                };
                let head = message::Challenge {
                    head: self.head(message::DHCHAP, message::CHALLENGE),
                    hash_bytes: hash.bytes() as u8,
                    reserved: 0,
                    hash: hash.id(),
                    group: group.id(),
                    public_bytes: (public.len() as u16).into(),
                    sequence: entropy.sequence.into(),
                };
                [head.as_bytes(), challenge.text(), &public].concat()
            }
            Stage::Success1 { hash, answer } => {
                let head = Success1 {
                    head: self.head(message::DHCHAP, message::SUCCESS1),
                    hash_bytes: hash.bytes() as u8,
                    reserved: 0,
                    has_answer: answer.is_some().into(),
                    reserved2: [0; 7],
                };
                [head.as_bytes(), answer.as_deref().unwrap_or_default()].concat()
            }
            Stage::Failed(wrong) => self.failure(*wrong),
            Stage::Negotiate | Stage::Reply(_) | Stage::Success2 | Stage::Over => {
                self.failure(Wrong::Message)
            }
        }
    }

    /// Looks at the host's answer, and answers its challenge in return.
    fn judge(&self, challenge: &Challenge, data: &[u8]) -> Result<Stage, Wrong> {
        let Challenge { hash, group, entropy } = challenge;
        let (reply, rest) = Reply::ref_from_prefix(data).map_err(|_| Wrong::Payload)?;
        let (bytes, public_bytes) = (hash.bytes(), usize::from(reply.public_bytes.get()));
        if usize::from(reply.hash_bytes) != bytes || public_bytes != group.bytes() {
            return Err(Wrong::Payload);
        }
        let fields = rest.split_at_checked(bytes).and_then(|(answer, rest)| {
            let (theirs, rest) = rest.split_at_checked(bytes)?;
            Some((answer, theirs, rest.get(..public_bytes)?))
        });
        let (answer, theirs, public) = fields.ok_or(Wrong::Payload)?;
        let shared = match group {
            Group::Null => None,
            group => Some(group.shared(&entropy.exponent, public).ok_or(Wrong::Payload)?),
        };
        let augmented = |text: &[u8]| match &shared {
            None => text.to_vec(),
            Some(shared) => hash.keyed(&hash.digest(shared), &[text]),
        };
        let transaction = self.transaction.to_le_bytes();
        let (host, subsystem) = (self.host.as_bytes(), self.subsystem.as_bytes());
        let key = self.secrets.host.key_of(&self.host);
        let (ours, sequence) = (augmented(challenge.text()), entropy.sequence.to_le_bytes());
        let parts: [&[u8]; 8] =
            [&ours, &sequence, &transaction, &[0], b"HostHost", host, &[0], subsystem];
        if !hash.is_keyed(&key, &parts, answer) {
            return Err(Wrong::Answer);
        }
        if reply.has_challenge == 0 {
            return Ok(Stage::Success1 { hash: *hash, answer: None });
        }
        let secret = self.secrets.controller.as_ref().ok_or(Wrong::Answer)?;
        let key = secret.key_of(&self.subsystem);
        let (theirs, sequence) = (augmented(theirs), reply.sequence.get().to_le_bytes());
        let parts: [&[u8]; 8] =
            [&theirs, &sequence, &transaction, &[0], b"Controller", subsystem, &[0], host];
        Ok(Stage::Success1 { hash: *hash, answer: Some(hash.keyed(&key, &parts)) })
    }

    const fn fail(&mut self, wrong: Wrong) -> Stage {
        self.wrong = Some(wrong);
        Stage::Failed(wrong)
    }

    fn failure(&self, wrong: Wrong) -> Vec<u8> {
        let head = self.head(message::COMMON, message::FAILURE1);
        Failure { head, reason: 1, explanation: wrong as u8 }.as_bytes().to_vec()
    }

    fn head(&self, kind: u8, id: u8) -> Head {
        Head { kind, id, reserved: 0.into(), transaction: self.transaction.into() }
    }
}

impl Challenge {
    /// The challenge, as long as the hash.
    fn text(&self) -> &[u8] {
        &self.entropy.challenge[..self.hash.bytes()]
    }
}

/// The hash function and the group, of those that the host knows.
fn negotiate(data: &[u8], entropy: Entropy) -> Result<Challenge, Wrong> {
    let (begun, rest) = Negotiate::ref_from_prefix(data).map_err(|_| Wrong::Payload)?;
    if begun.secure_channel != 0 {
        return Err(Wrong::SecureChannel);
    }
    let count = usize::from(begun.protocols);
    let (protocols, _) =
        <[Protocol]>::ref_from_prefix_with_elems(rest, count).map_err(|_| Wrong::Payload)?;
    let known = protocols.iter().find(|it| it.id == message::DHCHAP).ok_or(Wrong::Protocol)?;
    let hashes = known.hash_ids.get(..usize::from(known.hashes)).ok_or(Wrong::Payload)?;
    let groups = known.group_ids.get(..usize::from(known.groups)).ok_or(Wrong::Payload)?;
    let hash = Hash::of(hashes).ok_or(Wrong::Hash)?;
    let group = Group::of(groups).ok_or(Wrong::Group)?;
    Ok(Challenge { hash, group, entropy })
}
