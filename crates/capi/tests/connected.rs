//! A served drive from C: plain and under sanitizers, and a server that is killed while a program waits for it.

mod c;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use c::{compiled, say, succeeds};
use leyden_config::{Loaded, Set};
use leyden_image::{Drive, ImageConfig};
use leyden_serve::{ControlAsk, Pace, Server, ServerOptions};

/// A zoned drive with a protected region, served at `folder/socket`.
fn served(folder: &Path) -> Server {
    let set = Set::of_option("setting", "device.zoned.zrwa.count=4").unwrap();
    served_at(folder, &[set], Pace::Untimed)
}

fn served_at(folder: &Path, sets: &[Set], pace: Pace) -> Server {
    let device = Loaded::new("devices/zns", sets).unwrap().scenario.device;
    let config = ImageConfig::new("disk".to_owned(), 1, device);
    let drive = Drive::create(&folder.join("disk.leyden"), config).unwrap();
    let options =
        ServerOptions { programs: vec![folder.join("socket")], ..ServerOptions::new(pace) };
    Server::start(drive, &options).unwrap()
}

fn a_served_drive(flags: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = compiled("cc", "tests/c/served.c", folder.path(), flags) else { return };
    let server = served(folder.path());
    let mut program = Command::new(&program);
    program.env("TSAN_OPTIONS", "ignore_noninstrumented_modules=1");
    let address = format!("unix:{}", folder.path().join("socket").display());
    let told = succeeds(&program.arg(&address).output().unwrap());
    assert_eq!(told.trim(), "all is well");
    server.handle().control(ControlAsk::Stop);
    server.join().unwrap();
}

#[test]
fn a_served_drive_from_c() {
    a_served_drive(&["-std=c11"]);
}

#[test]
fn a_served_drive_under_the_address_sanitizer() {
    a_served_drive(&["-std=c11", "-fsanitize=address,undefined"]);
}

#[test]
fn a_served_drive_under_the_thread_sanitizer() {
    a_served_drive(&["-std=c11", "-fsanitize=thread"]);
}

/// Not a test of its own: the server that [`a_server_that_is_killed_is_an_error_and_no_signal`] kills.
#[test]
#[expect(clippy::disallowed_methods, reason = "how the test tells its child what to do")]
fn child() {
    let Ok(folder) = std::env::var("LEYDEN_TEST_SERVED") else { return };
    let server = served(folder.as_ref());
    say("serving");
    server.join().unwrap();
}

#[test]
fn a_server_that_is_killed_is_an_error_and_no_signal() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-std=c11"];
    let Some(program) = compiled("cc", "tests/c/served.c", folder.path(), &flags) else { return };
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env("LEYDEN_TEST_SERVED", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line == "serving"), "the server does not begin");
    let mut client = Command::new(&program)
        .arg(format!("unix:{}", folder.path().join("socket").display()))
        .arg("wait")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(client.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert_eq!(told.next().as_deref(), Some("ready"));
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(told.next().as_deref(), Some("all is well"));
    assert!(client.wait().unwrap().success());
}

/// The same threads as in one process, at a server at the speed of the modelled flash.
#[test]
fn healthy_zones_take_appends_from_several_clients() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["-std=c11"];
    let compiled = compiled("cc", "tests/c/appends.c", folder.path(), &flags);
    let Some(program) = compiled else { return };
    for threads in ["4", "8"] {
        let folder = folder.path().join(threads);
        std::fs::create_dir(&folder).unwrap();
        let server = served_at(&folder, &[], Pace::Times(1.0));
        let address = format!("unix:{}", folder.join("socket").display());
        let out = Command::new(&program).args(["connect", &address, threads]).output().unwrap();
        assert_eq!(succeeds(&out).trim(), "all is well");
        server.handle().control(ControlAsk::Stop);
        server.join().unwrap();
    }
}
