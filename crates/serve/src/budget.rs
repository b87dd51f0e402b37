//! Memory and connections of a server: how much, and who has it.
//!
//! **What lives here**: the limits, the pool of bytes that all clients share, and the window of one client. **What
//! doesn't**: which request takes how many bytes (the protocols), and who is let in ([`crate::guests`]).
//!
//! Each connection has a share of its own, so that small requests of one client never wait for another. Larger ones take
//! from the pool.
//!
//! **Invariants**
//! - A permit returns its bytes when it is dropped, however its session ends.
//! - Nobody waits for the pool for longer than [`POOL_WAIT`].
//! - Requests get the pool in their order; those of clients that have taken a reply go before those of clients that have
//!   not. So who is thrown out of the way, and comes again, stands behind all that waited.
//! - Bytes that come back are given to those that wait by who returns them: only who has got them wakes up. Hundreds that
//!   wait cost no more than one.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use thiserror::Error;

/// The most that a request may carry.
pub(crate) const REQUEST_MOST: usize = 32 << 20;
/// Bytes of small requests that come in together, and of small replies that go out.
pub(crate) const GATHERED: usize = 128 << 10;
/// Clients that have not negotiated yet.
pub(crate) const WAITING_MOST: usize = 16;
/// Buffers of a connection: in, out, and those of TLS.
const BUFFERS: usize = 4 * GATHERED;
/// Bytes that each connection has for its requests, whatever the others do.
const SHARE: usize = 192 << 10;
/// Requests of one client that are under way: as many as a queue of an NVMe drive has, or so.
pub(crate) const COMMANDS_MOST: usize = 1_024;
/// The same of a new client; each reply that it takes lets in one request more. Without this start, clients that never read
/// make the server do a thousand requests of each for nothing.
pub(crate) const COMMANDS_FIRST: usize = 64;
/// Bytes of one client: twice the largest request.
pub(crate) const BYTES_MOST: usize = 2 * REQUEST_MOST;
/// Bytes that a command takes beside its data.
pub(crate) const COMMAND_BYTES: usize = 512;
/// A request that finds no memory within this time is refused.
const POOL_WAIT: Duration = Duration::from_secs(10);

/// Memory and connections of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    memory_bytes: usize,
    connections: usize,
}

/// So little memory does not do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error(
    "{} MiB of memory are too few for {connections} connections\n  help: --memory \"{} MiB\", or --connections {fitting}",
    .memory_bytes >> 20, .least_bytes.div_ceil(1 << 20)
)]
pub struct TooLittle {
    memory_bytes: usize,
    connections: usize,
    least_bytes: usize,
    fitting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, connections: 256 }
    }
}

impl Limits {
    /// # Errors
    /// If so many connections, and one request of the largest size, do not fit.
    pub fn new(memory_bytes: usize, connections: usize) -> Result<Self, TooLittle> {
        let least_bytes = REQUEST_MOST + (connections + WAITING_MOST) * (BUFFERS + SHARE);
        if memory_bytes < least_bytes {
            let spare = memory_bytes.saturating_sub(REQUEST_MOST) / (BUFFERS + SHARE);
            let fitting = spare.saturating_sub(WAITING_MOST).max(1);
            return Err(TooLittle { memory_bytes, connections, least_bytes, fitting });
        }
        Ok(Self { memory_bytes, connections })
    }

    /// Clients at once.
    pub const fn connections(self) -> usize {
        self.connections
    }

    /// Bytes that clients share.
    const fn pool_bytes(self) -> usize {
        self.memory_bytes - (self.connections + WAITING_MOST) * (BUFFERS + SHARE)
    }
}

/// The rest of the pool.
#[derive(Debug)]
struct Pool {
    left: usize,
    /// Requests that wait for it, who goes first first. One that has got its bytes is not among them any more.
    waiting: BTreeMap<Place, Waiter>,
    /// The number of the next one that waits.
    next: u64,
}

/// Applicants for a part of the pool, in the order of precedence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Applicant {
    /// A request that has a part already: to let it wait behind others would make them wait for it.
    UnderWay,
    /// One of a client that has taken a reply.
    Known,
    /// One of a client that never has.
    New,
}

