//! The border between C and Rust: pointers, sizes of structures, panics, and the last error of a thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::handle::Handle;
use crate::statuses::Failure;
use crate::types::*;

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::default();
}

/// The message of this thread's last failed call.
pub(crate) fn last_error() -> *const c_char {
    // The text stays where it is until the next failure replaces it.
    LAST_ERROR.with(|last| last.borrow().as_ptr())
}

fn set_last_error(text: &str) {
    let text = CString::new(text.replace('\0', "?")).expect("no NUL is left");
    LAST_ERROR.with(|last| last.replace(text));
}

/// Does `run`, and returns its status. A panic ends here.
pub(crate) fn call(run: impl FnOnce() -> Result<(), Failure>) -> leyden_status {
    let failure = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(Ok(())) => return LEYDEN_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text =
                text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Failure::new(LEYDEN_E_BUG, format!("a bug in Leyden, please report it: {text}"))
        }
    };
    set_last_error(&failure.text);
    failure.status
}

/// Does `run` with the drive of a handle.
///
/// # Safety
/// `drive` is null, or a handle that was not closed.
pub(crate) unsafe fn call_on(
    drive: *mut leyden_drive,
    run: impl FnOnce(&Handle) -> Result<(), Failure>,
) -> leyden_status {
    // SAFETY: handles are made of boxes of `Handle` (`to_c`), and shared until they are closed.
    let handle = unsafe { drive.cast::<Handle>().as_ref() };
    call(|| run(handle.ok_or_else(|| Failure::argument("the drive is NULL"))?))
}

/// Makes a handle.
pub(crate) fn to_c(handle: Handle) -> *mut leyden_drive {
    Box::into_raw(Box::new(handle)).cast()
}

/// Takes a handle back.
///
/// # Safety
/// `drive` is null, or a handle that was not closed and that nobody uses any more.
pub(crate) unsafe fn from_c(drive: *mut leyden_drive) -> Option<Handle> {
    // SAFETY: `to_c` has made it, and the caller gives it away.
    (!drive.is_null()).then(|| *unsafe { Box::from_raw(drive.cast::<Handle>()) })
}

/// A text of the caller.
///
/// # Safety
/// `text` is null, or ends with a NUL, and stays as it is for `'a`.
pub(crate) unsafe fn text<'a>(what: &str, text: *const c_char) -> Result<&'a CStr, Failure> {
    if text.is_null() {
        return Err(Failure::argument(format!("the {what} is NULL")));
    }
    // SAFETY: as promised.
    Ok(unsafe { CStr::from_ptr(text) })
}

/// A path of the caller.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn path<'a>(path: *const c_char) -> Result<&'a Path, Failure> {
    // SAFETY: as promised.
    let text = unsafe { text("path", path) }?;
    Ok(Path::new(OsStr::from_bytes(text.to_bytes())))
}

/// A text of the caller that must be UTF-8.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn utf8<'a>(what: &str, of: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: as promised.
    let text = unsafe { text(what, of) }?;
    text.to_str().map_err(|_| Failure::argument(format!("the {what} is not UTF-8")))
}

/// Bytes of the caller to be read.
///
/// # Safety
/// `buffer` is null, or has `length` bytes that nobody changes for `'a`.
pub(crate) unsafe fn bytes<'a>(buffer: *const c_void, length: usize) -> Result<&'a [u8], Failure> {
    check_buffer(buffer, length)?;
    // SAFETY: as promised, and checked.
    Ok(unsafe { std::slice::from_raw_parts(buffer.cast(), length) })
}

/// Bytes of the caller to be written.
///
/// # Safety
/// `buffer` is null, or has `length` bytes that nobody else uses for `'a`.
pub(crate) unsafe fn bytes_mut<'a>(
    buffer: *mut c_void,
    length: usize,
) -> Result<&'a mut [u8], Failure> {
    check_buffer(buffer, length)?;
    // SAFETY: as promised, and checked.
    Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length) })
}

fn check_buffer(buffer: *const c_void, length: usize) -> Result<(), Failure> {
    if buffer.is_null() {
        return Err(Failure::argument("the buffer is NULL"));
    }
    if isize::try_from(length).is_err() {
        return Err(Failure::argument("the length is that of no buffer"));
    }
    Ok(())
}

/// A structure that begins with its size.
///
/// # Safety
/// The type is `repr(C)`, its first field is `size: u32`, and all zeroes are a value of it.
pub(crate) unsafe trait Sized32: Copy {
    /// Bytes that it had in the first version of the interface.
    const FIRST_BYTES: usize;
}

macro_rules! sized {
    ($($name:ident = $bytes:literal),* $(,)?) => {
        $(
            const _: () = assert!(size_of::<$name>() >= $bytes && std::mem::offset_of!($name, size) == 0);
            // SAFETY: all fields are numbers or pointers, and the first one was looked at above.
            unsafe impl Sized32 for $name {
                const FIRST_BYTES: usize = $bytes;
            }
        )*
    };
}

sized!(
    leyden_open_options = 24,
    leyden_connect_options = 8,
    leyden_open_report = 16,
    leyden_identity = 112,
    leyden_cut_report = 72,
    leyden_restore_report = 48,
    leyden_stats = 184,
);

