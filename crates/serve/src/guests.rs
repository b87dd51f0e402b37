//! Clients' connections to a server, from the moment they are accepted.
//!
//! **Invariants**
//! - A place is returned when its [`Guest`] is dropped, however its thread ends.
//! - Who has not negotiated holds one of a few places, and the newest such client throws out the oldest. If all places are
//!   taken, one that never asked anything goes before a new client is sent away.

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::budget::WAITING_MOST;
use crate::clock::wall;
use crate::listen::Socket;

/// Lines about clients that are logged each second, at most.
const LINES_MOST: u32 = 20;

/// The connections of a server, as its listeners of one kind have them.
#[derive(Clone, Debug)]
pub(crate) struct Guests(Arc<Shared>, ListenerKind);

/// The kinds of listeners. Each has places of its own for clients that have not negotiated: a flood at a page, which all
/// users of the machine can reach, throws out nobody who comes by a socket in the file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ListenerKind {
    /// For clients that read and write a drive.
    Drive,
    /// For pages.
    Page,
}

#[derive(Debug)]
struct Shared {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Clients that have not negotiated, the oldest first, by their door.
    waiting: [VecDeque<(u64, Socket)>; 2],
    /// Clients that have, and that have asked nothing yet.
    silent: VecDeque<(u64, Socket)>,
    /// Clients that have asked for something.
    active: usize,
    lines: Lines,
}

/// How much is logged about clients, which decide how often they come.
#[derive(Debug, Default)]
struct Lines {
    since: Option<Instant>,
    said: u32,
    unsaid: u64,
}

impl Lines {
    /// True if a line may be logged; and how many were left out before.
    fn take(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.duration_since(since) >= Duration::from_secs(1)) {
            (self.since, self.said) = (Some(now), 0);
        }
        if self.said < LINES_MOST {
            self.said += 1;
            return Some(std::mem::take(&mut self.unsaid));
        }
        self.unsaid += 1;
        None
    }
}

/// Where a guest is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Waiting,
    Silent,
    Active,
    /// Nowhere.
    Out,
}

/// A client that was let in.
#[derive(Debug)]
pub(crate) struct Guest {
    shared: Arc<Shared>,
    number: u64,
    peer: String,
    door: ListenerKind,
    place: Cell<Place>,
}

impl Guests {
    /// Room for `most` clients that have negotiated.
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Shared { most, state: Mutex::default() }), ListenerKind::Drive)
    }

    /// The same, for listeners of pages.
    pub(crate) fn of_pages(&self) -> Self {
        Self(Arc::clone(&self.0), ListenerKind::Page)
    }

    /// Clients at once that have negotiated.
    pub(crate) fn most(&self) -> usize {
        self.0.most
    }

    /// Lets a client in that has just connected.
    pub(crate) fn admit(&self, socket: &Socket) -> Guest {
        let mut state = self.0.lock();
        state.next += 1;
        let (number, door) = (state.next, self.1);
        let waiting = &mut state.waiting[door as usize];
        if waiting.len() >= WAITING_MOST
            && let Some((_, oldest)) = waiting.pop_front()
        {
            oldest.close(); // ends its thread
        }
        waiting.push_back((number, socket.clone()));
        let place = Cell::new(Place::Waiting);
        Guest { shared: Arc::clone(&self.0), number, peer: socket.peer(), door, place }
    }
}

impl Shared {
    // Each change is one statement: nothing is half done if a thread panics.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn take(from: &mut VecDeque<(u64, Socket)>, number: u64) -> Option<Socket> {
    let at = from.iter().position(|it| it.0 == number)?;
    from.remove(at).map(|it| it.1)
}

fn thrown_out() -> io::Error {
    io::Error::new(
        io::ErrorKind::ConnectionAborted,
        "others wait, and it was the oldest of its kind",
    )
}

impl Guest {
    /// Its number, of all that have connected.
    pub(crate) const fn number(&self) -> u64 {
        self.number
    }

    /// Where it comes from.
    pub(crate) fn peer(&self) -> &str {
        &self.peer
    }

