//! A host of a zoned drive as a source of requests.

use leyden_sim::Time;
use leyden_workload::Request;
use leyden_workload::zoned::{Ask, Host, ZoneLeft};

use super::pump::{Next, Source};
use super::tenants::Names;
use super::{DriveError, ZoneProtection};

/// A host, and what it may ask for.
pub(super) struct Zones<'h> {
    host: &'h mut dyn Host,
    protection: ZoneProtection,
}

impl<'h> Zones<'h> {
    pub(super) fn new(host: &'h mut dyn Host, protection: ZoneProtection) -> Self {
        Self { host, protection }
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

    fn tenants(&self) -> Names {
        Names::Of(self.host.tenants())
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
        self.protection.is_asked_by(request)
    }
}
