//! The face against the library, and against bad input.

use leyden_device::{BlockDevice, Command, Completion, Config, Op, Ssd, Stamp};
use leyden_sim::Time;
use leyden_wasm::Face;
use leyden_workload::synth::JobConfig;
use serde_json::{Value, json};

fn ask(face: &mut Face, question: &Value) -> Value {
    serde_json::from_str(&face.ask(question.to_string().as_bytes())).unwrap()
}

/// Lets time pass, and looks.
fn run(face: &mut Face, span_ns: u64, commands_most: u64) -> Value {
    let question = json!({ "ask": "advance", "span_ns": span_ns, "commands_most": commands_most });
    assert_eq!(ask(face, &question)["answer"], "advanced");
    ask(face, &json!({ "ask": "look" }))
}

/// A small drive, and its random writes.
fn opening() -> Value {
    let nand = json!({ "channels": 2, "dies_per_channel": 2, "blocks_per_plane": 32, "pages_per_block": 32 });
    let device = json!({ "nand": nand, "ftl": { "over_provisioning": "100 %" },
        "buffer": { "size": "1 MiB", "schedule": "harvest" }, "power": {} });
    let jobs = json!([{ "pattern": "sequential", "queue_depth": 16 }]);
    json!({ "ask": "open", "device": device, "jobs": jobs, "seed": 7, "fill": false, "overwrite": "0 %" })
}

/// The same run by the library alone.
fn by_library(opening: &Value, commands: u64) -> (String, u64, u64) {
    let config: Config = serde_json::from_value(opening["device"].clone()).unwrap();
    let mut job: JobConfig = serde_json::from_value(opening["jobs"][0].clone()).unwrap();
    job.requests = Some(commands);
    let mut drive = Ssd::<Stamp>::new(&config, 7).unwrap();
    let mut job = job.build(7, 0, drive.capacity_sectors()).unwrap();
    let mut stamp = 0;
    let mut submit = |drive: &mut Ssd<Stamp>, now| {
        let request = job.next_request(0);
        assert_eq!(request.op, Op::Write);
        stamp += 1;
        drive.submit(now, Command::write(request.lba, request.sectors, stamp));
    };
    (0..16).for_each(|_| submit(&mut drive, Time::ZERO));
    let (mut done, mut ended) = (Vec::<Completion<Stamp>>::new(), 0);
    while ended < commands {
        let now = drive.advance_until_completion(drive.now(), Time::MAX, &mut done);
        ended += done.len() as u64;
        let count = done.drain(..).count();
        if ended < commands {
            (0..count).for_each(|_| submit(&mut drive, now));
        }
    }
    let stats = drive.stats();
    (drive.digest().to_string(), stats.ftl.user_units, stats.ftl.gc.copied_units)
}

#[test]
fn a_run_is_that_of_the_library() {
    let (mut face, opening) = (Face::default(), opening());
    assert_eq!(ask(&mut face, &opening)["answer"], "opened");
    let sample = run(&mut face, 60_000_000_000, 20_000);
    let ended = sample["counts"]["writes"].as_u64().unwrap();
    assert!(ended >= 20_000, "{sample}");
    let (digest, user, copied) = by_library(&opening, ended);
    assert_eq!(sample["digest"], digest);
    assert_eq!(
        (sample["user_units"].as_u64(), sample["copied_units"].as_u64()),
        (Some(user), Some(copied))
    );
    assert!(user > 0);
    let cut = ask(&mut face, &json!({ "ask": "cut" }));
    assert!(
        cut["in_flight"].as_u64() > Some(0) && cut["in_flight"] == sample["in_flight"],
        "{cut}"
    );
}

#[test]
fn a_rate_is_kept() {
    let (mut face, mut opening) = (Face::default(), opening());
    opening["jobs"][0]["iops_limit"] = json!(2_000);
    ask(&mut face, &opening);
    for second in 1..=3 {
        let sample = run(&mut face, 1_000_000_000, 100_000);
        let writes = sample["counts"]["writes"].as_u64().unwrap();
        assert!(
            (2_000 * second - 1..=2_000 * second + 1).contains(&writes),
            "{writes} after {second} s"
        );
    }
}

#[test]
fn the_host_goes_on_when_the_drive_is_ready() {
    let (mut face, mut opening) = (Face::default(), opening());
    opening["jobs"][0]["iops_limit"] = json!(2_000);
    ask(&mut face, &opening);
    let before = run(&mut face, 1_000_000_000, 100_000);
    ask(&mut face, &json!({ "ask": "cut" }));
    let off = run(&mut face, 5_000_000_000, 100_000);
    assert_eq!(off["counts"], before["counts"], "without power nothing ends");
    let restored = ask(&mut face, &json!({ "ask": "restore" }));
    let wait_ns = restored["ready_ns"].as_u64().unwrap() - off["time_ns"].as_u64().unwrap();
    let after = run(&mut face, wait_ns + 1_000_000_000, 100_000);
    let writes = |of: &Value| of["counts"]["writes"].as_u64().unwrap();
    let grown = writes(&after) - writes(&before);
    assert!((1_999..=2_001).contains(&grown), "{grown}");
}

