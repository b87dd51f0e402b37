//! Secrets, as `nvme gen-dhchap-key` prints them, and the keys that are made of them.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use thiserror::Error;

use super::hash::Hash;

/// Why a secret or a line of secrets is none.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SecretError {
    /// Its form.
    #[error("a secret has the form DHHC-1:HH:BASE64:, with HH from 00 to 03")]
    Form,
    /// Its length.
    #[error("a secret has 32, 48 or 64 bytes, and this one has {0}")]
    Length(usize),
    /// Its check sum.
    #[error("the check sum of a secret is wrong: a character was changed or is missing")]
    CheckSum,
    /// A line of a file.
    #[error(
        "line {line}: {problem}\n  help: write HOST-NQN SECRET, or HOST-NQN SECRET CONTROLLER-SECRET"
    )]
    Line {
        /// Counted from 1.
        line: usize,
        /// The problem.
        problem: String,
    },
}

/// A secret that a host, or a controller, proves to know.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    key: Vec<u8>,
    /// The hash that binds it to a name; `None` if it is used as it is.
    hash: Option<Hash>,
}

// A secret has no place in logs.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Reads `DHHC-1:HH:BASE64:`.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<Self, SecretError> {
        let rest = text.strip_prefix("DHHC-1:").ok_or(SecretError::Form)?;
        let (kind, rest) = rest.split_once(':').ok_or(SecretError::Form)?;
        let encoded = rest.strip_suffix(':').ok_or(SecretError::Form)?;
        let hash = match kind {
            "00" => None,
            "01" => Some(Hash::Sha256),
            "02" => Some(Hash::Sha384),
            "03" => Some(Hash::Sha512),
            _ => return Err(SecretError::Form),
        };
        let bytes = STANDARD.decode(encoded).map_err(|_| SecretError::Form)?;
        let (key, sum) = bytes.split_last_chunk::<4>().ok_or(SecretError::Form)?;
        if !matches!(key.len(), 32 | 48 | 64) {
            return Err(SecretError::Length(key.len()));
        }
        if crc32fast::hash(key) != u32::from_le_bytes(*sum) {
            return Err(SecretError::CheckSum);
        }
        Ok(Self { key: key.to_vec(), hash })
    }

    /// The key of whoever has this name.
    pub(super) fn key_of(&self, name: &str) -> Vec<u8> {
        match self.hash {
            None => self.key.clone(),
            Some(hash) => hash.keyed(&self.key, &[name.as_bytes(), b"NVMe-over-Fabrics"]),
        }
    }
}

/// The secrets between a host and the controllers that it connects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostSecrets {
    /// The host's.
    pub host: Secret,
    /// The controller's, of which it proves knowledge to a host that asks for it.
    pub controller: Option<Secret>,
}

/// Reads a file of secrets: on each line a host's name, its secret, and perhaps the controller's. Empty lines and those that begin
/// with `#` say nothing.
///
/// # Errors
/// Names the line that is wrong, and never what stands in it.
pub fn parse_secrets(text: &str) -> Result<BTreeMap<String, HostSecrets>, SecretError> {
    let mut secrets = BTreeMap::new();
    for (line, content) in (1..).zip(text.lines()) {
        let wrong = |problem: String| SecretError::Line { line, problem };
        let secret = |text: &str| Secret::parse(text).map_err(|error| wrong(error.to_string()));
        let words: Vec<&str> = content.split_whitespace().collect();
        let (name, found) = match words[..] {
            [] => continue,
            [first, ..] if first.starts_with('#') => continue,
            [name, host] => (name, HostSecrets { host: secret(host)?, controller: None }),
            [name, host, controller] => {
                let controller = Some(secret(controller)?);
                (name, HostSecrets { host: secret(host)?, controller })
            }
            _ => return Err(wrong(format!("it has {} words", words.len()))),
        };
        if secrets.insert(name.to_owned(), found).is_some() {
            return Err(wrong("its host has a secret already".to_owned()));
        }
    }
    Ok(secrets)
}
