//! A piece of an image's file in memory: what is stored there is in the file, without a system call.
//!
//! A process that is killed leaves what it has stored in the kernel's page cache, as after `pwrite`. A kill may fall
//! between any two instructions, so here is what orders stores: each one is behind all that were made before it, in the
//! order of the program. (Which processor sees what when does not matter: a killed process has no store under way.)
//!
//! **Invariant**: what is ready can be read and stored to. Its room in the file system is set aside, and its pages are
//! there. What is left is somebody who cuts the file short meanwhile: then the process ends with SIGBUS.

#![expect(unsafe_code, reason = "mapped memory is reached by its address")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, compiler_fence};

use memmap2::{Advice, MmapOptions, MmapRaw};

/// Pages are made ready in pieces of this size, counted from the beginning of what is mapped.
pub(crate) const PIECE_BYTES: u64 = 1 << 20;

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Mapped {
    map: MmapRaw,
    range: Range<u64>,
    /// Of each piece.
    is_ready: Box<[AtomicBool]>,
}

impl Mapped {
    /// The bytes `range` of `file`, which begins with a page. It may reach beyond the file's end; none of it is ready.
    pub(crate) fn over(file: &File, range: Range<u64>) -> io::Result<Self> {
        let length = (range.end - range.start) as usize;
        let map = MmapOptions::new().offset(range.start).len(length).map_raw(file)?;
        let is_ready = (0..range.end - range.start).step_by(PIECE_BYTES as usize);
        Ok(Self { map, range, is_ready: is_ready.map(|_| AtomicBool::new(false)).collect() })
    }

    /// The bytes `range` of `file`, which are within its length, and have their room: all of them are ready.
    pub(crate) fn new(file: &File, range: Range<u64>) -> io::Result<Self> {
        let length = (range.end - range.start) as usize;
        let mapped = Self::over(file, range.clone())?;
        mapped.make_ready(range.start, length)?;
        Ok(mapped)
    }

    /// Makes the pieces ready that `length` bytes from `at` on lie in. They must be within the file's length.
    ///
    /// # Errors
    /// If there is no room for their pages: a store would be a SIGBUS.
    pub(crate) fn make_ready(&self, at: u64, length: usize) -> io::Result<()> {
        for piece in self.pieces(at, length) {
            if !self.is_ready[piece].load(Ordering::Relaxed) {
                let bytes = self.bytes_of(piece);
                let offset = (bytes.start - self.range.start) as usize;
                let length = (bytes.end - bytes.start) as usize;
                self.map.advise_range(Advice::PopulateWrite, offset, length)?;
                self.is_ready[piece].store(true, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// The pages that `length` bytes from `at` on lie in may be gone from the file: their pieces are not ready any more.
    pub(crate) fn forget(&mut self, at: u64, length: u64) {
        let begin = at.clamp(self.range.start, self.range.end);
        let end = (at + length).clamp(begin, self.range.end);
        if begin < end {
            for piece in self.pieces(begin, (end - begin) as usize) {
                *self.is_ready[piece].get_mut() = false;
            }
        }
    }

    /// The pieces that a range lies in, which is not empty and within what is mapped.
    fn pieces(&self, at: u64, length: usize) -> Range<usize> {
        let piece = |byte: u64| ((byte - self.range.start) / PIECE_BYTES) as usize;
        piece(at)..piece(at + length as u64 - 1) + 1
    }

    /// Where a piece lies in the file.
    fn bytes_of(&self, piece: usize) -> Range<u64> {
        let begin = self.range.start + piece as u64 * PIECE_BYTES;
        begin..self.range.end.min(begin + PIECE_BYTES)
    }

    /// Where the last of the pieces ends that a range lies in; `None` if not all of the range is mapped.
    pub(crate) fn end_of(&self, at: u64, length: usize) -> Option<u64> {
        self.covers(at, length).then(|| self.bytes_of(self.pieces(at, length).end - 1).end)
    }

    fn covers(&self, at: u64, length: usize) -> bool {
        length > 0 && self.range.start <= at && at + length as u64 <= self.range.end
    }

    /// True if all of `length` bytes from `at` on, counted from the beginning of the file, are ready.
    pub(crate) fn holds(&self, at: u64, length: usize) -> bool {
        self.covers(at, length)
            && self.pieces(at, length).all(|piece| self.is_ready[piece].load(Ordering::Relaxed))
    }

    /// Reads what is at `at`, which must be ready, into `bytes`.
    pub(crate) fn load(&self, at: u64, bytes: &mut [u8]) {
        assert!(self.holds(at, bytes.len()), "a load outside of the ready range");
        let offset = (at - self.range.start) as usize;
        // SAFETY: the range is within the mapping, whose pages are there; nobody in this process stores to it meanwhile,
        // for that needs all of `self`; `bytes` are not in it, as no reference points to it.
        unsafe {
            let from = self.map.as_ptr().add(offset);
            std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len());
        }
    }

    /// Stores `bytes` at `at`, which must be ready.
    pub(crate) fn store(&mut self, at: u64, bytes: &[u8]) {
        assert!(self.holds(at, bytes.len()), "a store outside of the ready range");
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

    /// Stores a number of eight bytes, whole or not at all, at `at`, a multiple of eight, which must be ready.
    pub(crate) fn store_word(&mut self, at: u64, word: u64) {
        assert!(self.holds(at, 8) && at.is_multiple_of(8), "a store outside of the ready range");
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
    fn stored_bytes_are_in_the_file() {
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

    #[test]
    fn pieces_are_made_ready_one_by_one_and_forgotten() {
        let file = tempfile::tempfile_in("/dev/shm").unwrap();
        file.set_len(2 * PIECE_BYTES + 4_096).unwrap();
        let mut mapped = Mapped::over(&file, 4_096..4 * PIECE_BYTES).unwrap();
        let first_end = 4_096 + PIECE_BYTES;
        assert_eq!(mapped.end_of(4_096, 1), Some(first_end));
        assert_eq!(mapped.end_of(first_end - 1, 2), Some(first_end + PIECE_BYTES));
        assert_eq!(mapped.end_of(4 * PIECE_BYTES - 1, 2), None);
        assert!(!mapped.holds(4_096, 1));
        mapped.make_ready(first_end - 1, 2).unwrap();
        assert!(mapped.holds(4_096, 2 * PIECE_BYTES as usize) && !mapped.holds(4_095, 2));
        assert!(mapped.make_ready(2 * PIECE_BYTES + 4_096, 1).is_err(), "beyond the file's end");
        mapped.store(first_end - 2, b"over");
        let mut bytes = [0; 4];
        mapped.load(first_end - 2, &mut bytes);
        assert_eq!(&bytes, b"over");
        mapped.forget(first_end, 1);
        assert!(mapped.holds(first_end - 1, 1) && !mapped.holds(first_end - 1, 2));
        mapped.forget(0, 4_097);
        assert!(!mapped.holds(4_096, 1));
        mapped.forget(u64::MAX / 2, 8);
    }
}