/// The size that the caller's structure declares.
///
/// # Safety
/// `of` points to a structure of the size that its first field says.
unsafe fn size_of_caller<T: Sized32>(of: *const T) -> Result<usize, Failure> {
    // SAFETY: it begins with its size.
    let size = unsafe { of.cast::<u32>().read() } as usize;
    if size < T::FIRST_BYTES {
        let name = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
        let problem = format!("{name}.size is {size}: set it to sizeof({name})");
        return Err(Failure::argument(problem));
    }
    Ok(size.min(size_of::<T>()))
}

/// Copies what the caller knows of a structure; the rest is zeroes.
///
/// # Safety
/// `from` points to a structure of the size that its first field says.
pub(crate) unsafe fn take<T: Sized32>(from: *const T) -> Result<T, Failure> {
    // SAFETY: as promised.
    let bytes = unsafe { size_of_caller(from) }?;
    let mut value = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both have so many bytes, and zeroes are a value of the rest.
    unsafe {
        from.cast::<u8>().copy_to_nonoverlapping(value.as_mut_ptr().cast(), bytes);
        Ok(value.assume_init())
    }
}

/// Writes as much of `value` as the caller knows of, but for its size.
///
/// # Safety
/// `to` is null, or points to a structure of the size that its first field says.
pub(crate) unsafe fn put<T: Sized32>(to: *mut T, value: &T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::argument("where the result goes is NULL"));
    }
    // SAFETY: as promised.
    let bytes = unsafe { size_of_caller(to) }?;
    let from = std::ptr::from_ref(value).cast::<u8>();
    // SAFETY: both have so many bytes; the size, which comes first, stays the caller's.
    unsafe { from.add(4).copy_to_nonoverlapping(to.cast::<u8>().add(4), bytes - 4) };
    Ok(())
}

/// The same, if the caller wants it.
///
/// # Safety
/// As [`put`].
pub(crate) unsafe fn put_if_wanted<T: Sized32>(to: *mut T, value: &T) -> Result<(), Failure> {
    // SAFETY: as promised.
    if to.is_null() { Ok(()) } else { unsafe { put(to, value) } }
}

/// Checks a structure before anything is done, so that what is done can be told of.
///
/// # Safety
/// As [`put`].
pub(crate) unsafe fn check_wanted<T: Sized32>(to: *const T) -> Result<(), Failure> {
    // SAFETY: as promised.
    if to.is_null() { Ok(()) } else { unsafe { size_of_caller(to) }.map(drop) }
}

/// Writes elements into the caller's array, whose elements are `stride` bytes apart.
///
/// # Safety
/// `to` has room for `values.len()` elements of `stride` bytes.
pub(crate) unsafe fn put_array<T: Copy>(
    to: *mut T,
    stride: usize,
    values: impl Iterator<Item = T>,
) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::argument("the array is NULL"));
    }
    if stride < size_of::<T>() || !stride.is_multiple_of(align_of::<T>()) {
        let name = std::any::type_name::<T>().rsplit("::").next().unwrap_or_default();
        return Err(Failure::argument(format!(
            "elements are {stride} bytes apart: give sizeof({name})"
        )));
    }
    for (index, value) in values.enumerate() {
        // SAFETY: there is room for it, and `stride` keeps it aligned.
        unsafe { to.cast::<u8>().add(index * stride).cast::<T>().write(value) };
    }
    Ok(())
}

/// Writes a number for the caller.
///
/// # Safety
/// `to` is null, or can be written to.
pub(crate) unsafe fn put_number<T>(to: *mut T, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::argument("where the result goes is NULL"));
    }
    // SAFETY: as promised.
    unsafe { to.write(value) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_here_and_is_told_of() {
        let status = call(|| panic!("a slip of {}", 7));
        // SAFETY: the last error is a text.
        let text = unsafe { CStr::from_ptr(last_error()) }.to_str().unwrap();
        assert_eq!(status, LEYDEN_E_BUG);
        assert!(text.contains("a slip of 7"), "{text}");
        assert_eq!(call(|| Ok(())), LEYDEN_OK);
    }

    #[test]
    fn each_thread_has_its_last_error() {
        assert_eq!(call(|| Err(Failure::argument("here"))), LEYDEN_E_ARGUMENT);
        let other = std::thread::scope(|scope| {
            // SAFETY: the last error is a text.
            let look = || unsafe { CStr::from_ptr(last_error()) }.to_owned();
            scope.spawn(look).join().unwrap()
        });
        assert!(other.is_empty());
    }

    /// The caller was compiled with a later header, whose structure is longer.
    #[repr(C)]
    struct Later {
        known: leyden_open_report,
        unknown: u64,
    }

    #[test]
    fn no_more_is_written_than_the_caller_and_the_library_know() {
        let value =
            leyden_open_report { size: 0, was_killed: 1, replayed_commands: 0x0123_4567_89ab_cdef };
        let mut later =
            Later { known: leyden_open_report { replayed_commands: 0, ..value }, unknown: 77 };
        later.known.size = size_of::<Later>() as u32;
        // SAFETY: it is as large as it says.
        unsafe { put(&raw mut later.known, &value) }.unwrap();
        assert_eq!((later.known.size, later.unknown), (size_of::<Later>() as u32, 77));
        assert_eq!(later.known.replayed_commands, value.replayed_commands);
        let mut unset = leyden_open_report { size: 0, ..value };
        // SAFETY: no more than the size is looked at.
        assert_eq!(unsafe { put(&raw mut unset, &value) }.unwrap_err().status, LEYDEN_E_ARGUMENT);
    }
}
