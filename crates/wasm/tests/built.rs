//! The built drive for a browser, in Node.js and in Chromium. `.ci/wasm` builds it; where it, Node.js or Chromium is
//! missing, a test says on stderr that it was skipped, or fails if `LEYDEN_WASM` is set. Screenshots stay in cargo's
//! temporary folder of tests, to be looked at.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use leyden_wasm::Face;
use serde_json::{Value, json};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// `name` in the folder of the built drive, and the first of `programs` that runs; says what is missing.
fn needs(test: &str, name: &str, programs: &[&'static str]) -> Option<(PathBuf, &'static str)> {
    let runs = |program: &&&str| {
        Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success())
    };
    let built = Path::new(ROOT).join("target/wasm").join(name);
    let missing = match programs.iter().find(runs) {
        Some(program) if built.exists() => return Some((built, program)),
        Some(_) => format!("no target/wasm/{name} (.ci/wasm)"),
        None => format!("no {} here", programs[0]),
    };
    assert!(std::env::var_os("LEYDEN_WASM").is_none(), "LEYDEN_WASM is set: {missing}");
    // Past the capture of a test's output: who reads the log must see what was not looked at.
    let mut log = std::io::stderr();
    writeln!(log, "SKIPPED {test}: {missing}").unwrap();
    None
}

fn device() -> Value {
    let mut device: Value = serde_json::from_str(include_str!("../assets/drive.json")).unwrap();
    device["nand"]["blocks_per_plane"] = json!(32);
    device
}

/// Drives with each protection of buffer and table: written, cut, restored, written again.
fn questions() -> Vec<Value> {
    let mut all = vec![json!({ "ask": "cut" }), json!({ "ask": "policies" })];
    let log = json!({ "pattern": "sequential", "fua_share": "100 %", "span": "4 MiB", "iops_limit": 3_000 });
    for (region, table, schedule) in [
        ("full", "full", "fifo"),
        ("none", "partial", "hexa"),
        ("selective", "journal", "harvest"),
        ("none", "none", "dawid"),
    ] {
        let mut device = device();
        device["buffer"]["region"] = json!(region);
        device["buffer"]["schedule"] = json!(schedule);
        device["ftl"]["map"]["protection"] = json!(table);
        if region == "selective" {
            device["buffer"]["protected_size"] = json!("4 MiB");
        }
        let pages = json!({ "pattern": "random", "distribution": { "zipf": { "theta": 0.9 } }, "queue_depth": 32, "fsync_every": 200 });
        let jobs = json!([pages, log]);
        all.push(json!({ "ask": "open", "device": device, "jobs": jobs, "seed": 3, "fill": true, "overwrite": "20 %" }));
        let go = json!({ "ask": "advance", "span_ns": 400_000_000, "commands_most": 20_000 });
        let [look, cut, restore] = ["look", "cut", "restore"].map(|it| json!({ "ask": it }));
        all.extend([go.clone(), look.clone(), cut, look.clone(), restore, go, look]);
    }
    all.push(json!({ "ask": "advance", "span_ns": u64::MAX, "commands_most": 1 }));
    all
}