/// Where a request stands among those that wait: behind those of its kind that came before.
type Place = (Applicant, u64);

/// A request that waits.
#[derive(Debug)]
struct Waiter {
    bytes: usize,
    turn: Arc<Condvar>,
}

impl Pool {
    /// True if a request that comes now, for so many bytes, need not wait.
    fn has_room(&self, bytes: usize, who: Applicant) -> bool {
        let goes_first = || self.waiting.keys().next().is_none_or(|&(first, _)| who < first);
        self.left >= bytes && (who == Applicant::UnderWay || goes_first())
    }

    /// The next applicant to get bytes, if there are enough: requests under way in any order, the
    /// others in theirs.
    fn first(&self) -> Option<Place> {
        let fits = |waiter: &Waiter| waiter.bytes <= self.left;
        let mut under_way = self.waiting.iter().take_while(|it| it.0.0 == Applicant::UnderWay);
        let first = self.waiting.first_key_value();
        under_way.find(|it| fits(it.1)).or(first.filter(|it| fits(it.1))).map(|it| *it.0)
    }

    /// Gives what is there to those that wait.
    fn hand_out(&mut self) {
        while let Some(waiter) = self.first().and_then(|place| self.waiting.remove(&place)) {
            self.left -= waiter.bytes;
            waiter.turn.notify_one();
        }
    }
}

/// The pool of a server.
#[derive(Debug)]
pub(crate) struct Budget {
    pool: Mutex<Pool>,
}

/// No memory is left for a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Full;

impl Budget {
    pub(crate) fn new(limits: Limits) -> Self {
        let pool = Pool { left: limits.pool_bytes(), waiting: BTreeMap::new(), next: 0 };
        Self { pool: Mutex::new(pool) }
    }

    // Counters are whole at every moment.
    fn lock(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes bytes, if they are there or come within `patience`.
    fn take(&self, bytes: usize, who: Applicant, patience: Duration) -> Result<(), Full> {
        let mut pool = self.lock();
        if pool.has_room(bytes, who) {
            pool.left -= bytes;
            return Ok(());
        }
        if patience.is_zero() {
            return Err(Full);
        }
        let (place, turn) = ((who, pool.next), Arc::new(Condvar::new()));
        pool.next += 1;
        pool.waiting.insert(place, Waiter { bytes, turn: Arc::clone(&turn) });
        let waits = |it: &mut Pool| it.waiting.contains_key(&place);
        let waited = turn.wait_timeout_while(pool, patience, waits);
        let (mut pool, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if pool.waiting.remove(&place).is_some() {
            pool.hand_out(); // another one is first now
            return Err(Full);
        }
        Ok(())
    }

    fn give(&self, bytes: usize) {
        if bytes > 0 {
            let mut pool = self.lock();
            pool.left += bytes;
            pool.hand_out();
        }
    }

    /// Requests that wait for it.
    fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }
}

/// Bytes of one client in flight.
#[derive(Debug)]
struct Taken {
    commands: usize,
    /// Requests that may be under way.
    commands_most: usize,
    bytes: usize,
    /// Bytes that it has of the pool.
    pooled: usize,
    /// Its own requests that wait for the pool.
    waiting: usize,
    /// It has never taken a reply.
    is_new: bool,
}

impl Taken {
    const fn new(commands_most: usize) -> Self {
        Self { commands: 0, commands_most, bytes: 0, pooled: 0, waiting: 0, is_new: true }
    }

    /// Bytes of the pool that it lacks for `bytes` more.
    fn missing(&self, bytes: usize) -> usize {
        (self.bytes + bytes).saturating_sub(SHARE).saturating_sub(self.pooled)
    }

    /// Takes `bytes`, for which `pooled` came from the pool.
    fn add(&mut self, bytes: usize, pooled: usize) {
        self.bytes += bytes;
        self.pooled += pooled;
    }
}

/// Commands, and bytes of their data, that are under way for one client.
#[derive(Debug)]
pub(crate) struct Window {
    budget: Arc<Budget>,
    patience: Duration,
    taken: Mutex<Taken>,
    changed: Condvar,
    is_left: AtomicBool,
}

impl Window {
    /// The window of a client that may have so many commands under way at first.
    pub(crate) fn new(budget: Arc<Budget>, commands_first: usize) -> Self {
        let (taken, changed) = (Mutex::new(Taken::new(commands_first)), Condvar::new());
        Self { budget, patience: POOL_WAIT, taken, changed, is_left: AtomicBool::new(false) }
    }