/// Bad questions, and a word of each error.
fn bad() -> Vec<(Value, &'static str)> {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut question = opening();
        change(&mut question);
        question
    };
    let huge = u64::MAX;
    vec![
        (json!(null), "read"),
        (json!([]), "read"),
        (json!({ "ask": "everything" }), "unknown variant"),
        (json!({ "ask": "open" }), "missing field"),
        (json!({ "ask": "cut", "now": true }), "unknown field"),
        (with(&|it| it["device"]["zoned"] = json!({})), "zoned"),
        (with(&|it| it["device"]["nand"]["channels"] = json!(0)), "device.nand.channels"),
        (with(&|it| it["device"]["nand"]["blocks_per_plane"] = json!(1 << 20)), "blocks"),
        (with(&|it| it["device"]["nand"]["page_size"] = json!("3 KiB")), "page_size"),
        (with(&|it| it["device"]["buffer"]["size"] = json!("1 TiB")), "device.buffer.size"),
        (with(&|it| it["device"]["buffer"]["size"] = json!("0 B")), "buffer.size"),
        (with(&|it| it["device"]["buffer"]["schedule"] = json!("best")), "best"),
        (with(&|it| it["device"]["frontend"] = json!({ "queues": huge })), "read"),
        (with(&|it| it["device"]["power"]["bank"] = json!({ "capacitance": "1 uF" })), "bank"),
        (
            with(&|it| {
                it["device"]["ftl"]["map"] =
                    json!({ "protection": { "policy": "journal", "size": "1 TiB" } });
            }),
            "protection.size",
        ),
        (with(&|it| it["device"]["ftl"]["capacity"] = json!("100 GiB")), "capacity"),
        (with(&|it| it["overwrite"] = json!("10 %")), "fill"),
        (with(&|it| it["overwrite"] = json!("1000 %")), "overwrite"),
        (with(&|it| it["seed"] = json!(-1)), "read"),
        (with(&|it| it["jobs"] = json!(vec![json!({}); 17])), "17"),
        (with(&|it| it["jobs"][0]["queue_depth"] = json!(0)), "jobs[0].queue_depth"),
        (with(&|it| it["jobs"][0]["queue_depth"] = json!(1_000_000)), "jobs[0].queue_depth"),
        (with(&|it| it["jobs"][0]["iops_limit"] = json!(huge)), "jobs[0].iops_limit"),
        (with(&|it| it["jobs"][0]["threads"] = json!(2)), "jobs[0].threads"),
        (with(&|it| it["jobs"][0]["trim_share"] = json!("5 %")), "jobs[0].trim_share"),
        (with(&|it| it["jobs"][0]["span"] = json!("1 TiB")), "jobs[0].span"),
        (with(&|it| it["jobs"][0]["block_size"] = json!("100 MiB")), "jobs[0].block_size"),
    ]
}

#[test]
fn bad_questions_get_an_error_and_change_nothing() {
    let mut face = Face::default();
    for early in [
        json!({ "ask": "cut" }),
        json!({ "ask": "restore" }),
        json!({ "ask": "jobs", "jobs": [] }),
        json!({ "ask": "advance", "span_ns": 1, "commands_most": 1 }),
    ] {
        assert!(ask(&mut face, &early)["problem"].as_str().unwrap().contains("`open`"), "{early}");
    }
    ask(&mut face, &opening());
    let look = json!({ "ask": "look" });
    run(&mut face, 5_000_000, 1_000);
    let before = ask(&mut face, &look);
    for (question, word) in bad() {
        let answer = ask(&mut face, &question);
        assert_eq!(answer["answer"], "error", "{question}");
        assert!(answer["problem"].as_str().unwrap().contains(word), "{answer} has no `{word}`");
    }
    for text in [&b""[..], b"\0\0\0\0", b"\xff\xfe", b"{", "[".repeat(100_000).as_bytes()] {
        assert!(face.ask(text).contains(r#""answer":"error""#));
    }
    let late = [
        json!({ "ask": "restore" }),
        json!({ "ask": "advance", "span_ns": u64::MAX, "commands_most": 1 }),
        json!({ "ask": "advance", "span_ns": 1, "commands_most": u64::MAX }),
    ];
    for question in late {
        assert_eq!(ask(&mut face, &question)["answer"], "error", "{question}");
    }
    assert_eq!(ask(&mut face, &look)["digest"], before["digest"]);
    // Twice off, and twice on.
    let answers = ["cut", "cut", "restore", "restore"]
        .map(|it| ask(&mut face, &json!({ "ask": it }))["answer"].clone());
    assert_eq!(answers, ["cut", "error", "restored", "error"]);
}

#[test]
fn a_drive_without_a_power_table_is_never_cut() {
    let (mut face, mut opening) = (Face::default(), opening());
    opening["device"]["power"] = json!(null);
    let opened = ask(&mut face, &opening);
    assert!(opened["bank"].is_null() && opened["sample"]["cut_now"].is_null());
    assert!(
        ask(&mut face, &json!({ "ask": "cut" }))["problem"]
            .as_str()
            .unwrap()
            .contains("device.power")
    );
}

#[test]
fn the_largest_queue_does_not_wrap() {
    let (mut face, mut opening) = (Face::default(), opening());
    opening["device"]["frontend"] = json!({ "queues": 65_536, "queue_depth": 65_536 });
    ask(&mut face, &opening);
    assert!(run(&mut face, 10_000_000, 100)["counts"]["writes"].as_u64().unwrap() >= 100);
}

#[test]
fn policies_are_those_of_the_drive() {
    let answer = ask(&mut Face::default(), &json!({ "ask": "policies" }));
    let names = |of: &str| -> Vec<String> {
        let all = answer[of].as_array().unwrap();
        all.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names("schedules").contains(&"hexa".to_owned()));
    assert!(names("map_protections").contains(&"journal".to_owned()));
}
