//! The state of a conventional namespace in a snapshot.

use std::collections::VecDeque;

use leyden_buffer::{BufferState, SlotId};
use leyden_ftl::page_mapped::FtlState;
use serde::{Deserialize, Serialize};

use super::Conventional;
use crate::Payload;
use crate::snapshot::Resting;

/// The state of the namespace in a snapshot.
#[derive(Serialize, Deserialize)]
#[serde(bound = "P: Payload")]
pub(crate) struct ConventionalState<'a, P: Payload> {
    staged: Vec<VecDeque<SlotId>>,
    cursor: u32,
    buffer: BufferState<P>,
    ftl: FtlState<'a, P>,
}

impl<P: Payload> Resting<P> for Conventional<P> {
    const IS_ZONED: bool = false;
    type State<'a>
        = ConventionalState<'a, P>
    where
        Self: 'a;
    type Loaded = ConventionalState<'static, P>;

    fn state(&self) -> ConventionalState<'_, P> {
        let (staged, cursor) = self.writer.staged();
        ConventionalState {
            staged: staged.to_vec(),
            cursor,
            buffer: self.writer.buffer.state(),
            ftl: self.ftl.state(),
        }
    }

    fn restore(&mut self, state: ConventionalState<'static, P>) -> Option<Result<(), String>> {
        let fits = self.writer.restore(state.staged, state.cursor)
            && self.writer.buffer.restore(state.buffer);
        let restored = fits.then(|| self.ftl.restore(state.ftl))??;
        self.writer.wake(&self.ftl);
        Some(restored.map_err(|violation| violation.to_string()))
    }
}