    /// Its client takes no replies any more.
    pub(crate) fn leave(&self) {
        self.is_left.store(true, Ordering::Release);
    }

    /// True once nobody reads replies: requests that have come in before are not worth their work.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a command with so many bytes fits; calls `before` if it has to wait.
    pub(crate) fn enter(
        self: &Arc<Self>,
        bytes: usize,
        mut before: impl FnMut(),
    ) -> Result<Permit, Full> {
        let is_full =
            |it: &mut Taken| it.commands >= it.commands_most || it.bytes + bytes > BYTES_MOST;
        let mut taken = self.lock();
        if is_full(&mut taken) {
            drop(taken);
            before();
            taken = self.lock();
            taken = self.changed.wait_while(taken, is_full).unwrap_or_else(PoisonError::into_inner);
        }
        taken.commands += 1;
        drop(taken);
        let mut permit = Permit::new(self);
        permit.grow(bytes, before)?;
        Ok(permit)
    }

    /// The same without waiting; an error if it does not fit now.
    pub(crate) fn try_enter(self: &Arc<Self>, bytes: usize) -> Result<Permit, Full> {
        let mut taken = self.lock();
        if taken.commands >= taken.commands_most {
            return Err(Full);
        }
        taken.commands += 1;
        drop(taken);
        let mut permit = Permit::new(self);
        permit.try_grow(bytes)?;
        Ok(permit)
    }

    /// True if nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.lock().commands == 0
    }

    /// Waits until nothing is under way.
    pub(crate) fn drain(&self) {
        drop(self.changed.wait_while(self.lock(), |taken| taken.commands > 0));
    }

    /// True if this client has memory that others wait for.
    pub(crate) fn is_in_the_way(&self) -> bool {
        let taken = self.lock();
        taken.pooled > 0 && self.budget.waiting() > taken.waiting
    }
}

/// Commands that are under way, and the bytes that they hold.
#[derive(Debug)]
pub(crate) struct Permit {
    window: Arc<Window>,
    commands: usize,
    bytes: usize,
    /// Those of them that came from the pool.
    pooled: usize,
    /// It found no memory: its client gets no reply of the drive.
    is_refused: bool,
}

impl Permit {
    /// Of a command, without bytes yet.
    fn new(window: &Arc<Window>) -> Self {
        let (window, is_refused) = (Arc::clone(window), false);
        Self { window, commands: 1, bytes: 0, pooled: 0, is_refused }
    }

    const fn applicant(&self, taken: &Taken) -> Applicant {
        match (self.pooled, taken.is_new) {
            (1.., _) => Applicant::UnderWay,
            (0, false) => Applicant::Known,
            (0, true) => Applicant::New,
        }
    }

    /// Takes more bytes; calls `before` if it has to wait.
    pub(crate) fn grow(&mut self, bytes: usize, mut before: impl FnMut()) -> Result<(), Full> {
        let mut taken = self.window.lock();
        let missing = taken.missing(bytes);
        if missing > 0 {
            let who = self.applicant(&taken);
            drop(taken);
            let budget = &self.window.budget;
            if budget.take(missing, who, Duration::ZERO).is_err() {
                before();
                self.window.lock().waiting += 1;
                let took = budget.take(missing, who, self.window.patience);
                self.window.lock().waiting -= 1;
                self.is_refused |= took.is_err();
                took?;
            }
            taken = self.window.lock();
        }
        taken.add(bytes, missing);
        drop(taken);
        self.bytes += bytes;
        self.pooled += missing;
        Ok(())
    }

