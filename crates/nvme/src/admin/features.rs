//! Features: what a host sets and asks (Base 2.0, 5.27).

use super::Done;
use crate::controller::{Controller, Kind, QUEUES_MOST};
use crate::events::CONFIGURABLE;
use crate::pci::VECTORS;
use crate::status::Status;
use crate::wire::Sqe;

const ARBITRATION: u8 = 0x01;
const POWER: u8 = 0x02;
const TEMPERATURE: u8 = 0x04;
const RECOVERY: u8 = 0x05;
const CACHE: u8 = 0x06;
const QUEUES: u8 = 0x07;
const COALESCING: u8 = 0x08;
const VECTOR: u8 = 0x09;
const ATOMICITY: u8 = 0x0a;
const EVENTS: u8 = 0x0b;
const KEEP_ALIVE: u8 = 0x0f;
const BEHAVIOUR: u8 = 0x16;
const HOST: u8 = 0x81;

/// "Select" of Get Features: what it has now, at first, saved, and whether it can be changed.
const CURRENT: u32 = 0;
const CAPABILITIES: u32 = 3;
const CHANGEABLE: u64 = 1 << 2;
const SAVE: u32 = 1 << 31;
/// The composite sensor, and all of them, in feature 04h.
const SENSORS: [u32; 2] = [0, 0xf];
const SENSOR: u32 = 0xf << 16;
/// Coalescing disabled, in feature 09h.
const UNCOALESCED: u32 = 1 << 16;

const fn is_changeable(feature: u8) -> bool {
    matches!(
        feature,
        TEMPERATURE
            | CACHE
            | QUEUES
            | COALESCING
            | VECTOR
            | ATOMICITY
            | EVENTS
            | KEEP_ALIVE
            | BEHAVIOUR
    )
}

/// Interrupts are a PCI function's: over fabrics their features are prohibited (Base 2.0, figure 32).
fn is_known(feature: u8, kind: Kind) -> bool {
    let is_discovery = kind == Kind::Discovery;
    match feature {
        EVENTS | KEEP_ALIVE => true,
        COALESCING | VECTOR => kind == Kind::Pci,
        ARBITRATION | POWER | TEMPERATURE | RECOVERY | CACHE | QUEUES | ATOMICITY | BEHAVIOUR
        | HOST => !is_discovery,
        _ => false,
    }
}

/// The interrupt vector that feature 09h is about.
const fn vector(cdw11: u32) -> Result<u16, Status> {
    let vector = cdw11 as u16;
    if vector < VECTORS { Ok(vector) } else { Err(Status::INVALID_FIELD) }
}

/// As many queues of both kinds, 0's based.
const fn pair(queues: u16) -> u64 {
    let last = queues as u64 - 1;
    last | last << 16
}

impl Controller {
    fn feature(&self, feature: u8, cdw11: u32) -> Done {
        let settings = &self.settings;
        let number = match feature {
            CACHE => u64::from(settings.caches),
            QUEUES => pair(self.granted),
            ATOMICITY => u64::from(settings.power_fail_only),
            COALESCING => u64::from(settings.coalescing),
            VECTOR => {
                let vector = vector(cdw11)?;
                u64::from(vector) | u64::from(settings.uncoalesced >> vector & 1) << 16
            }
            EVENTS => u64::from(self.events.enabled),
            KEEP_ALIVE => u64::from(self.keep_alive_ms),
            TEMPERATURE if SENSOR & cdw11 == 0 => {
                u64::from(settings.temperatures[usize::from(cdw11 & 1 << 20 != 0)])
            }
            BEHAVIOUR => return Ok((0, settings.behaviour.to_vec())),
            HOST if cdw11 & 1 != 0 => return Ok((0, self.host.id.to_vec())),
            // No other sensor; no identifiers of 64 bits.
            TEMPERATURE | HOST => return Err(Status::INVALID_FIELD),
            _ => 0,
        };
        Ok((number, Vec::new()))
    }

