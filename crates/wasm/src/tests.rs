//! Sessions with cuts, beside the durability model: the ledger's twin checks each of them.

use leyden_buffer::schedule::ScheduleConfig;
use leyden_ftl::map::ProtectionConfig;
use serde_json::{Value, json};

use crate::Face;

fn ask(face: &mut Face, question: &Value) -> Value {
    let answer = face.ask(question.to_string().as_bytes());
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_ne!(answer["answer"], "error", "{question}: {answer}");
    answer
}

/// Two channels, two dies each, blocks of 8 pages of 8 KiB; 16 entries in a mapping page.
fn drive(region: &str, protection: &str, schedule: &str, bank: Option<&str>) -> Value {
    json!({
        "nand": { "channels": 2, "dies_per_channel": 2, "blocks_per_plane": 32, "pages_per_block": 8 },
        "ftl": {
            "over_provisioning": "250 %",
            "map": { "protection": protection, "entries_per_page": 16 },
        },
        "buffer": { "region": region, "size": "256 KiB", "schedule": schedule,
            "protected_size": if region == "selective" { "128 KiB" } else { "0 B" } },
        "power": { "bank": { "capacitance": bank }, "allow_underprovisioned": bank.is_some() },
    })
}

fn open(device: &Value, seed: u64) -> Face {
    let mut face = Face::default();
    let jobs = json!([
        { "pattern": "random", "queue_depth": 24, "fsync_every": 40, "read_share": "10 %", "span": "512 KiB" },
        { "pattern": "sequential", "queue_depth": 2, "block_size": "8 KiB", "fua_share": "50 %", "span": "256 KiB" },
    ]);
    let question = json!({ "ask": "open", "device": device, "jobs": jobs, "seed": seed, "fill": true, "overwrite": "50 %" });
    ask(&mut face, &question);
    face
}

fn lost(cut: &Value) -> (u64, u64) {
    let bytes = |key: &str| cut[key].as_u64().unwrap();
    (bytes("lost_acknowledged_bytes"), bytes("lost_promised_bytes"))
}

/// Writes, cuts, and restores some times over; sums the losses.
fn cuts(face: &mut Face) -> (u64, u64) {
    let mut sums = (0, 0);
    for round in 0..6_u64 {
        let span_ns = 1_000_000 + round * 1_234_567;
        ask(face, &json!({ "ask": "advance", "span_ns": span_ns, "commands_most": 100_000 }));
        let (acknowledged, promised) = lost(&ask(face, &json!({ "ask": "cut" })));
        assert!(promised <= acknowledged);
        sums = (sums.0 + acknowledged, sums.1 + promised);
        ask(face, &json!({ "ask": "restore" }));
        if round % 2 == 0 {
            // A second cut before it is ready: recovery has lost nothing, and loses nothing now.
            ask(face, &json!({ "ask": "advance", "span_ns": 1_000, "commands_most": 1 }));
            let again = ask(face, &json!({ "ask": "cut" }));
            assert_eq!((again["during_recovery"].as_bool(), lost(&again)), (Some(true), (0, 0)));
            ask(face, &json!({ "ask": "restore" }));
        }
        ask(face, &json!({ "ask": "advance", "span_ns": 3_000_000_000_u64, "commands_most": 1 }));
        assert_eq!(ask(face, &json!({ "ask": "look" }))["is_ready"], true);
    }
    sums
}

#[test]
fn promises_are_kept_and_the_rest_is_counted_under_every_protection() {
    for protection in ProtectionConfig::POLICIES {
        for schedule in ScheduleConfig::POLICIES {
            let mut volatile = 0;
            for (region, seed) in [("none", 1), ("full", 2), ("selective", 3), ("none", 4)] {
                let mut face = open(&drive(region, protection.name, schedule.name, None), seed);
                let (acknowledged, promised) = cuts(&mut face);
                assert_eq!(promised, 0, "{region} {} {}", protection.name, schedule.name);
                match region {
                    "full" => assert_eq!(acknowledged, 0, "{} {}", protection.name, schedule.name),
                    _ => volatile += acknowledged,
                }
            }
            assert!(volatile > 0, "a volatile buffer loses what it holds: {}", schedule.name);
        }
    }
}

#[test]
fn a_bank_that_is_too_small_loses_what_was_promised() {
    let mut sum = 0;
    for protection in ["full", "partial", "none"] {
        let mut face = open(&drive("full", protection, "fifo", Some("45 uF")), 5);
        let (acknowledged, promised) = cuts(&mut face);
        assert_eq!(acknowledged, promised, "with a protected buffer all is promised");
        sum += promised;
    }
    assert!(sum > 0);
}

#[test]
fn the_loss_foreseen_is_the_loss() {
    let mut face = open(&drive("full", "full", "fifo", Some("45 uF")), 6);
    ask(&mut face, &json!({ "ask": "advance", "span_ns": 9_000_000, "commands_most": 100_000 }));
    let sample = ask(&mut face, &json!({ "ask": "look" }));
    let foreseen = sample["cut_now"]["unsaved_bytes"].as_u64().unwrap();
    assert!(foreseen > 0);
    let cut = ask(&mut face, &json!({ "ask": "cut" }));
    // Data of writes that are not acknowledged yet is in the buffer, too, and is not missed.
    let gone = lost(&cut).1;
    assert!(gone > 0 && gone <= foreseen, "{gone} of {foreseen}");
}