#[test]
fn web_assembly_answers_as_this_machine_does() {
    let Some((wasm, node)) =
        needs("web_assembly_answers_as_this_machine_does", "leyden.wasm", &["node"])
    else {
        return;
    };
    let questions: Vec<String> = questions().iter().map(Value::to_string).collect();
    let mut child = Command::new(node)
        .arg(Path::new(ROOT).join("crates/wasm/tests/ask.mjs"))
        .arg(&wasm)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(questions.join("\n").as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let mut face = Face::default();
    let answers: Vec<String> = questions.iter().map(|it| face.ask(it.as_bytes())).collect();
    let theirs = String::from_utf8(output.stdout).unwrap();
    let theirs: Vec<&str> = theirs.lines().collect();
    assert_eq!(theirs.len(), answers.len());
    for ((question, ours), theirs) in questions.iter().zip(&answers).zip(theirs) {
        assert_eq!(theirs, ours, "{question} (another version? run .ci/wasm)");
    }
}

/// Chooses a drive, writes, cuts and restores, and writes what it finds into attributes of the root element.
const PROBE: &str = r#"
<script>
const root = document.documentElement;
const once = (is, act) => { const wait = setInterval(() => { if (is()) { clearInterval(wait); act(); } }, 50); };
const change = (id, to) => { at(id).value = to; at(id).form.dispatchEvent(new Event('change')); };
once(() => 'ready' in root.dataset, () => {
  change('region', REGION);
  change('map', 'partial');
  change('schedule', 'hexa');
  change('rate', '20000');
  at('build').click();
  once(() => at('built').textContent.includes('of flash') && samples.length === 1, () => {
    at('write').click();
    once(() => samples.length > 6, () => {
      root.dataset.rate = Math.round(samples[samples.length - 1].rates[1]);
      root.dataset.focusable = document.querySelectorAll('figure[tabindex="0"][aria-label^="Plot."]').length;
      at('cut').click();
      root.dataset.said = at('said').textContent;
      root.dataset.lost = [cuts[0].lost_acknowledged_bytes > 0, cuts[0].lost_promised_bytes].join(' ');
      root.dataset.off = [at('power').textContent, at('write').disabled, at('restore').disabled].join(' ');
      at('restore').click();
      at('write').click();
      once(() => at('power').textContent === 'Power is on' && samples[samples.length - 1].rates, () => {
        root.dataset.rows = document.querySelectorAll('#cuts tr').length;
        root.dataset.overflow = root.scrollWidth - root.clientWidth;
        root.dataset.ground = getComputedStyle(document.body).backgroundColor;
        at('pattern').value = 'random';
        at('depth').replaceChildren(new Option('100000'));
        at('work').dispatchEvent(new Event('change'));
        root.dataset.refused = at('said').textContent;
        root.dataset.done = '';
      });
    });
  });
});
</script>
"#;

#[test]
fn the_page_writes_cuts_and_restores_wide_narrow_light_and_dark() {
    let test = "the_page_writes_cuts_and_restores_wide_narrow_light_and_dark";
    let browsers = ["chromium", "chromium-browser", "google-chrome"];
    let Some((built, browser)) = needs(test, "leyden.html", &browsers) else { return };
    let Some((_, node)) = needs(test, "leyden.html", &["node"]) else { return };
    let html = fs::read_to_string(built).unwrap();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wasm");
    fs::create_dir_all(&folder).unwrap();
    for (theme, width, region) in [("light", "1280", "none"), ("dark", "400", "full")] {
        let lang = "<html lang=\"en\"";
        let themed = html.replacen(lang, &format!("{lang} data-theme=\"{theme}\""), 1);
        let (body, end) = themed.rsplit_once("</body>").unwrap();
        let page = folder.join(format!("{region}-{theme}.html"));
        let probe = PROBE.replace("REGION", &format!("'{region}'"));
        fs::write(&page, format!("{body}{probe}</body>{end}")).unwrap();
        let output = Command::new(node)
            .arg(Path::new(ROOT).join("crates/wasm/tests/look.mjs"))
            .args([browser, width, "2600"])
            .args([&page, &page.with_extension("png")])
            .output()
            .unwrap();
        let found: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let is_volatile = region == "none";
        assert_eq!(found["console"], "", "{found}");
        assert_eq!(found["done"], "", "{found}");
        assert_eq!(found["rate"], "20000", "writes per second, as asked for");
        assert_eq!(found["focusable"], "6", "each plot has a text");
        assert_eq!(found["lost"], format!("{is_volatile} 0"), "{region}");
        let fate = if is_volatile {
            "None of it was promised."
        } else {
            "Nothing that was acknowledged is lost."
        };
        assert!(found["said"].as_str().unwrap().contains(fate), "{found}");
        assert_eq!(found["off"], "Power is off true false");
        assert_eq!(found["rows"], "2", "a head and a cut");
        assert_eq!(found["overflow"], "0", "wider than {width}");
        let ground = if theme == "dark" { "rgb(15, 17, 20)" } else { "rgb(246, 247, 248)" };
        assert_eq!(found["ground"], ground);
        assert!(found["refused"].as_str().unwrap().contains("jobs[0].queue_depth"), "{found}");
        assert!(fs::metadata(page.with_extension("png")).unwrap().len() > 10_000);
    }
}