    fn set(&mut self, feature: u8, value: u32, data: &[u8], now_ms: u64) -> Result<u64, Status> {
        match feature {
            CACHE => self.settings.caches = value & 1 != 0,
            ATOMICITY => self.settings.power_fail_only = value & 1 != 0,
            COALESCING => self.settings.coalescing = value as u16,
            VECTOR => {
                let bit = 1 << vector(value)?;
                let off = if value & UNCOALESCED != 0 { bit } else { 0 };
                self.settings.uncoalesced = self.settings.uncoalesced & !bit | off;
            }
            KEEP_ALIVE => self.set_keep_alive(value, now_ms),
            EVENTS if value & !CONFIGURABLE != 0 => return Err(Status::INVALID_FIELD),
            EVENTS => self.events.enabled = value,
            QUEUES => {
                let (submission, completion) = (value & 0xffff, value >> 16);
                if submission == 0xffff || completion == 0xffff {
                    return Err(Status::INVALID_FIELD);
                }
                let asked = submission.min(completion) + 1;
                self.granted = asked.min(u32::from(QUEUES_MOST)) as u16;
                return Ok(pair(self.granted));
            }
            TEMPERATURE if !SENSORS.contains(&(value >> 16 & 0xf)) => {
                return Err(Status::INVALID_FIELD);
            }
            TEMPERATURE => {
                self.settings.temperatures[usize::from(value & 1 << 20 != 0)] = value as u16;
            }
            BEHAVIOUR => {
                let data = data.first_chunk().ok_or(Status::SGL_LENGTH)?;
                self.settings.behaviour = *data;
            }
            _ => return Err(Status::SEQUENCE), // the host's identifier comes with Connect
        }
        Ok(0)
    }
}

/// Get Features.
pub(super) fn get_feature(controller: &Controller, sqe: &Sqe) -> Done {
    let (feature, select) = (sqe.cdw10.get() as u8, sqe.cdw10.get() >> 8 & 7);
    if !is_known(feature, controller.kind) {
        return Err(Status::INVALID_FIELD);
    }
    match select {
        CURRENT => controller.feature(feature, sqe.cdw11.get()),
        CAPABILITIES => Ok((if is_changeable(feature) { CHANGEABLE } else { 0 }, Vec::new())),
        // Nothing is saved: what was at first is what would be there again.
        1 | 2 => {
            let host = controller.host.clone();
            let first = Controller::new(host, controller.kind, 0, 0);
            first.feature(feature, sqe.cdw11.get())
        }
        _ => Err(Status::INVALID_FIELD),
    }
}

