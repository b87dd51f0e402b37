#![no_main]
use std::sync::OnceLock;

use leyden_serve::fuzz::Sessions;

static SESSIONS: OnceLock<Sessions> = OnceLock::new();

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let sessions = SESSIONS.get_or_init(|| {
        let image = std::env::temp_dir().join(format!("leyden-fuzz-vfio_user_session-{}", std::process::id()));
        let sessions = Sessions::new(&image);
        let _ = std::fs::remove_file(image);
        sessions
    });
    let _ = sessions.vfio_user(data);
});
