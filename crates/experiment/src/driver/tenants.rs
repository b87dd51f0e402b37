//! The share of the drive that each tenant got. Tenants are the jobs of a workload, or the classes of a
//! trace.
//!
//! A single tenant is not measured separately: it saw what the host saw.

use super::traffic::{Sample, Traffic};

/// All tenants, by their number in a [`Sample`].
#[derive(Clone, Debug)]
pub(super) struct Tenants {
    /// Empty if there can be one only.
    names: Vec<String>,
    heard: Heard,
}

/// Which tenants have completed a command.
#[derive(Clone, Debug)]
enum Heard {
    Nobody,
    One(u8),
    /// `None` for a tenant without completions.
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

    /// `all` is the traffic of all tenants so far.
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

    /// The first tenant, or the second: all traffic so far was the first one's.
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

    /// The names and shares of the tenants with completions, if there are several.
    pub(super) fn shares(&self) -> impl Iterator<Item = (&str, &Traffic)> {
        let shares = match &self.heard {
            Heard::Several(shares) => shares.as_slice(),
            Heard::Nobody | Heard::One(_) => &[],
        };
        let named = self.names.iter().zip(shares);
        named.filter_map(|(name, share)| Some((name.as_str(), share.as_deref()?)))
    }
}
