//! A conventional namespace at rest, saved and loaded.

use leyden_buffer::{BufferState, SlotId};
use leyden_ftl::page_mapped::{FtlState, Violation};
use serde::{Deserialize, Serialize};

use super::Conventional;
use crate::Payload;

/// What a snapshot keeps of the namespace.
#[derive(Serialize, Deserialize)]
#[serde(bound = "P: Payload")]
pub(crate) struct ConventionalState<'a, P: Payload> {
    staged: Vec<Vec<SlotId>>,
    cursor: u32,
    buffer: BufferState<P>,
    ftl: FtlState<'a, P>,
}

impl<P: Payload> Conventional<P> {
    /// The state at rest.
    ///
    /// # Panics
    /// If the drive is not idle.
    pub(crate) fn state(&self) -> ConventionalState<'_, P> {
        let (staged, cursor) = self.writer.staged();
        ConventionalState {
            staged: staged.to_vec(),
            cursor,
            buffer: self.writer.buffer.state(),
            ftl: self.ftl.state(),
        }
    }

    /// Takes over a state. `None` if it is of a drive of another shape.
    ///
    /// # Errors
    /// If it contradicts itself.
    pub(crate) fn restore(
        &mut self,
        state: ConventionalState<'_, P>,
    ) -> Option<Result<(), Violation>> {
        let fits = self.writer.restore(state.staged, state.cursor)
            && self.writer.buffer.restore(state.buffer);
        let restored = fits.then(|| self.ftl.restore(state.ftl))??;
        self.writer.wake(&self.ftl);
        Some(restored)
    }
}
