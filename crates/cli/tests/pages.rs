//! The pages of commands that answer one question: what stands in them is what the command prints.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn run(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leyden"));
    command.current_dir(folder).args(args).output().unwrap()
}

#[track_caller]
fn ends_with(output: &Output, code: i32) {
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{message}");
}

/// A folder with copies of scenarios.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["tiny.toml", "power.toml"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        fs::copy(from, folder.path().join(name)).unwrap();
    }
    folder
}

/// The page that a command writes, and its JSON.
fn page(folder: &Path, args: &[&str]) -> (String, Value) {
    let output = run(folder, &[args, &["--json", "--report", "page.html"]].concat());
    ends_with(&output, 0);
    let html = fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(!html.contains("http://") || !html.contains("src="), "nothing is fetched");
    (html, serde_json::from_slice(&output.stdout).unwrap())
}

/// A chart's data on a page.
fn chart(html: &str, id: &str) -> Value {
    let (_, data) = html.split_once("id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    data["charts"][id].clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|it| it.as_f64().unwrap()).collect()
}

#[test]
fn a_sizing_shows_its_losses_the_knee_and_the_bank_at_its_end() {
    let folder = folder();
    let (html, sizing) = page(folder.path(), &["size", "power.toml", "--commands", "5000"]);
    let banks = sizing["with_less"].as_array().unwrap();
    assert_eq!(banks.len(), 21, "a curve has more banks than the table");
    let losing = &chart(&html, "losing")["lines"][0];
    let (x, y) = (numbers(&losing["x"]), numbers(&losing["y"]));
    assert!(x.is_sorted() && x.len() == 21 && y[20] == 0.0 && y[0] > 0.0, "{y:?}");
    // The knee: the least bank that loses nothing.
    let knee = banks.iter().filter(|it| it["losing"] == 0.0);
    let knee = knee.map(|it| it["capacitance_uf"].as_f64().unwrap()).fold(f64::MAX, f64::min);
    let mark = &chart(&html, "losing")["spec"]["layer"][1]["data"]["values"][0];
    assert!((mark["x"].as_f64().unwrap() / knee - 1.0).abs() < 1e-3, "{mark}, {knee}");
    // A bank of as many parts as the dump needs ends at its minimum or a little above.
    let aged = chart(&html, "voltage")["lines"][1].clone();
    let volts = numbers(&aged["y"]);
    assert!((volts[0] - 12.8).abs() < 1e-9 && (5.5..7.0).contains(&volts[60]), "{volts:?}");
    for shown in
        ["Knee</h3>", "cm²", "power.bank.efficiency", "leyden size power.toml --commands 5000"]
    {
        assert!(html.contains(shown), "{shown}");
    }
    let (again, _) = page(folder.path(), &["size", "power.toml", "--commands", "5000"]);
    assert!(again == html, "same sizing, same bytes");
}

#[test]
fn arithmetic_alone_makes_a_page_without_losses() {
    let folder = folder();
    let (html, worst) = page(folder.path(), &["size", "power.toml", "--worst"]);
    assert!(!html.contains("id=\"losing\"") && html.contains("id=\"voltage\""));
    let tornado =
        html.split_once("<figure id=\"tornado\"").unwrap().1.split_once("</figure>").unwrap().0;
    let ranges = worst["ranges"].as_array().unwrap();
    assert_eq!(tornado.matches("class=\"bar\"").count(), ranges.len());
    ends_with(&run(folder.path(), &["size", "power.toml", "--worst", "--report", "tiny.toml"]), 2);
}

#[test]
fn a_fleet_shows_its_shares_its_spread_and_its_assumptions() {
    let folder = folder();
    let (html, fleet) = page(folder.path(), &["size", "power.toml", "--fleet", "100000"]);
    let ages = fleet["ages"].as_array().unwrap();
    let of = |key: &str| ages.iter().map(|age| age[key].as_f64().unwrap()).collect::<Vec<_>>();
    let near = |drawn: &[f64], wanted: &[f64]| {
        drawn.len() == wanted.len()
            && drawn.iter().zip(wanted).all(|(a, b)| (a - b).abs() <= 1e-3 * b.abs())
    };
    let line = chart(&html, "too-weak")["lines"][0].clone();
    assert!(near(&numbers(&line["x"]), &of("age")), "{line}");
    let shares: Vec<f64> = of("short").into_iter().map(|share| share.max(1e-9)).collect();
    assert!(near(&numbers(&line["y"]), &shares), "{line}: {shares:?}");
    let lines = chart(&html, "energy")["lines"].clone();
    assert!(near(&numbers(&lines[0]["y"]), &of("mean_mj")), "{lines}");
    let least = of("mean_mj").into_iter().zip(of("deviation_mj")).map(|(mean, d)| mean - 3.0 * d);
    assert!(near(&numbers(&lines[2]["y"]), &least.collect::<Vec<_>>()), "{lines}");
    for shown in ["id=\"tornado\"", "leyden size power.toml --fleet 100000", "writes through"] {
        assert!(html.contains(shown), "{shown}");
    }
}

/// Reads `/metrics` of a page until a line begins so, and yields the rest of that.
#[cfg(feature = "serve")]
fn metric(at: &str, begins: &str) -> String {
    use std::io::{Read as _, Write as _};
    for _ in 0..600 {
        let mut stream = std::net::TcpStream::connect(at).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: {at}\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        if let Some(rest) = text.lines().find_map(|line| line.strip_prefix(begins)) {
            return rest.to_owned();
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    panic!("no {begins}");
}

#[cfg(feature = "serve")]
#[test]
fn a_campaign_can_be_watched_while_it_runs() {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;
    let folder = folder();
    let mut command = Command::new(env!("CARGO_BIN_EXE_leyden"));
    let args = ["torture", "--zoned", "--seeds", "1000000", "--jobs", "1", "--http", "127.0.0.1:0"];
    let command = command.current_dir(folder.path()).args(args);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let line = lines.next().unwrap().unwrap();
    let at = line.strip_prefix("page at http://").unwrap().trim_end_matches('/');
    assert_eq!(metric(at, "leyden_campaign_info{kind=\"torture\"} "), "1");
    let reached = metric(at, "leyden_campaign_coverage_points{state=\"reached\"} ");
    assert!(reached.parse::<u32>().unwrap() < 81, "{reached} of 80 points");
    assert_eq!(metric(at, "leyden_campaign_failures_total "), "0");
    child.kill().unwrap();
    child.wait().unwrap();
    // An address in use is refused before anything runs, and one run alone is no campaign.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let args = ["torture", "--seeds", "1000000", "--http", &at];
    ends_with(&run(folder.path(), &args), 3);
    ends_with(&run(folder.path(), &["torture", "--seed", "1", "--http", "7070"]), 2);
}

#[test]
fn a_zoned_drive_has_a_page_too() {
    let folder = folder();
    let (html, sizing) =
        page(folder.path(), &["size", "selective-plp/fillseq", "--commands", "2000"]);
    let bars =
        html.split_once("<figure id=\"protected\"").unwrap().1.split_once("</figure>").unwrap().0;
    assert_eq!(
        bars.matches("class=\"bar\"").count(),
        sizing["with_less"].as_array().unwrap().len()
    );
}

#[test]
fn a_lifetime_shows_its_years() {
    let folder = folder();
    let args = ["lifetime", "tiny.toml", "--cycles", "3000", "--no-cache"];
    let (html, life) = page(folder.path(), &args);
    let line = &chart(&html, "years")["lines"][0];
    let product = life["dwpd"].as_f64().unwrap() * life["years"].as_f64().unwrap();
    for (x, y) in numbers(&line["x"]).iter().zip(numbers(&line["y"])) {
        assert!((x * y / product - 1.0).abs() < 0.01, "{x} {y} {product}");
    }
    assert!(
        html.contains("3,000 erases of a block") && html.contains("as fast as the drive lets it")
    );
}

#[test]
fn a_campaign_shows_its_verdict_and_its_coverage() {
    let folder = folder();
    let (html, summary) = page(folder.path(), &["torture", "--seeds", "4", "--jobs", "1"]);
    let cuts = summary["cuts"].as_u64().unwrap();
    assert!(cuts > 0 && html.contains("Every promise was kept: 4 drives"), "{cuts}");
    assert!(html.contains(summary["digest"].as_str().unwrap()));
    assert!(
        html.contains("id=\"points\"") && !html.contains("id=\"vega\""),
        "no chart, no library"
    );
    assert!(html.contains("leyden torture --start 0 --seeds 4"));
}

#[test]
fn a_table_of_a_sweep_is_drawn() {
    let folder = folder();
    let path = folder.path();
    let plan = "base = \"tiny.toml\"\nseeds = 2\n[grid]\ndevice.buffer.size = [\"128 KiB\", \"256 KiB\", \"512 KiB\"]\n\
                device.ftl.gc.victim = [\"greedy\", \"fifo\"]\n";
    fs::write(path.join("plan.toml"), plan).unwrap();
    ends_with(&run(path, &["sweep", "plan.toml", "--out", "parts"]), 0);
    ends_with(&run(path, &["sweep", "merge", "parts", "--output", "runs.parquet"]), 0);
    ends_with(&run(path, &["report", "runs.parquet", "-o", "sweep.html"]), 0);
    let html = fs::read_to_string(path.join("sweep.html")).unwrap();
    let lines = chart(&html, "sweep-write-amplification")["lines"].clone();
    let of: Vec<(&str, Vec<f64>)> = lines
        .as_array()
        .unwrap()
        .iter()
        .map(|line| (line["label"].as_str().unwrap(), numbers(&line["x"])))
        .collect();
    let sizes = vec![128.0, 256.0, 512.0];
    assert_eq!(of, [("greedy", sizes.clone()), ("fifo", sizes)]);
    assert!(html.contains("Means over 2 seeds"));
    #[cfg(feature = "plot")]
    {
        let list = run(path, &["plot", "runs.parquet", "--list"]);
        ends_with(&list, 0);
        let list = String::from_utf8_lossy(&list.stdout).into_owned();
        assert!(list.contains("sweep-gc-collections"), "{list}");
        let args = ["plot", "runs.parquet", "--what", "sweep-write-amplification", "-o", "waf.svg"];
        ends_with(&run(path, &args), 0);
        let svg = fs::read_to_string(path.join("waf.svg")).unwrap();
        assert!(svg.contains("greedy") && svg.contains("buffer.size (KiB)"), "legend and unit");
    }
    fs::write(path.join("broken.parquet"), "PAR1 and no more").unwrap();
    ends_with(&run(path, &["report", "broken.parquet", "-o", "b.html"]), 2);
}