    /// Takes more bytes if they are there, and does not wait for them.
    pub(crate) fn try_grow(&mut self, bytes: usize) -> Result<(), Full> {
        let mut taken = self.window.lock();
        if taken.bytes + bytes > BYTES_MOST {
            return Err(Full);
        }
        let missing = taken.missing(bytes);
        if missing > 0 {
            let who = self.applicant(&taken);
            self.window.budget.take(missing, who, Duration::ZERO)?;
        }
        taken.add(bytes, missing);
        drop(taken);
        self.bytes += bytes;
        self.pooled += missing;
        Ok(())
    }

    /// True if it has a part of what all clients share.
    pub(crate) const fn is_pooled(&self) -> bool {
        self.pooled > 0
    }

    /// Takes over what `other` holds.
    pub(crate) fn absorb(&mut self, mut other: Self) {
        self.commands += std::mem::take(&mut other.commands);
        self.bytes += std::mem::take(&mut other.bytes);
        self.pooled += std::mem::take(&mut other.pooled);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.commands == 0 {
            return; // another one has taken it over
        }
        let mut taken = self.window.lock();
        taken.commands -= self.commands;
        if !self.is_refused {
            taken.is_new = false;
            taken.commands_most = COMMANDS_MOST.min(taken.commands_most + self.commands);
        }
        taken.bytes -= self.bytes;
        let needed = taken.bytes.saturating_sub(SHARE);
        let spare = taken.pooled.saturating_sub(needed);
        taken.pooled -= spare;
        drop(taken);
        self.window.changed.notify_all();
        self.window.budget.give(spare);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(budget: &Arc<Budget>) -> Arc<Window> {
        let mut window = Window::new(Arc::clone(budget), COMMANDS_FIRST);
        window.patience = Duration::from_millis(50);
        Arc::new(window)
    }

    #[test]
    fn what_is_too_little_says_what_would_do() {
        let refused = Limits::new(64 << 20, 256).unwrap_err();
        let said = refused.to_string();
        let memory = said.split("--memory \"").nth(1).and_then(|it| it.split(' ').next()).unwrap();
        let memory: usize = memory.parse().unwrap();
        assert!(
            Limits::new(memory << 20, 256).is_ok() && Limits::new((memory - 1) << 20, 256).is_err()
        );
        let fitting = said.rsplit(' ').next().unwrap().parse().unwrap();
        assert!(
            Limits::new(64 << 20, fitting).is_ok() && Limits::new(64 << 20, fitting + 1).is_err()
        );
    }

    #[test]
    fn small_requests_are_let_in_when_the_pool_is_empty() {
        let limits = Limits::new(64 << 20, 8).unwrap();
        let budget = Arc::new(Budget::new(limits));
        let (greedy, honest) = (window(&budget), window(&budget));
        let mut held = Vec::new();
        while let Ok(permit) = greedy.enter(4 << 20, || ()) {
            held.push(permit);
        }
        assert!(held.len() >= 8, "the largest request fits");
        assert!(held.len() * (4 << 20) < 64 << 20, "and not more than there is");
        // As many of 4 KiB as a queue of 32 has.
        let small: Vec<_> = (0..32).map(|_| honest.enter(4_096, || ()).unwrap()).collect();
        assert!(honest.enter(4 << 20, || ()).is_err(), "a large one finds nothing");
        assert!(!honest.is_in_the_way());
        drop((held, small));
        greedy.drain();
        honest.drain();
        assert_eq!(budget.lock().left, limits.pool_bytes(), "all of it is back");
    }

    #[test]
    fn a_client_may_have_more_under_way_as_it_takes_replies() {
        let budget = Arc::new(Budget::new(Limits::default()));
        let window = window(&budget);
        let most = || window.lock().commands_most;
        assert_eq!(most(), COMMANDS_FIRST);
        let held: Vec<_> = (0..COMMANDS_FIRST).map(|_| window.enter(1, || ()).unwrap()).collect();
        std::thread::scope(|scope| {
            let (window, asked) = (Arc::clone(&window), std::sync::mpsc::channel());
            scope.spawn(move || drop(window.enter(1, || asked.0.send(()).unwrap()).unwrap()));
            asked.1.recv().unwrap(); // it waits, and hands over what it has gathered first
            drop(held);
        });
        window.drain();
        assert_eq!(most(), 2 * COMMANDS_FIRST + 1);
        (0..COMMANDS_MOST).for_each(|_| drop(window.enter(1, || ()).unwrap()));
        assert_eq!(most(), COMMANDS_MOST);
    }

    /// Clients that have taken a reply go before others, and others in their order: small requests
    /// slip by no large one.
    #[test]
    fn the_pool_is_given_in_order() {
        let budget = Arc::new(Budget::new(Limits::new(64 << 20, 8).unwrap()));
        let patient = || {
            let mut window = Window::new(Arc::clone(&budget), COMMANDS_FIRST);
            window.patience = Duration::from_mins(1);
            Arc::new(window)
        };
        let (greedy, known, fresh) = (patient(), patient(), patient());
        drop(known.enter(1, || ()).unwrap()); // it has taken a reply
        let all = budget.lock().left;
        let part = 8 << 20;
        let held: Vec<_> = (0..all / part).map(|_| greedy.enter(part, || ()).unwrap()).collect();
        let (served, order) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let mut count = 0;
            let mut waits = |window: &Arc<Window>, bytes: usize, name: &'static str| {
                let (window, served) = (Arc::clone(window), served.clone());
                count += 1;
                scope.spawn(move || {
                    // As writes come: a small part first, which is the client's own share, and then their data.
                    let mut permit = window.enter(COMMAND_BYTES, || ()).unwrap();
                    permit.grow(bytes - COMMAND_BYTES, || ()).unwrap();
                    served.send(name).unwrap();
                    drop(permit);
                });
                while budget.waiting() < count {
                    std::thread::yield_now();
                }
            };
            waits(&fresh, all - part / 8, "fresh, large");
            waits(&patient(), 9 << 20, "fresh, small");
            waits(&known, all - part / 8, "known, large");
            // There is room for the small one at once, and for the large one once all is given back.
            drop(held);
        });
        drop(served);
        let order: Vec<_> = order.iter().collect();
        assert_eq!(order, ["known, large", "fresh, large", "fresh, small"]);
        assert_eq!(budget.lock().left, all, "all of it is back");
    }

    /// A client that sends much is not to be thrown out because it waits for itself.
    #[test]
    fn only_others_that_wait_make_a_client_be_in_the_way() {
        let budget = Arc::new(Budget::new(Limits::new(64 << 20, 8).unwrap()));
        let patient = || {
            let mut window = Window::new(Arc::clone(&budget), COMMANDS_FIRST);
            window.patience = Duration::from_mins(1);
            Arc::new(window)
        };
        let (greedy, other) = (patient(), patient());
        let all = budget.lock().left;
        let held = [greedy.enter(all / 2, || ()), greedy.enter(all / 2, || ())].map(Result::unwrap);
        std::thread::scope(|scope| {
            let waits = |window: &Arc<Window>, count: usize| {
                let window = Arc::clone(window);
                scope.spawn(move || drop(window.enter(8 << 20, || ()).unwrap()));
                while budget.waiting() < count {
                    std::thread::yield_now();
                }
            };
            waits(&greedy, 1);
            assert!(!greedy.is_in_the_way(), "it waits for itself");
            waits(&other, 2);
            assert!(greedy.is_in_the_way() && !other.is_in_the_way());
            drop(held);
        });
        assert!(!greedy.is_in_the_way());
        assert_eq!(budget.lock().left, all, "all of it is back");
    }

    #[test]
    fn a_permit_that_was_taken_over_returns_once() {
        let budget = Arc::new(Budget::new(Limits::default()));
        let window = window(&budget);
        let mut first = window.enter(1 << 20, || ()).unwrap();
        first.absorb(window.enter(2 << 20, || ()).unwrap());
        first.grow(5 << 20, || ()).unwrap();
        let held = |window: &Window| {
            let taken = window.lock();
            (taken.commands, taken.bytes, taken.pooled)
        };
        assert_eq!(held(&window), (2, 8 << 20, (8 << 20) - SHARE));
        drop(first);
        window.drain();
        assert_eq!(held(&window), (0, 0, 0));
        assert_eq!(budget.lock().left, Limits::default().pool_bytes());
    }
}
