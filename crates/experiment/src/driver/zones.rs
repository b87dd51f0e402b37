//! A host of a zoned drive as a source of requests.

use leyden_sim::Time;
use leyden_workload::Request;
use leyden_workload::zoned::{Ask, Host, ZoneLeft, is_protected};

use super::DriveError;
use super::pump::{Next, Source};

/// A host, and whether what it writes may ask for protection.
pub(super) struct Zones<'h> {
    host: &'h mut dyn Host,
    has_region: bool,
}

impl<'h> Zones<'h> {
    pub(super) fn new(host: &'h mut dyn Host, has_region: bool) -> Self {
        Self { host, has_region }
    }
}

impl Source for Zones<'_> {
    fn next(&mut self, now: Time) -> Result<Next, DriveError> {
        Ok(match self.host.next(now) {
            Ask::Submit { request, owner } => Next::Submit { request, owner, arrived: now },
            Ask::At(time) => Next::At(time),
            Ask::Wait => Next::Wait,
            Ask::End => Next::End,
        })
    }

    fn tenants(&self) -> Vec<String> {
        self.host.tenants()
    }

    fn tenant(&self, owner: u32, _: &Request) -> u8 {
        self.host.tenant(owner)
    }

    fn completed(&mut self, owner: u32, now: Time) {
        self.host.completed(owner, now);
    }

    fn cut_off(&mut self, owner: u32, now: Time) {
        self.host.cut_off(owner, now);
    }

    fn recovered(&mut self, now: Time, zones: &[ZoneLeft]) {
        self.host.recovered(now, zones);
    }

    fn fraction(&self, _: Time) -> f64 {
        self.host.fraction()
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    fn asks_for_protection(&self, request: &Request) -> bool {
        self.has_region && is_protected(request)
    }
}
