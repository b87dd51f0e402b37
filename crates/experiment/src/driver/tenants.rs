//! What each of those that share the drive got of it: the jobs of a workload, the classes of a trace.
//!
//! Whoever is alone is not measured apart: what the host saw is what that one saw.

use super::traffic::{Sample, Traffic};

/// All of them, by the number that a [`Sample`] says.
#[derive(Clone, Debug)]
pub(super) struct Tenants {
    /// Empty if there can be one only.
    names: Vec<String>,
    heard: Heard,
}

/// Of whom something has come.
#[derive(Clone, Debug)]
enum Heard {
    Nobody,
    One(u8),
    /// `None` of those of whom nothing has.
    Several(Vec<Option<Box<Traffic>>>),
}

impl Tenants {
    pub(super) fn new(names: Vec<String>) -> Self {
        Self { names, heard: Heard::Nobody }
    }

    /// Forgets what was measured.
    pub(super) fn begin(&mut self) {
        self.heard = Heard::Nobody;
    }

    /// `all` is what came of all of them before.
    #[inline]
    pub(super) fn record(&mut self, sample: &Sample, latency_ns: u64, all: &Traffic) {
        if self.names.is_empty() {
            return;
        }
        match &mut self.heard {
            Heard::One(only) if *only == sample.tenant => return,
            Heard::Several(_) => {}
            _ => self.hear_another(sample.tenant, all),
        }
        if let Heard::Several(shares) = &mut self.heard {
            let share = &mut shares[usize::from(sample.tenant)];
            let share = share.get_or_insert_with(|| Box::new(Traffic::new()));
            share.record(sample.op, sample.bytes, latency_ns);
        }
    }

    /// The first of all, or the second: what came before was the first one's.
    #[cold]
    fn hear_another(&mut self, tenant: u8, all: &Traffic) {
        self.heard = match self.heard {
            Heard::One(first) => {
                let mut shares = vec![None; self.names.len()];
                shares[usize::from(first)] = Some(Box::new(all.clone()));
                Heard::Several(shares)
            }
            _ => Heard::One(tenant),
        };
    }

    /// The names and shares of those of whom something has come, if there are several.
    pub(super) fn shares(&self) -> impl Iterator<Item = (&str, &Traffic)> {
        let shares = match &self.heard {
            Heard::Several(shares) => shares.as_slice(),
            Heard::Nobody | Heard::One(_) => &[],
        };
        let named = self.names.iter().zip(shares);
        named.filter_map(|(name, share)| Some((name.as_str(), share.as_deref()?)))
    }
}