    /// Takes a place for good: it has negotiated.
    ///
    /// # Errors
    /// If it was thrown out, or all places are taken by clients that use them.
    pub(crate) fn settle(&self) -> io::Result<()> {
        if self.place.get() != Place::Waiting {
            return Ok(());
        }
        let mut state = self.shared.lock();
        let socket = take(&mut state.waiting[self.door as usize], self.number);
        self.place.set(Place::Out);
        let socket = socket.ok_or_else(thrown_out)?;
        if state.silent.len() + state.active >= self.shared.most {
            let Some((_, oldest)) = state.silent.pop_front() else {
                let most = self.shared.most;
                let what = format!("{most} clients are connected (--connections)");
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, what));
            };
            oldest.close();
        }
        state.silent.push_back((self.number, socket));
        self.place.set(Place::Silent);
        Ok(())
    }

    /// It has asked for something.
    ///
    /// # Errors
    /// If it was thrown out.
    pub(crate) fn has_asked(&self) -> io::Result<()> {
        if self.place.get() == Place::Active {
            return Ok(());
        }
        let mut state = self.shared.lock();
        let socket = take(&mut state.silent, self.number);
        self.place.set(Place::Out);
        socket.ok_or_else(thrown_out)?;
        state.active += 1;
        self.place.set(Place::Active);
        Ok(())
    }

    /// Logs with `log`, which is given how many lines were left out before, unless there are too many.
    pub(crate) fn say(&self, log: impl FnOnce(u64)) {
        let left_out = self.shared.lock().lines.take(wall());
        if let Some(left_out) = left_out {
            log(left_out);
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        match self.place.get() {
            Place::Waiting => drop(take(&mut state.waiting[self.door as usize], self.number)),
            Place::Silent => drop(take(&mut state.silent, self.number)),
            Place::Active => state.active -= 1,
            Place::Out => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (Socket, UnixStream) {
        let (server, client) = UnixStream::pair().unwrap();
        client.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        (Socket::from(server), client)
    }

    fn is_open(client: &mut UnixStream) -> bool {
        client.read(&mut [0; 1]).is_err() // nothing has come, and nothing has ended
    }

    #[test]
    fn the_oldest_of_those_who_have_not_negotiated_goes() {
        let guests = Guests::new(4);
        let mut all: Vec<_> = (0..=WAITING_MOST)
            .map(|_| {
                let (socket, client) = pair();
                (guests.admit(&socket), client)
            })
            .collect();
        assert!(!is_open(&mut all[0].1) && is_open(&mut all[1].1));
        assert!(all[0].0.settle().is_err(), "it was thrown out");
        assert!(all[1].0.settle().is_ok());
    }

    #[test]
    fn a_flood_of_pages_throws_out_nobody_else() {
        let guests = Guests::new(4);
        let (socket, mut client) = pair();
        let guest = guests.admit(&socket);
        let pages = guests.of_pages();
        let all: Vec<_> = (0..3 * WAITING_MOST)
            .map(|_| {
                let (socket, client) = pair();
                (pages.admit(&socket), client)
            })
            .collect();
        assert!(is_open(&mut client));
        guest.settle().unwrap();
        drop(all);
        assert_eq!(guests.0.lock().waiting.each_ref().map(VecDeque::len), [0, 0]);
    }

    #[test]
    fn who_never_asks_makes_room_and_who_has_asked_stays() {
        let guests = Guests::new(2);
        let enter = || {
            let (socket, client) = pair();
            let guest = guests.admit(&socket);
            let settled = guest.settle();
            (guest, (client, socket), settled)
        };
        let (asks, (mut asking, _socket), _) = enter();
        asks.has_asked().unwrap();
        let (silent, (mut silence, _silence), _) = enter();
        let (third, _third, settled) = enter();
        settled.unwrap();
        assert!(!is_open(&mut silence) && is_open(&mut asking));
        assert!(silent.has_asked().is_err());
        third.has_asked().unwrap();
        let (_, _, refused) = enter();
        assert!(
            refused.unwrap_err().to_string().contains("2 clients are connected (--connections)")
        );
        drop((asks, third, silent));
        let state = guests.0.lock();
        assert_eq!((state.active, state.silent.len(), state.waiting[0].len()), (0, 0, 0));
    }

    #[test]
    fn lines_about_clients_are_few_and_those_left_out_are_counted() {
        let (mut lines, now) = (Lines::default(), wall());
        let said = (0..1_000).filter(|_| lines.take(now).is_some()).count();
        assert_eq!(said, LINES_MOST as usize);
        let left_out = lines.take(now + Duration::from_secs(2));
        assert_eq!(left_out, Some(1_000 - u64::from(LINES_MOST)));
    }
}
