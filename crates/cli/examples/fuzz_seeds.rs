//! Writes the seeds of fuzz targets that are made by functions, to FOLDER/TARGET: without them a target does not get past a
//! magic number. In this workspace, whose crates are built already; `cargo fuzz` builds them again, its own way.
//!
//!     cargo build --workspace --example fuzz_seeds && target/debug/examples/fuzz_seeds fuzz/corpus

use std::path::Path;

fn main() -> std::io::Result<()> {
    let Some(corpus) = std::env::args_os().nth(1) else {
        return Err(std::io::Error::other("name the folder of all corpora: fuzz/corpus"));
    };
    let superblocks = leyden_torture::fuzz::superblock_seeds();
    let seeds = [
        ("nbd_client", leyden_serve::fuzz::nbd_seed()),
        ("nbd_session", leyden_serve::fuzz::nbd_seed()),
        ("nvme_host", leyden_serve::fuzz::nvme_seed()),
        ("nvme_session", leyden_serve::fuzz::nvme_seed()),
        ("http_session", leyden_serve::fuzz::http_seed()),
        ("vfio_user", leyden_serve::fuzz::vfio_user_seed()),
        ("vfio_user_session", leyden_serve::fuzz::vfio_user_seed()),
        ("program", leyden_serve::fuzz::program_seed()),
        ("program_session", leyden_serve::fuzz::program_seed()),
        ("served_drive", leyden_serve::fuzz::served_drive_seed()),
        ("log_writes", leyden_crashtest::fuzz::log_seed()),
        ("image_recording", leyden_image::fuzz::recording_seed()),
        ("image_recording", leyden_image::fuzz::zoned_recording_seed()),
        ("image_log", leyden_image::fuzz::log_seed()),
        ("files_recording", leyden_crashtest::fuzz::files_seed()),
        ("drive_snapshot", leyden_device::fuzz::seed()),
        ("zoned_block_superblock", superblocks[0].clone()),
        ("zoned_block_superblock", superblocks[1].clone()),
        ("zoned_block_tables", leyden_torture::fuzz::tables_seed()),
    ];
    for (number, (target, seed)) in seeds.into_iter().enumerate() {
        let folder = Path::new(&corpus).join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
