//! A piece of an image's file in memory: what is stored there is in the file, without a system call.
//!
//! A process that is killed leaves what it has stored in the kernel's page cache, as after `pwrite`. A kill may fall
//! between any two instructions, so here is what orders stores: each one is behind all that were made before it, in the
//! order of the program. (Which processor sees what when does not matter: a killed process has no store under way.)
//!
//! **Invariant**: all of it can be stored to. Its room in the file system is set aside, and all pages are there when it is
//! made. What is left is somebody who cuts the file short meanwhile: then the process ends with SIGBUS.

#![expect(unsafe_code, reason = "mapped memory is reached by its address")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};

use memmap2::{Advice, MmapOptions, MmapRaw};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Mapped {
    map: MmapRaw,
    range: Range<u64>,
}

impl Mapped {
    /// The bytes `range` of `file`, which begin and end with a page, are within its length, and have their room.
    pub(crate) fn new(file: &File, range: Range<u64>) -> io::Result<Self> {
        let length = (range.end - range.start) as usize;
        let map = MmapOptions::new().offset(range.start).len(length).map_raw(file)?;
        // Where this fails, a store would be a SIGBUS.
        map.advise(Advice::PopulateWrite)?;
        Ok(Self { map, range })
    }

    /// True if all of `length` bytes from `at` on, counted from the beginning of the file, are here.
    pub(crate) fn holds(&self, at: u64, length: usize) -> bool {
        self.range.start <= at && at + length as u64 <= self.range.end
    }

    /// Stores `bytes` at `at`, which must be here.
    pub(crate) fn store(&mut self, at: u64, bytes: &[u8]) {
        assert!(self.holds(at, bytes.len()), "a store beside what is mapped");
        let offset = (at - self.range.start) as usize;
        compiler_fence(Ordering::SeqCst);
        // SAFETY: the range is within the mapping, which nobody else in this process has, and which no reference
        // points to; `bytes` are not in it for that reason.
        unsafe {
            let to = self.map.as_mut_ptr().add(offset);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
        compiler_fence(Ordering::SeqCst);
        #[cfg(test)]
        trace::note(at, bytes);
    }

    /// Stores a number of eight bytes, whole or not at all, at `at`, a multiple of eight.
    pub(crate) fn store_word(&mut self, at: u64, word: u64) {
        assert!(self.holds(at, 8) && at.is_multiple_of(8), "a store beside what is mapped");
        let offset = (at - self.range.start) as usize;
        compiler_fence(Ordering::SeqCst);
        // SAFETY: as above; and it is aligned, for mappings begin with a page, and so do their ranges.
        let place = unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) };
        place.store(word.to_le(), Ordering::Release);
        compiler_fence(Ordering::SeqCst);
        #[cfg(test)]
        trace::note(at, &word.to_le_bytes());
    }
}

/// The stores of this thread, in order: for tests of what a kill between two of them leaves.
#[cfg(test)]
pub(crate) mod trace {
    use std::cell::RefCell;

    thread_local! {
        static STORES: RefCell<Vec<(u64, Vec<u8>)>> = RefCell::default();
    }

    pub(super) fn note(at: u64, bytes: &[u8]) {
        STORES.with_borrow_mut(|stores| stores.push((at, bytes.to_vec())));
    }

    /// Those since the last call: where, and what.
    pub(crate) fn take() -> Vec<(u64, Vec<u8>)> {
        STORES.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_in_the_file() {
        let file = tempfile::tempfile().unwrap();
        let page = 64_u64 << 10;
        file.set_len(4 * page).unwrap();
        let mut mapped = Mapped::new(&file, page..3 * page).unwrap();
        assert!(mapped.holds(3 * page - 5, 5));
        assert!(!mapped.holds(3 * page - 5, 6) && !mapped.holds(page - 1, 1));
        mapped.store(3 * page - 5, b"there");
        mapped.store_word(page + 8, 0x0102_0304_0506_0708);
        let read = |at: u64, length: usize| {
            let mut bytes = vec![0; length];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, at).unwrap();
            bytes
        };
        assert_eq!(read(3 * page - 5, 6), b"there\0");
        assert_eq!(read(page + 8, 8), [8, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn a_range_beyond_the_end_is_refused_and_no_signal_comes() {
        let file = tempfile::tempfile().unwrap();
        let page = 64_u64 << 10;
        file.set_len(page).unwrap();
        assert!(Mapped::new(&file, page..2 * page).is_err());
    }
}
