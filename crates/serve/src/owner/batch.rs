//! A batch of a client's requests to the drive, and the receivers of the answers.

use std::time::Instant;

use crate::ask::{Answer, Ask, Failure};

/// The callback for an answer, called by the thread that has the drive. Dropped without one, it is called with
/// [`Failure::Gone`]: no client waits for ever.
pub(crate) struct Reply(Option<Box<dyn FnOnce(Answer) + Send>>);

impl Reply {
    /// For a command of the server's own.
    pub(crate) const fn nobody() -> Self {
        Self(None)
    }

    pub(crate) fn send(mut self, answer: Answer) {
        if let Some(reply) = self.0.take() {
            reply(answer);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(reply) = self.0.take() {
            reply(Answer::Failed(Failure::Gone));
        }
    }
}

/// A batch of a client's requests to the drive.
#[derive(Default)]
pub(crate) struct Batch {
    asks: Vec<(Ask, Reply)>,
    ready: Option<Instant>,
}

impl Batch {
    pub(crate) fn push(&mut self, ask: Ask, reply: impl FnOnce(Answer) + Send + 'static) {
        self.asks.push((ask, Reply(Some(Box::new(reply)))));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.asks.is_empty()
    }

    /// The requests, and since when they wait.
    pub(super) fn into_parts(self) -> (Vec<(Ask, Reply)>, Option<Instant>) {
        (self.asks, self.ready)
    }

    /// Notes the arrival of its contents, if none came in before.
    pub(crate) fn came_in(&mut self, at: Instant) {
        self.ready.get_or_insert(at);
    }
}