/// Set Features.
pub(super) fn set_feature(
    controller: &mut Controller,
    sqe: &Sqe,
    data: &[u8],
    now_ms: u64,
) -> Result<u64, Status> {
    let feature = sqe.cdw10.get() as u8;
    if !is_known(feature, controller.kind) {
        return Err(Status::INVALID_FIELD);
    }
    if sqe.cdw10.get() & SAVE != 0 {
        return Err(Status::NOT_SAVEABLE);
    }
    if !is_changeable(feature) && feature != HOST {
        return Err(Status::NOT_CHANGEABLE);
    }
    controller.set(feature, sqe.cdw11.get(), data, now_ms)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ask, sqe};
    use super::*;
    use crate::controller::Host;
    use crate::subsystem::tests::{ready, subsystem};

    #[test]
    fn set_features_are_reported() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        let mut set = |feature: u32, value| {
            let set = sqe(0x09, 0, feature, value, 0);
            let told = ask(&mut subsystem, number, &set);
            let get = sqe(0x0a, 0, feature & 0xff, value & 0x001f_0000, 0);
            (told.map(|it| it.0), ask(&mut subsystem, number, &get).map(|it| it.0))
        };
        assert_eq!(set(0x06, 0), (Ok(0), Ok(0)));
        assert_eq!(set(0x06, 1), (Ok(0), Ok(1)));
        assert_eq!(set(0x07, 3 | 7 << 16), (Ok(3 | 3 << 16), Ok(3 | 3 << 16)));
        assert_eq!(set(0x07, 127 | 127 << 16).0, Ok(15 | 15 << 16), "no more than there are");
        assert_eq!(set(0x07, 0xffff).0, Err(Status::INVALID_FIELD));
        assert_eq!(set(0x0a, 1), (Ok(0), Ok(1)));
        assert_eq!(set(0x0b, 1 << 8 | 1 << 27), (Ok(0), Ok(1 << 8 | 1 << 27)));
        assert_eq!(set(0x0b, 1 << 9).0, Err(Status::INVALID_FIELD));
        assert_eq!(set(0x04, 350), (Ok(0), Ok(350)));
        assert_eq!(set(0x04, 1 << 20 | 0xc8), (Ok(0), Ok(200)), "the lower threshold");
        assert_eq!(set(0x04, 1 << 16 | 0x3).0, Err(Status::INVALID_FIELD), "a sensor");
        assert_eq!(set(0x06 | 1 << 31, 0).0, Err(Status::NOT_SAVEABLE));
        assert_eq!(set(0x02, 1).0, Err(Status::NOT_CHANGEABLE));
        assert_eq!(set(0x81, 1).0, Err(Status::SEQUENCE));
        for unknown in [0x00, 0x03, 0x08, 0x09, 0x0c, 0x0e, 0x10, 0x19, 0x7f, 0xff] {
            assert_eq!(set(unknown, 0), (Err(Status::INVALID_FIELD), Err(Status::INVALID_FIELD)));
        }
    }

    /// Features of a PCI function alone; each vector has its own.
    #[test]
    fn interrupts_have_features() {
        let host = Host { name: String::new(), id: [0; 16] };
        let mut controller = Controller::new(host, Kind::Pci, 0, 0);
        let mut set = |feature: u32, value: u32, asked: u32| {
            let told = set_feature(&mut controller, &sqe(9, 0, feature, value, 0), &[], 0);
            let get = get_feature(&controller, &sqe(0x0a, 0, feature, asked, 0));
            (told, get.map(|it| it.0))
        };
        assert_eq!(set(0x08, 0x1_0305, 0), (Ok(0), Ok(0x0305)));
        assert_eq!(set(0x09, 1 << 16 | 3, 3), (Ok(0), Ok(1 << 16 | 3)));
        assert_eq!(set(0x09, 1 << 16 | 16, 2), (Ok(0), Ok(2)));
        assert_eq!(set(0x09, 3, 16), (Ok(0), Ok(1 << 16 | 16)));
        assert_eq!(set(0x09, 17, 17), (Err(Status::INVALID_FIELD), Err(Status::INVALID_FIELD)));
    }

    #[test]
    fn defaults_and_changeability_are_reported_too() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        ask(&mut subsystem, number, &sqe(0x09, 0, 0x06, 0, 0)).unwrap();
        let mut get = |select: u32, feature: u32, bytes| {
            let get = sqe(0x0a, 0, feature | select << 8, 1, bytes);
            ask(&mut subsystem, number, &get)
        };
        assert_eq!(get(1, 6, 0).unwrap().0, 1);
        assert_eq!(get(3, 6, 0).unwrap().0, 4);
        assert_eq!(get(3, 2, 0).unwrap().0, 0);
        assert_eq!(get(4, 6, 0), Err(Status::INVALID_FIELD));
        assert_eq!(get(0, 0x81, 16).unwrap().1, [7; 16]);
        assert_eq!(get(0, 0x81, 8), Err(Status::SGL_LENGTH));
        assert_eq!(get(0, 0x16, 512).unwrap().1, [0; 512]);
    }
}
