//! A state that a drive may be left in by a power cut.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::store::Content;
use crate::timeline::Timeline;

/// Every atom holds the newest version that was submitted before the cut, but for those that are named.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The power failed when the events before this one had happened.
    pub at: usize,
    /// Atoms that hold an older version: the event of the command that made it, or nothing for what was there
    /// in the beginning. In the order of atoms.
    pub lost: Vec<(u32, Option<u32>)>,
    /// Atoms that hold what recovery had written when the power failed for the second time: their bytes, in hexadecimal
    /// digits. In the order of atoms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<(u32, String)>,
}

impl State {
    /// The power failed once.
    pub const fn new(at: usize, lost: Vec<(u32, Option<u32>)>) -> Self {
        Self { at, lost, after: Vec::new() }
    }

    /// The error, if `timeline` has no such state.
    pub fn check(&self, timeline: &Timeline) -> Result<(), String> {
        if self.at > timeline.closed() {
            return Err(format!("there is no event {}", self.at));
        }
        for &(atom, event) in &self.lost {
            let is_before = event.is_none_or(|event| (event as usize) < self.at);
            if atom >= timeline.atoms() || !is_before || timeline.version_of(atom, event).is_none()
            {
                return Err(format!("atom {atom} has no version of event {event:?}"));
            }
        }
        for (atom, digits) in &self.after {
            let is_whole =
                bytes_of(digits).is_some_and(|bytes| bytes.len() == timeline.atom_bytes() as usize);
            if *atom >= timeline.atoms() || !is_whole {
                return Err(format!("atom {atom} has other bytes than an atom"));
            }
        }
        Ok(())
    }

    /// Atoms whose bytes differ from those of the newest version.
    pub fn lost_atoms(&self, timeline: &Timeline) -> Vec<u32> {
        let differs = |&(atom, event): &(u32, Option<u32>)| {
            let version = timeline.version_of(atom, event).expect("a version that there is");
            (version.content != timeline.newest(atom, self.at).content).then_some(atom)
        };
        self.lost.iter().filter_map(differs).collect()
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn digits_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// The bytes of hexadecimal digits.
fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// The drive's contents in a state.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    timeline: &'a Timeline,
    at: usize,
    lost: BTreeMap<u32, Content>,
    after: BTreeMap<u32, Vec<u8>>,
}

impl<'a> Image<'a> {
    /// The drive in `state`.
    ///
    /// # Panics
    /// If the timeline has no such state.
    pub fn new(timeline: &'a Timeline, state: &State) -> Self {
        let content = |&(atom, event): &(u32, Option<u32>)| {
            (atom, timeline.version_of(atom, event).expect("a version that there is").content)
        };
        let lost = state.lost.iter().map(content).collect();
        let after = state.after.iter();
        let after = after.map(|(atom, digits)| (*atom, bytes_of(digits).expect("it was checked")));
        Self { timeline, at: state.at, lost, after: after.collect() }
    }

    /// The bytes of an atom.
    pub fn atom(&self, atom: u32) -> &[u8] {
        if let Some(bytes) = self.after.get(&atom) {
            return bytes;
        }
        self.timeline.store().bytes(self.content(atom))
    }

    /// The content of an atom, if the power failed once only.
    pub(crate) fn content(&self, atom: u32) -> Content {
        let newest = || self.timeline.newest(atom, self.at).content;
        self.lost.get(&atom).copied().unwrap_or_else(newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_recovery_are_kept_in_digits() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes_of(&digits_of(&bytes)), Some(bytes));
        assert_eq!((digits_of(&[1, 0xfe]).as_str(), bytes_of("0g")), ("01fe", None));
        let timeline = Timeline::new(4_096, 512);
        let state =
            |digits: String| State { after: vec![(3, digits)], ..State::new(0, Vec::new()) };
        assert!(state(digits_of(&[7; 511])).check(&timeline).is_err());
        let whole = state(digits_of(&[7; 512]));
        assert_eq!(whole.check(&timeline), Ok(()));
        let image = Image::new(&timeline, &whole);
        assert_eq!((image.atom(3)[511], image.atom(2)[511]), (7, 0));
    }
}
