//! Preconditioned drives that several runs begin with: made once, and kept in memory until the last of
//! those runs has begun.
//!
//! **Invariants**: a drive that is taken from here goes on just as if it had been made for the run, which is
//! what a snapshot is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leyden_device::{Controller, Namespace, NoData, Payload, Stamp};

use super::RunError;
use super::precondition::Past;
use super::snapshot;
use leyden_config::{PreconditionKind, Scenario};

/// Drives for the runs of one command.
#[derive(Debug, Default)]
pub struct AgedDrives {
    /// By what decides their state.
    drives: BTreeMap<String, Mutex<Aged>>,
}

#[derive(Debug, Default)]
struct Aged {
    /// Runs that are still to begin with it.
    users: usize,
    drive: Option<Arc<Drive>>,
}

#[derive(Debug)]
struct Drive {
    snapshot: Vec<u8>,
    past: Past,
}

impl AgedDrives {
    /// Drives that more than one of `scenarios`, each of which is to be run once, begins with.
    pub fn of<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Self {
        let mut drives: BTreeMap<String, Mutex<Aged>> = BTreeMap::new();
        for scenario in scenarios {
            if scenario.precondition.kind != PreconditionKind::None {
                lock(drives.entry(key(scenario)).or_default()).users += 1;
            }
        }
        drives.retain(|_, aged| lock(aged).users > 1);
        Self { drives }
    }

    /// True if `scenario` shares its drive.
    pub fn is_shared(&self, scenario: &Scenario) -> bool {
        self.drives.contains_key(&key(scenario))
    }

    /// The drive that `scenario` begins with; made by `make` if this is the first run to ask. Others that
    /// ask meanwhile wait.
    pub(super) fn prepare<P: Payload, N: Namespace<P>>(
        &self,
        scenario: &Scenario,
        make: impl FnOnce() -> Result<(Controller<P, N>, Past), RunError>,
    ) -> Result<(Controller<P, N>, Past), RunError> {
        let Some(aged) = self.drives.get(&key(scenario)) else { return make() };
        let mut aged = lock(aged);
        let Some(drive) = aged.drive.clone() else {
            let (made, past) = make()?;
            aged.users = aged.users.saturating_sub(1);
            if aged.users > 0 {
                let mut snapshot = Vec::new();
                made.save(&mut snapshot).expect("memory takes all of it");
                aged.drive = Some(Arc::new(Drive { snapshot, past: past.clone() }));
            }
            return Ok((made, past));
        };
        aged.users = aged.users.saturating_sub(1);
        if aged.users == 0 {
            aged.drive = None;
        }
        drop(aged); // it is loaded while others load it too
        let mut from = drive.snapshot.as_slice();
        let loaded = Controller::load(&scenario.device, scenario.seed, &mut from)
            .unwrap_or_else(|error| panic!("a drive saved a moment ago: {error}"));
        Ok((loaded, drive.past.clone()))
    }
}

/// The facts that decide the state in which `scenario`'s drive begins: equal for equal drives.
pub fn key(scenario: &Scenario) -> String {
    if scenario.run.stamps {
        snapshot::fingerprint::<Stamp>(scenario)
    } else {
        snapshot::fingerprint::<NoData>(scenario)
    }
}

/// Of a run that panicked nothing is left to find: what it was making is made again.
fn lock(aged: &Mutex<Aged>) -> MutexGuard<'_, Aged> {
    aged.lock().unwrap_or_else(PoisonError::into_inner)
}
