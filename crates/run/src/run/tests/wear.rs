//! How long drives last, against drives that are written to their end.

use super::*;
use leyden_record::Lifetime;

/// Random writes to a tenth of a filled drive.
const UNEVEN: &str = "
    device.nand = { channels = 1, dies_per_channel = 2, blocks_per_plane = 64, pages_per_block = 16 }
    device.buffer.size = \"256 KiB\"
    device.ftl.over_provisioning = \"12 %\"
    precondition.kind = \"fill\"
    run.stamps = false

    [[workload.job]]
    span = \"1600 KiB\"
    queue_depth = 8
    requests = 60000
";
const LEVELLED: &str = "device.ftl.gc.levelling={ policy = \"least_worn\", spread = 8 }";

/// The record, and the bytes that the host could write before blocks were erased 100 times and retired. What its
/// buffer absorbed after that is no life: what flash took is, over the write amplification before.
fn life(sets: &[&str]) -> (RunRecord, f64) {
    let record_of = |more: &[&str]| record(&loaded(UNEVEN, &[sets, more].concat()));
    let to_the_end = ["device.nand.endurance_cycles=100", "workload.job.0.requests=1000000"];
    let worn = record_of(&to_the_end);
    assert!(worn.host.errors > 0, "the drive outlived its work: {:?}", worn.wear);
    let record = record_of(&[]);
    let lasted = worn.flash.waf * worn.host.bytes_written as f64 / record.flash.waf;
    (record, lasted)
}

#[test]
fn a_drive_lasts_as_long_as_its_most_worn_block() {
    let (record, lasted) = life(&[]);
    let life = Lifetime::of(&record, 100, 5.0).unwrap();
    let ratio = life.writable_bytes / lasted;
    assert!((0.9..1.1).contains(&ratio), "{ratio}: {life:?}");
    assert!(life.level_writable_bytes > 4.0 * lasted, "{life:?}, {lasted}");
}

#[test]
fn static_levelling_makes_a_drive_last() {
    let ((uneven, short), (level, long)) = (life(&[]), life(&[LEVELLED]));
    assert!(long > 2.0 * short, "{long}, {short}");
    let spread = |record: &RunRecord| record.wear.max - record.wear.min;
    assert!(3 * spread(&level) < spread(&uneven), "{:?}, {:?}", level.wear, uneven.wear);
    assert!((level.wear.max as f64) < 1.5 * level.wear.mean, "{:?}", level.wear);
    assert!(level.gc.wear_moves > 0 && uneven.gc.wear_moves == 0, "{:?}", level.gc);
}
