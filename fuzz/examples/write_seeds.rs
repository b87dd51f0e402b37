//! Writes the seeds that are made by functions to `fuzz/corpus/TARGET`: without them a target does not get past a magic
//! number. An example: `cargo fuzz build` links every `[[bin]]` with libFuzzer, which has a `main` of its own.
//!
//!     cargo +nightly run --manifest-path fuzz/Cargo.toml --example write_seeds

use std::path::Path;

fn main() -> std::io::Result<()> {
    let superblocks = leyden_host::zoned_block::superblock::fuzz::seeds();
    let seeds = [
        ("nbd_client", leyden_serve::fuzz::nbd_seed()),
        ("nbd_session", leyden_serve::fuzz::nbd_seed()),
        ("nvme_host", leyden_serve::fuzz::nvme_seed()),
        ("nvme_session", leyden_serve::fuzz::nvme_seed()),
        ("program", leyden_serve::fuzz::program_seed()),
        ("program_session", leyden_serve::fuzz::program_seed()),
        ("served_drive", leyden_serve::fuzz::served_drive_seed()),
        ("files_recording", leyden_crashtest::fuzz::files_seed()),
        ("log_writes", leyden_wire::fuzz::log_seed()),
        ("image_recording", leyden_image::fuzz::recording_seed()),
        ("image_recording", leyden_image::fuzz::zoned_recording_seed()),
        ("image_log", leyden_image::fuzz::log_seed()),
        ("drive_snapshot", leyden_device::fuzz::seed()),
        ("zoned_block_superblock", superblocks[0].clone()),
        ("zoned_block_superblock", superblocks[1].clone()),
        ("zoned_block_tables", leyden_host::zoned_block::fuzz::seed()),
    ];
    for (number, (target, seed)) in seeds.into_iter().enumerate() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
