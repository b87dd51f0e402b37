//! The subsystem: its name, its namespaces, who may connect, and the controllers of those who have.
//!
//! **Invariants**
//! - A controller's number is not used again while its queues are connected.
//! - An I/O queue belongs to the host that has the controller, by name and by identifier.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::auth::{Exchange, HostSecrets};
use crate::controller::{Controller, Failed, Host, Kind, QUEUE_MOST, QUEUES_MOST};
use crate::events::Event;
use crate::fabrics::{
    BAD_QUEUE, BAD_SIZE, Connect, Connected, NO_CONTROLLER, NO_HOST, NO_HOST_ID, NO_SUBSYSTEM,
    Property,
};
use crate::namespace::Namespace;
use crate::status::Status;
use crate::wire::{FabricsSqe, Sqe};

/// The name of discovery controllers.
pub const DISCOVERY_NQN: &str = "nqn.2014-08.org.nvmexpress.discovery";
/// Bytes of a name at most.
pub const NQN_MOST: usize = 223;
/// Any controller: what a host asks for that has none yet.
const DYNAMIC: u16 = 0xffff;
/// The last number of a controller.
const LAST: u16 = 0xffef;
/// Hosts at once.
const CONTROLLERS_MOST: usize = 256;
/// A discovery controller whose host names no time is kept for so long.
const DISCOVERY_KEEP_ALIVE_MS: u32 = 120_000;

/// Why there can be no such subsystem.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SubsystemError {
    /// The name is none.
    #[error(
        "`{0}` is no NVMe qualified name\n  help: write nqn.YYYY-MM.REVERSE.DOMAIN:NAME, of at most 223 bytes"
    )]
    Name(String),
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Subsystem {
    name: String,
    /// Twenty characters that no other subsystem has.
    pub(crate) serial: String,
    pub(crate) namespaces: Vec<Namespace>,
    /// Names of hosts that may connect; all, if there are none.
    allowed: Vec<String>,
    /// The secrets of hosts, by name. If there are any, no other host may connect.
    secrets: BTreeMap<String, HostSecrets>,
    controllers: BTreeMap<u16, Controller>,
    last: u16,
}

/// Whether `name` is an NVMe qualified name (Base 2.0, 4.5).
fn is_name(name: &str) -> bool {
    let date = |text: &str| {
        let bytes = text.as_bytes();
        let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        [0, 1, 2, 3, 5, 6].into_iter().all(digit) && bytes[4] == b'-'
    };
    let Some(rest) = name.strip_prefix("nqn.") else { return false };
    let has_domain = rest.get(7..).is_some_and(|it| it.starts_with('.') && it.contains(':'));
    let is_clean = !name.chars().any(|it| it.is_control() || it.is_whitespace());
    name.len() <= NQN_MOST && date(rest) && has_domain && is_clean
}

