//! A trace's requests, loop after loop.
//!
//! A trace that is replayed several times is read once, if what it says fits into a few megabytes: it need not be
//! decompressed and parsed again.

use leyden_workload::Request;

/// The most requests that are kept for the next loop: 24 MiB.
const MOST_KEPT: usize = 1 << 20;

/// The function that opens a trace. It is called once a loop: no code is compiled for each caller.
pub(super) type Open<'o, I, E> = &'o mut dyn FnMut() -> Result<I, E>;

/// Opens a trace and yields its next request. Requests are as the trace has them.
pub(super) struct Loops<'o, I, E> {
    open: Open<'o, I, E>,
    left: u32,
    pass: Pass<I>,
    /// The requests of the first loop so far; `None` if they need not be known again, or are too many.
    kept: Option<Vec<Request>>,
}

/// A way through the trace.
enum Pass<I> {
    Reading(I),
    /// From memory: how many have been taken.
    Kept(usize),
    Ended,
}

/// The next step of a looped trace.
pub(super) enum Step<E> {
    Request(Request),
    /// A loop begins.
    Begun,
    /// The trace could not be opened.
    NotOpened(E),
    /// It could not be read on.
    Broken(E),
    End,
}

impl<'o, I, E> Loops<'o, I, E> {
    pub(super) fn new(open: Open<'o, I, E>, loops: u32) -> Self {
        let kept = (loops > 1).then(Vec::new);
        Self { open, left: loops, pass: Pass::Ended, kept }
    }
}

impl<I, E> Loops<'_, I, E>
where
    I: Iterator<Item = Result<Request, E>>,
{
    #[inline]
    pub(super) fn next(&mut self) -> Step<E> {
        match &mut self.pass {
            Pass::Reading(requests) => match requests.next() {
                Some(Ok(request)) => {
                    if let Some(kept) = &mut self.kept {
                        kept.push(request);
                        if kept.len() > MOST_KEPT {
                            self.kept = None;
                        }
                    }
                    Step::Request(request)
                }
                Some(Err(error)) => Step::Broken(error),
                None => self.begin(),
            },
            Pass::Kept(taken) => {
                let request = self.kept.as_ref().and_then(|kept| kept.get(*taken)).copied();
                *taken += 1;
                request.map_or_else(|| self.begin(), Step::Request)
            }
            Pass::Ended => self.begin(),
        }
    }

    /// Begins the next loop, if there is one.
    #[cold]
    fn begin(&mut self) -> Step<E> {
        let is_first = matches!(self.pass, Pass::Ended);
        self.pass = Pass::Ended;
        if self.left == 0 {
            return Step::End;
        }
        self.left -= 1;
        if self.kept.is_some() && !is_first {
            self.pass = Pass::Kept(0);
            return Step::Begun;
        }
        match (self.open)() {
            Ok(requests) => self.pass = Pass::Reading(requests),
            Err(error) => return Step::NotOpened(error),
        }
        Step::Begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use leyden_device::{Lba, Op};
    use leyden_sim::Time;
    use leyden_workload::Class;

    fn request(lba: u64) -> Request {
        let (op, class) = (Op::Write, Class::Data);
        Request { at: Time::ZERO, op, lba: Lba(lba), sectors: 8, fua: false, class }
    }

    /// The requests of a looped trace, by LBA, and how often it was opened.
    fn replayed(requests: u64, loops: u32) -> (Vec<u64>, u32) {
        let mut opened = 0;
        let mut open = || -> Result<_, String> {
            opened += 1;
            Ok((0..requests).map(|lba| Ok(request(lba))))
        };
        let mut replay = Loops::new(&mut open, loops);
        let mut seen = Vec::new();
        loop {
            match replay.next() {
                Step::Request(request) => seen.push(request.lba.0),
                Step::Begun => {}
                Step::NotOpened(error) | Step::Broken(error) => panic!("{error}"),
                Step::End => break,
            }
        }
        (seen, opened)
    }

    #[test]
    fn a_short_trace_is_read_once() {
        let (seen, opened) = replayed(5, 3);
        assert_eq!((seen, opened), ([0, 1, 2, 3, 4].repeat(3), 1));
        assert_eq!(replayed(0, 3), (vec![], 1));
    }

    #[test]
    fn a_long_trace_is_read_in_every_loop() {
        let most = MOST_KEPT as u64;
        let (seen, opened) = replayed(most, 2);
        assert_eq!((seen.len() as u64, opened), (2 * most, 1));
        let (seen, opened) = replayed(most + 1, 2);
        assert_eq!((seen.len() as u64, opened), (2 * (most + 1), 2));
        assert!(seen.iter().eq((0..=most).chain(0..=most).collect::<Vec<_>>().iter()));
    }

    #[test]
    fn an_error_ends_it_where_it_is() {
        let mut open = || Ok([Ok(request(1)), Err("torn")].into_iter());
        let mut replay = Loops::new(&mut open, 2);
        assert!(matches!(replay.next(), Step::Begun));
        assert!(matches!(replay.next(), Step::Request(_)));
        assert!(matches!(replay.next(), Step::Broken("torn")));
        let mut open = || Err::<std::iter::Empty<Result<Request, &str>>, _>("not there");
        assert!(matches!(Loops::new(&mut open, 1).next(), Step::NotOpened("not there")));
    }
}
