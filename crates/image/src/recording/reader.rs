//! The reader of recordings.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use leyden_sim::Time;

use super::error::{RecordingError, damaged};
use super::format::{FORMAT_VERSION, HEAD_BYTES, Head, Record, Step, version_of};
use super::frames::{fill, next_frame};

/// Later than any drive's clock: what is beyond is damage, and not added to.
const TIME_MOST: Time = Time::from_ns(1 << 62);

/// The commands to a drive, in memory.
#[derive(Debug)]
pub struct Recording {
    head: Head,
    /// The drive's state at rest, when the recording began.
    pub(super) base: Vec<u8>,
    /// For each unit that was at rest or has been written since, which bytes it has.
    pub(super) units: Vec<u32>,
    contents: Vec<u8>,
    /// The steps, and the number of the first unit of each.
    pub(super) steps: Vec<(Time, Step, u32)>,
    is_whole: bool,
}

/// No bytes: of a unit that the drive at rest does not point to.
const NONE: u32 = u32::MAX;

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    /// If it is none, or damaged. One that breaks off is no error: see [`Recording::is_whole`].
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        Self::read(&mut BufReader::new(File::open(path)?))
    }

    /// Reads a recording from its bytes.
    ///
    /// # Errors
    /// As [`Recording::open`].
    pub fn read(from: &mut impl Read) -> Result<Self, RecordingError> {
        let foreign = |what: &str| RecordingError::Foreign(what.to_owned());
        let mut head = [0; HEAD_BYTES];
        if fill(from, &mut head)? < HEAD_BYTES {
            return Err(foreign("it is too short"));
        }
        match version_of(&head) {
            None => return Err(foreign("it does not begin as a recording does")),
            Some(1..=FORMAT_VERSION) => {}
            Some(version) => {
                let what = format!(
                    "it has format version {version}, this Leyden reads 1 to {FORMAT_VERSION}"
                );
                return Err(foreign(&what));
            }
        }
        let mut building: Option<Building> = None;
        while let Some(frame) = next_frame(from)? {
            let mut records = &frame[..];
            while !records.is_empty() {
                let unit_bytes =
                    building.as_ref().map_or(4_096, |some| some.recording.head.unit_bytes);
                let record = Record::decode(&mut records, unit_bytes)
                    .ok_or_else(|| damaged("a record of it cannot be read"))?;
                match &mut building {
                    Some(building) => building.add(record)?,
                    None => building = Some(Building::begin(record)?),
                }
            }
        }
        building.ok_or_else(|| damaged("it breaks off before it names its drive"))?.end()
    }

    /// The recorded drive.
    pub const fn head(&self) -> &Head {
        &self.head
    }

    /// The steps in order, with the drive's times.
    pub fn steps(&self) -> impl ExactSizeIterator<Item = (Time, &Step)> {
        self.steps.iter().map(|(time, step, _)| (*time, step))
    }

    /// True if the drive was closed at its end. Else its process was killed, or the file is cut short: it is
    /// good up to its last step.
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// How many different units of bytes it has.
    pub const fn contents(&self) -> usize {
        self.contents.len() / self.head.unit_bytes as usize
    }

    /// The bytes with this number, of those that [`Step::Write`] names.
    ///
    /// # Panics
    /// If there are none.
    pub fn content(&self, number: u32) -> &[u8] {
        let bytes = self.head.unit_bytes as usize;
        &self.contents[number as usize * bytes..][..bytes]
    }

    /// The bytes of a unit that the replayed drive points to; `None` if they are not known.
    pub(super) fn bytes_of(&self, unit: u32) -> Option<&[u8]> {
        let content = *self.units.get(unit as usize)?;
        (content != NONE).then(|| self.content(content))
    }
}

/// A recording of which a part has been read.
struct Building {
    recording: Recording,
    last: Time,
}

impl Building {
    fn begin(record: Record) -> Result<Self, RecordingError> {
        let Record::Head(json) = record else {
            return Err(damaged("it does not begin with its drive"));
        };
        let head: Head = serde_json::from_slice(&json)
            .map_err(|error| RecordingError::Foreign(format!("its configuration: {error}")))?;
        // From 512 bytes to 64 KiB: what a mapping unit may have.
        if !(512..=65_536).contains(&head.unit_bytes) || !head.unit_bytes.is_power_of_two() {
            return Err(damaged("its mapping units have an impossible size"));
        }
        let recording = Recording {
            head,
            base: Vec::new(),
            units: Vec::new(),
            contents: Vec::new(),
            steps: Vec::new(),
            is_whole: false,
        };
        Ok(Self { recording, last: Time::ZERO })
    }

    fn add(&mut self, record: Record) -> Result<(), RecordingError> {
        let recording = &mut self.recording;
        if recording.is_whole {
            return Err(damaged("something follows its end"));
        }
        let known = recording.contents();
        match record {
            Record::Head(_) => return Err(damaged("it names its drive twice")),
            Record::Base(piece) => recording.base.extend(piece),
            Record::Content(bytes) if bytes.len() == recording.head.unit_bytes as usize => {
                recording.contents.extend(bytes);
            }
            Record::Content(_) => return Err(damaged("bytes of it are not those of a unit")),
            Record::BaseUnit(unit, content) => {
                if unit >= recording.head.base_units || content as usize >= known {
                    return Err(damaged("a unit at rest has a number that is not there"));
                }
                if recording.units.len() <= unit as usize {
                    recording.units.resize(unit as usize + 1, NONE);
                }
                recording.units[unit as usize] = content;
            }
            Record::Step(time, step) => self.step(time, step)?,
            Record::End => recording.is_whole = true,
        }
        Ok(())
    }

    fn step(&mut self, time: Time, step: Step) -> Result<(), RecordingError> {
        let recording = &mut self.recording;
        if time < self.last || time > TIME_MOST {
            return Err(damaged("its times go back"));
        }
        self.last = time;
        if recording.steps.is_empty() {
            recording.units.resize(recording.head.base_units as usize, NONE);
        }
        let first = recording.units.len() as u32;
        if let Step::Write(.., contents) | Step::Append(.., contents) = &step {
            if contents.iter().any(|&content| content as usize >= recording.contents()) {
                return Err(damaged("a write has bytes that are not there"));
            }
            recording.units.extend(contents);
        }
        recording.steps.push((time, step, first));
        Ok(())
    }

    fn end(mut self) -> Result<Recording, RecordingError> {
        if self.recording.base.is_empty() {
            return Err(damaged("it breaks off before the drive's state"));
        }
        if self.recording.steps.is_empty() {
            self.recording.units.resize(self.recording.head.base_units as usize, NONE);
        }
        Ok(self.recording)
    }
}
