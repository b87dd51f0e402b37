//! Which buffered data goes to flash next.

pub mod fifo;

leyden_sim::policies! {
    /// Which buffered data goes to flash next.
    pub enum ScheduleConfig {
        /// In order of arrival; an overwrite of buffered data keeps the place of the first.
        Fifo(fifo::Fifo) = "fifo",
    }
}

impl Default for ScheduleConfig {
    fn default() -> Self {
        Self::Fifo(fifo::Fifo {})
    }
}
