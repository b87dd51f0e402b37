//! The DRAM write buffer and the schedules that empty it.
