//! A short fuzz of everything but traces that comes from outside, on the stable toolchain: the seed corpora,
//! mutated by a seeded loop. The long one is `fuzz/`, which shares the seeds and the functions under test.

use std::path::Path;

use leyden_sim::Rng;
use leyden_workload::trace::fuzz::mutate;

/// The tokens that are put into mutants of texts.
const TOKENS: [&[u8]; 24] = [
    b"0",
    b"1",
    b"-1",
    b"18446744073709551615",
    b"4294967296",
    b"1e999",
    b"NaN",
    b"null",
    b"true",
    b"\"\"",
    b"[]",
    b"{}",
    b"[",
    b"}",
    b",",
    b"\n",
    b"=",
    b".",
    b"\"100 %\"",
    b"\"1 ns\"",
    b"\xff",
    b"\x00",
    b"extends",
    b"[[run.cut]]\nat = \"1 s\"\n",
];

fn seeds(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus-seeds").join(folder);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// `read` takes every seed, and so many mutants of them or refuses them.
fn fuzz<E: std::fmt::Debug>(
    seeds: &[Vec<u8>],
    mutants: u64,
    read: impl Fn(&[u8]) -> Result<(), E>,
) {
    assert!(!seeds.is_empty());
    let mut rng = Rng::new(seeds.len() as u64, "short fuzz");
    for seed in seeds {
        read(seed).expect("a seed is read");
        for _ in 0..mutants {
            let other = &seeds[rng.below(seeds.len() as u64) as usize];
            let mut mutant = seed.clone();
            for _ in 0..=rng.below(4) {
                mutate(&mut rng, &mut mutant, other, &TOKENS);
            }
            let _ = read(&mutant);
        }
    }
}

#[test]
fn seed_files() {
    fuzz(&seeds("seed_file"), 3_000, leyden_torture::fuzz::seed_file);
}

#[test]
fn campaign_states() {
    fuzz(&seeds("campaign_state"), 3_000, leyden_torture::fuzz::campaign_state);
}

#[test]
fn scenarios() {
    fuzz(&seeds("scenario"), 1_000, leyden_config::fuzz::scenario);
}

#[test]
fn run_records() {
    fuzz(&seeds("record"), 200, |data| leyden_report::fuzz::records(data).map(|_| ()));
}

#[test]
fn snapshots() {
    let seeds = [leyden_device::fuzz::seed()];
    fuzz(&seeds, 1_000, |data| leyden_device::fuzz::snapshot(data, false));
    fuzz(&seeds, 3_000, |data| leyden_device::fuzz::snapshot(data, true));
}

#[test]
fn clients_of_nbd() {
    fuzz(&[leyden_serve::fuzz::nbd_seed()], 20_000, leyden_serve::fuzz::nbd_client);
}

#[test]
fn browsers() {
    fuzz(&[leyden_serve::fuzz::http_seed()], 20_000, leyden_serve::fuzz::http_request);
}

#[test]
fn hosts_of_nvme() {
    fuzz(&[leyden_serve::fuzz::nvme_seed()], 20_000, leyden_serve::fuzz::nvme_host);
}

#[test]
fn clients_of_vfio_user() {
    fuzz(&[leyden_serve::fuzz::vfio_user_seed()], 5_000, leyden_serve::fuzz::vfio_user);
}

#[test]
fn sessions_of_clients_and_programs() {
    let folder = tempfile::tempdir().unwrap();
    let sessions = leyden_serve::fuzz::Sessions::new(&folder.path().join("disk.leyden"));
    fuzz(&[leyden_serve::fuzz::nbd_seed()], 500, |sent| sessions.nbd(sent));
    fuzz(&[leyden_serve::fuzz::program_seed()], 500, |sent| sessions.program(sent));
    fuzz(&[leyden_serve::fuzz::nvme_seed()], 500, |sent| sessions.nvme(sent));
    fuzz(&[leyden_serve::fuzz::http_seed()], 500, |sent| sessions.http(sent));
    fuzz(&[leyden_serve::fuzz::vfio_user_seed()], 500, |sent| sessions.vfio_user(sent));
}

#[test]
fn programs_and_served_drives() {
    use leyden_serve::fuzz::{program, program_seed, served_drive, served_drive_seed};
    fuzz(&[program_seed()], 20_000, program);
    fuzz(&[served_drive_seed()], 20_000, served_drive);
}

#[test]
fn logs_of_dm_log_writes() {
    fuzz(&[leyden_crashtest::fuzz::log_seed()], 5_000, leyden_crashtest::fuzz::log);
}

#[test]
fn recordings_of_files() {
    fuzz(&[leyden_crashtest::fuzz::files_seed()], 5_000, leyden_crashtest::fuzz::files);
}

#[test]
fn recordings() {
    let seeds = [leyden_image::fuzz::recording_seed(), leyden_image::fuzz::zoned_recording_seed()];
    fuzz(&seeds, 400, leyden_image::fuzz::recording);
}

#[test]
fn logs_of_images() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk.leyden");
    let mut rng = Rng::new(1, "logs of images");
    let seed = leyden_image::fuzz::log_seed();
    for _ in 0..150 {
        let mut mutant = seed.clone();
        for _ in 0..=rng.below(4) {
            mutate(&mut rng, &mut mutant, &seed, &TOKENS);
        }
        let _ = leyden_image::fuzz::log(&path, &mutant);
    }
}

#[test]
fn questions_to_a_server() {
    let seeds =
        [br#"{"ask":"status"}"#.to_vec(), br#"{"ask":"restore","capacitance_nf":5}"#.to_vec()];
    fuzz(&seeds, 5_000, leyden_serve::fuzz::control_line);
}
