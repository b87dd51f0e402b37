//! Panics of the drive become failures of the run, and keep quiet.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// The panic's message, while one is being caught on this thread.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`; if it panics, yields what the panic said and where.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |info| {
            let quiet = CAUGHT.with_borrow_mut(|caught| match caught {
                Some(message) => {
                    *message = info.to_string().replace('\n', " ");
                    true
                }
                None => false,
            });
            if !quiet {
                before(info);
            }
        }));
    });
    CAUGHT.set(Some(String::new()));
    // State that the work leaves behind after a panic is dropped and never looked at.
    let result = catch_unwind(AssertUnwindSafe(work));
    let message = CAUGHT.take().unwrap_or_default();
    result.map_err(|_| message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_and_where() {
        assert_eq!(caught(|| 3), Ok(3));
        let message = caught(|| panic!("sums")).unwrap_err();
        assert!(message.contains("sums") && message.contains("panics.rs"), "{message}");
    }
}
