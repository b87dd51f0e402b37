//! The share of the drive that each tenant got. Tenants are the jobs of a workload, or the classes of a
//! trace.
//!
//! A single tenant is not measured separately: it saw what the host saw.

use leyden_workload::{Class, ClassNames};

use super::traffic::{Sample, Traffic};

/// Names of tenants, by number.
#[derive(Clone, Debug)]
pub(super) enum Names {
    /// These; none if there can be one tenant only.
    Of(Vec<String>),
    /// As the classes of a trace, which may name more as it goes.
    Classes(ClassNames),
}

impl Names {
    /// How many there can be.
    fn most(&self) -> usize {
        match self {
            Self::Of(names) => names.len(),
            Self::Classes(_) => Class::MOST,
        }
    }

    /// All of them, by number.
    fn all(&self) -> Vec<&str> {
        match self {
            Self::Of(names) => names.iter().map(String::as_str).collect(),
            Self::Classes(names) => names.all().collect(),
        }
    }
}

/// All tenants, by their number in a [`Sample`].
#[derive(Clone, Debug)]
pub(super) struct Tenants {
    names: Names,
    /// How many there can be; 0 if there can be one only.
    most: usize,
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
    pub(super) fn new(names: Names) -> Self {
        Self { most: names.most(), names, heard: Heard::Nobody }
    }

    /// Forgets what was measured.
    pub(super) fn begin(&mut self) {
        self.heard = Heard::Nobody;
    }

    /// `all` is the traffic of all tenants so far.
    #[inline]
    pub(super) fn record(&mut self, sample: &Sample, latency_ns: u64, all: &Traffic) {
        if self.most == 0 {
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
                let mut shares = vec![None; self.most];
                shares[usize::from(first)] = Some(Box::new(all.clone()));
                Heard::Several(shares)
            }
            _ => Heard::One(tenant),
        };
    }

    /// The names and shares of the tenants with completions, if there are several: by number, and classes
    /// that their trace names, by name.
    pub(super) fn shares(&self) -> impl Iterator<Item = (&str, &Traffic)> {
        let shares = match &self.heard {
            Heard::Several(shares) => shares.as_slice(),
            Heard::Nobody | Heard::One(_) => &[],
        };
        let named = self.names.all().into_iter().zip(shares);
        let mut rows: Vec<_> =
            named.filter_map(|(name, share)| Some((name, share.as_deref()?))).collect();
        if matches!(self.names, Names::Classes(_)) {
            // In which order names come first is chance.
            let known = |name: &str| Class::NAMES.iter().position(|&known| known == name);
            rows.sort_by_key(|&(name, _)| (known(name).unwrap_or(usize::MAX), name));
        }
        rows.into_iter()
    }
}
