//! The border to WebAssembly: three functions, and the memory that questions and answers lie in.
//!
//! A caller asks for room, copies a question there as UTF-8, calls [`leyden_ask`] with its length, and reads the answer.
#![expect(unsafe_code, reason = "names that JavaScript calls; no unsafe block is here")]

use std::cell::RefCell;

use crate::Face;

/// A longer question is refused.
const BYTES_MOST: usize = 1 << 20;

/// The one drive of this instance.
#[derive(Default)]
struct Border {
    face: Face,
    question: Vec<u8>,
    answer: String,
}

thread_local! {
    static BORDER: RefCell<Border> = RefCell::default();
}

/// Room for a question of `bytes`; null if that is too long. It is valid until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn leyden_room(bytes: usize) -> *mut u8 {
    BORDER.with_borrow_mut(|border| {
        border.question.clear();
        if bytes > BYTES_MOST {
            return std::ptr::null_mut();
        }
        border.question.resize(bytes, 0);
        border.question.as_mut_ptr()
    })
}

/// Asks the question that lies in the room; returns the length of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn leyden_ask() -> usize {
    BORDER.with_borrow_mut(|border| {
        border.answer = border.face.ask(&border.question);
        border.answer.len()
    })
}

/// The answer to the last question, as UTF-8. It is valid until the next one.
#[unsafe(no_mangle)]
pub extern "C" fn leyden_answer() -> *const u8 {
    BORDER.with_borrow(|border| border.answer.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> String {
        let length = leyden_ask();
        BORDER.with_borrow(|border| {
            assert_eq!(border.answer.len(), length);
            border.answer.clone()
        })
    }

    #[test]
    fn no_question_and_one_that_is_too_long_get_an_error() {
        assert!(answer().contains(r#""answer":"error""#));
        assert!(leyden_room(usize::MAX).is_null());
        assert!(answer().contains(r#""answer":"error""#));
        assert!(!leyden_room(BYTES_MOST).is_null());
        assert!(answer().contains(r#""answer":"error""#), "zeroes are no JSON");
    }
}