impl Subsystem {
    /// A subsystem with these namespaces, numbered from 1 on, for hosts of these names.
    ///
    /// # Errors
    /// If a name is none.
    pub fn new(
        name: String,
        serial: String,
        namespaces: Vec<Namespace>,
        allowed: Vec<String>,
    ) -> Result<Self, SubsystemError> {
        for name in allowed.iter().chain([&name]) {
            if !is_name(name) {
                return Err(SubsystemError::Name(name.clone()));
            }
        }
        let (controllers, secrets) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { name, serial, namespaces, allowed, secrets, controllers, last: 0 })
    }

    /// A subsystem whose hosts have to prove who they are, and of which each has a secret.
    ///
    /// # Errors
    /// If a name is none.
    pub fn with_secrets(
        mut self,
        secrets: BTreeMap<String, HostSecrets>,
    ) -> Result<Self, SubsystemError> {
        if let Some(name) = secrets.keys().find(|name| !is_name(name)) {
            return Err(SubsystemError::Name(name.clone()));
        }
        self.secrets = secrets;
        Ok(self)
    }

    /// The exchange by which the host of a queue that was just connected proves who it is; `None` if it need not. Discovery
    /// tells names only, and Linux authenticates no host for it.
    pub fn exchange(&self, queue: Connected) -> Option<Exchange> {
        let host = &self.controllers.get(&queue.controller)?.host.name;
        let secrets = self.secrets.get(host).filter(|_| !queue.is_discovery)?;
        Some(Exchange::new(host, &self.name, secrets.clone()))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace with this number.
    ///
    /// # Errors
    /// 00Bh if there is none.
    pub fn namespace(&self, number: u32) -> Result<&Namespace, Status> {
        Namespace::numbered(&self.namespaces, number)
    }

    /// Its namespaces.
    pub fn namespaces(&self) -> &[Namespace] {
        &self.namespaces
    }

    /// A controller that is there.
    ///
    /// # Errors
    /// 00Ch if it has gone.
    pub fn controller(&self, number: u16) -> Result<&Controller, Status> {
        self.controllers.get(&number).ok_or(Status::SEQUENCE)
    }

    pub(crate) fn controller_mut(&mut self, number: u16) -> Result<&mut Controller, Status> {
        self.controllers.get_mut(&number).ok_or(Status::SEQUENCE)
    }

    pub(crate) fn controllers(&self) -> impl Iterator<Item = u16> + '_ {
        self.controllers.keys().copied()
    }

    /// Connects a queue.
    ///
    /// # Errors
    /// The status, and double word 0 of the completion.
    pub fn connect(
        &mut self,
        sqe: &FabricsSqe,
        data: &[u8],
        now_ms: u64,
    ) -> Result<Connected, (Status, u32)> {
        let asked = Connect::parse(sqe, data)?;
        let is_discovery = asked.subsystem == DISCOVERY_NQN;
        if !is_discovery && asked.subsystem != self.name {
            return Err(NO_SUBSYSTEM);
        }
        if !is_name(&asked.host) {
            return Err(NO_HOST);
        }
        let has_secret = self.secrets.is_empty() || self.secrets.contains_key(&asked.host);
        if !has_secret || !self.allowed.is_empty() && !self.allowed.contains(&asked.host) {
            return Err((Status::CONNECT_HOST, 0));
        }
        // A queue of one entry could hold nothing.
        if asked.size < 2 || asked.size > u32::from(QUEUE_MOST) {
            return Err(BAD_SIZE);
        }
        let controller = if asked.queue == 0 {
            self.admit(&asked, is_discovery, now_ms)?
        } else {
            self.join(&asked, is_discovery)?
        };
        let Connect { queue, size, no_flow_control, .. } = asked;
        Ok(Connected { controller, queue, size, no_flow_control, is_discovery })
    }

    /// A new controller for a host that connects its admin queue.
    fn admit(
        &mut self,
        asked: &Connect,
        is_discovery: bool,
        now_ms: u64,
    ) -> Result<u16, (Status, u32)> {
        if asked.controller != DYNAMIC {
            return Err(NO_CONTROLLER);
        }
        if asked.host_id == [0; 16] {
            return Err(NO_HOST_ID);
        }
        let number = self.free_number().ok_or((Status::CONNECT_BUSY, 0))?;
        let keep_alive_ms = match asked.keep_alive_ms {
            0 if is_discovery => DISCOVERY_KEEP_ALIVE_MS,
            ms => ms,
        };
        let host = Host { name: asked.host.clone(), id: asked.host_id };
        let kind = if is_discovery { Kind::Discovery } else { Kind::Fabrics };
        let controller = Controller::new(host, kind, keep_alive_ms, now_ms);
        self.insert(number, controller);
        Ok(number)
    }

    /// A new controller that is reached as a PCI function. Its I/O queues are not the subsystem's to know.
    ///
    /// # Errors
    /// If there are too many.
    pub fn attach(&mut self) -> Result<Connected, Status> {
        let number = self.free_number().ok_or(Status::CONNECT_BUSY)?;
        // The host of a PCI function says no name.
        let host = Host { name: String::new(), id: [0; 16] };
        self.insert(number, Controller::new(host, Kind::Pci, 0, 0));
        let (queue, size) = (0, u32::from(QUEUE_MOST));
        let (no_flow_control, is_discovery) = (false, false);
        Ok(Connected { controller: number, queue, size, no_flow_control, is_discovery })
    }

    fn free_number(&self) -> Option<u16> {
        let free = |number: &u16| !self.controllers.contains_key(number);
        let has_room = self.controllers.len() < CONTROLLERS_MOST;
        (self.last + 1..=LAST).chain(1..=self.last).find(free).filter(|_| has_room)
    }

    fn insert(&mut self, number: u16, controller: Controller) {
        self.controllers.insert(number, controller);
        self.last = number % LAST;
    }

    /// An I/O queue of a controller.
    fn join(&mut self, asked: &Connect, is_discovery: bool) -> Result<u16, (Status, u32)> {
        let controller = self.controllers.get_mut(&asked.controller).ok_or(NO_CONTROLLER)?;
        if controller.host.name != asked.host {
            return Err(NO_HOST);
        }
        if controller.host.id != asked.host_id {
            return Err(NO_HOST_ID);
        }
        if controller.is_discovery() || is_discovery {
            return Err(NO_CONTROLLER);
        }
        if asked.queue > controller.granted.min(QUEUES_MOST) {
            return Err(BAD_QUEUE);
        }
        if !controller.is_ready() {
            return Err((Status::SEQUENCE, 0));
        }
        controller.add_queue(asked.queue).map_err(|status| (status, 0))?;
        Ok(asked.controller)
    }

    /// A connection has ended. With its admin queue a controller goes.
    pub fn disconnect(&mut self, queue: Connected) {
        if queue.queue == 0 {
            self.controllers.remove(&queue.controller);
        } else if let Some(controller) = self.controllers.get_mut(&queue.controller) {
            controller.remove_queue(queue.queue);
        }
    }

    /// Controllers whose hosts have been silent for too long.
    pub fn expired(&self, now_ms: u64) -> Vec<u16> {
        let expired = self.controllers.iter().filter(|(_, it)| it.has_expired(now_ms));
        expired.map(|(&number, _)| number).collect()
    }

    /// A property of a controller.
    ///
    /// # Errors
    /// 002h if there is none.
    pub fn property(&self, controller: u16, property: Property) -> Result<u64, Status> {
        self.controller(controller)?.property(property).ok_or(Status::INVALID_FIELD)
    }

    /// Sets it.
    ///
    /// # Errors
    /// 002h if it cannot be set.
    pub fn set_property(
        &mut self,
        controller: u16,
        property: Property,
        value: u64,
    ) -> Result<(), Status> {
        self.controller_mut(controller)?.set_property(property, value)
    }

    /// Something has happened that hosts may want to know. [`Subsystem::event`] says whom to tell.
    pub fn raise(&mut self, event: Event) {
        for controller in self.controllers.values_mut().filter(|it| !it.is_discovery()) {
            controller.events.raise(event);
        }
    }

    /// Something has happened at one controller.
    pub fn raise_at(&mut self, controller: u16, event: Event) {
        if let Some(controller) = self.controllers.get_mut(&controller) {
            controller.events.raise(event);
        }
    }

    /// A controller cannot reach its queues: it goes on when its host has reset it.
    pub fn fail(&mut self, controller: u16) {
        if let Some(controller) = self.controllers.get_mut(&controller) {
            controller.fail();
        }
    }

    /// True if a host wants to know of zones that drives change.
    pub fn wants_zones(&self) -> bool {
        let zones = Event::ZoneChanged(0, 0);
        self.controllers.values().any(|it| it.events.wants(zones))
    }

    /// A request for events of `controller` that can be answered now: its identifier, and the result.
    pub fn event(&mut self, controller: u16) -> Option<(u16, u64)> {
        self.controllers.get_mut(&controller)?.events.take()
    }

    /// Notes a command that has failed in the error log of its controller.
    pub fn failed(&mut self, controller: u16, queue: u16, sqe: &Sqe, status: Status) {
        if let Some(controller) = self.controllers.get_mut(&controller) {
            let (cid, start, namespace) = (sqe.cid.get(), sqe.start(), sqe.nsid.get());
            controller.failed(Failed { count: 0, queue, cid, status, start, namespace });
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::sample::{plain, zoned};
    use crate::wire::{ConnectData, SGL_IN_CAPSULE, Sgl};
    use zerocopy::{FromZeros, IntoBytes};

    pub(crate) const NAME: &str = "nqn.2026-01.local.leyden:disk";
    const HOST: &str = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555";

    pub(crate) fn subsystem() -> Subsystem {
        let namespaces = vec![plain(4_096, 1_000), zoned()];
        Subsystem::new(NAME.to_owned(), "SERIAL".to_owned(), namespaces, Vec::new()).unwrap()
    }

    fn connect(queue: u16, controller: u16) -> (FabricsSqe, ConnectData) {
        let mut sqe = Sqe { opcode: 0x7f, flags: 0x40, ..Sqe::default() }.fabrics();
        (sqe.kind, sqe.word42, sqe.word44) = (1, queue.into(), 31.into());
        sqe.value = 5_000.into();
        sqe.sgl = Sgl { length: 1_024.into(), id: SGL_IN_CAPSULE, ..Sgl::default() };
        let mut data = ConnectData::new_zeroed();
        data.host_id = [7; 16];
        data.controller = controller.into();
        data.subsystem[..NAME.len()].copy_from_slice(NAME.as_bytes());
        data.host[..HOST.len()].copy_from_slice(HOST.as_bytes());
        (sqe, data)
    }

    /// A controller that is enabled.
    pub(crate) fn ready(subsystem: &mut Subsystem) -> u16 {
        let (sqe, data) = connect(0, DYNAMIC);
        let number = subsystem.connect(&sqe, data.as_bytes(), 0).unwrap().controller;
        let cc = Property { offset: 0x14, is_long: false };
        subsystem.set_property(number, cc, 0x0046_0061).unwrap();
        number
    }

    #[test]
    fn a_host_gets_a_controller_and_its_queues_and_nobody_else_gets_them() {
        let mut subsystem = subsystem();
        let number = ready(&mut subsystem);
        let (sqe, data) = connect(1, number);
        let queue = subsystem.connect(&sqe, data.as_bytes(), 0).unwrap();
        assert_eq!((queue.queue, queue.size), (1, 32));
        let again = subsystem.connect(&sqe, data.as_bytes(), 0);
        assert_eq!(again, Err((Status::SEQUENCE, 0)), "it is connected");
        let mut wrong = data;
        wrong.host[3] = b'x';
        assert_eq!(subsystem.connect(&sqe, wrong.as_bytes(), 0), Err(NO_HOST));
        let other = "nqn.2014-08.org.nvmexpress:uuid:21111111-2222-3333-4444-555555555555";
        wrong.host[..other.len()].copy_from_slice(other.as_bytes());
        assert_eq!(subsystem.connect(&sqe, wrong.as_bytes(), 0), Err(NO_HOST));
        let mut wrong = data;
        wrong.host_id = [8; 16];
        assert_eq!(subsystem.connect(&sqe, wrong.as_bytes(), 0), Err(NO_HOST_ID));
        let mut wrong = data;
        wrong.controller = 99.into();
        assert_eq!(subsystem.connect(&sqe, wrong.as_bytes(), 0), Err(NO_CONTROLLER));
        let (sqe, data) = connect(QUEUES_MOST + 1, number);
        assert_eq!(subsystem.connect(&sqe, data.as_bytes(), 0), Err((Status::CONNECT_INVALID, 42)));
        subsystem.disconnect(queue);
        let (sqe, data) = connect(1, number);
        assert!(subsystem.connect(&sqe, data.as_bytes(), 0).is_ok(), "it was free again");
    }

    #[test]
    fn each_mistake_of_connect_has_its_status() {
        let mut subsystem = subsystem();
        let mut refused = |change: &dyn Fn(&mut FabricsSqe, &mut ConnectData)| {
            let (mut sqe, mut data) = connect(0, DYNAMIC);
            change(&mut sqe, &mut data);
            let refused = subsystem.connect(&sqe, data.as_bytes(), 0).unwrap_err();
            assert_eq!(subsystem.controllers().count(), 0);
            (refused.0.field() >> 1, refused.1)
        };
        assert_eq!(refused(&|sqe, _| sqe.word40 = 1.into()), (0x4180, 0));
        assert_eq!(refused(&|sqe, _| sqe.word44 = 0.into()), (0x4182, 44));
        assert_eq!(refused(&|sqe, _| sqe.word44 = 1_024.into()), (0x4182, 44));
        assert_eq!(refused(&|_, data| data.subsystem[0] = b'x'), (0x4182, 256 | 1 << 16));
        assert_eq!(refused(&|_, data| data.subsystem = [b'x'; 256]), (0x4182, 256 | 1 << 16));
        assert_eq!(refused(&|_, data| data.host = [0; 256]), (0x4182, 512 | 1 << 16));
        assert_eq!(refused(&|_, data| data.host_id = [0; 16]), (0x4182, 1 << 16));
        assert_eq!(refused(&|_, data| data.controller = 1.into()), (0x4182, 16 | 1 << 16));
        assert_eq!(refused(&|sqe, _| sqe.sgl.id = 0x5a), (0x4011, 0));
    }

    #[test]
    fn an_allow_list_lets_in_who_is_on_it() {
        let with = |allowed: &str| {
            let namespaces = vec![plain(4_096, 8)];
            let allowed = vec![allowed.to_owned()];
            Subsystem::new(NAME.to_owned(), "S".to_owned(), namespaces, allowed).unwrap()
        };
        let (sqe, mut data) = connect(0, DYNAMIC);
        assert!(with(HOST).connect(&sqe, data.as_bytes(), 0).is_ok());
        let refused = with("nqn.2026-01.org.example:other").connect(&sqe, data.as_bytes(), 0);
        assert_eq!(refused, Err((Status::CONNECT_HOST, 0)));
        // Discovery tells what there is: to the same hosts.
        data.subsystem = [0; 256];
        data.subsystem[..DISCOVERY_NQN.len()].copy_from_slice(DISCOVERY_NQN.as_bytes());
        let refused = with("nqn.2026-01.org.example:other").connect(&sqe, data.as_bytes(), 0);
        assert_eq!(refused, Err((Status::CONNECT_HOST, 0)));
        assert!(with(HOST).connect(&sqe, data.as_bytes(), 0).unwrap().is_discovery);
    }

    #[test]
    fn numbers_come_back_and_places_are_limited() {
        let mut subsystem = subsystem();
        let (sqe, data) = connect(0, DYNAMIC);
        let first = subsystem.connect(&sqe, data.as_bytes(), 0).unwrap();
        for _ in 1..CONTROLLERS_MOST {
            subsystem.connect(&sqe, data.as_bytes(), 0).unwrap();
        }
        let busy = subsystem.connect(&sqe, data.as_bytes(), 0);
        assert_eq!(busy, Err((Status::CONNECT_BUSY, 0)));
        subsystem.disconnect(first);
        let next = subsystem.connect(&sqe, data.as_bytes(), 0).unwrap();
        assert_ne!(next.controller, first.controller, "not at once: the old one may be on its way");
        assert_eq!(subsystem.expired(5_001).len(), CONTROLLERS_MOST);
        subsystem.last = LAST - 1;
        subsystem.disconnect(next);
        let last = subsystem.connect(&sqe, data.as_bytes(), 0).unwrap();
        assert_eq!(last.controller, LAST);
        subsystem.disconnect(last);
        let again = subsystem.connect(&sqe, data.as_bytes(), 0).unwrap();
        assert_eq!(again.controller, first.controller);
    }

    #[test]
    fn names_are_what_the_specification_says() {
        for good in [NAME, HOST] {
            assert!(is_name(good), "{good}");
        }
        let long = format!("nqn.2026-01.a:{}", "x".repeat(NQN_MOST));
        for bad in ["", "nqn.", "nqn.2026-1.a:b", "nqn.2026-01.a", "nqn.2026-01.a:b c", &long] {
            assert!(!is_name(bad), "{bad}");
            let made =
                Subsystem::new(bad.to_owned(), String::new(), Vec::new(), Vec::new()).unwrap_err();
            assert!(made.to_string().contains("nqn.YYYY-MM"));
        }
    }
}
