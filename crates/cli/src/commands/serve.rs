//! `leyden serve`, and its switch: `cut`, `restore`, `status`.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use leyden_image::{Drive, Stack};
use leyden_serve::control::{self, socket_of};
use leyden_serve::{
    ControlAnswer, ControlAsk, CutReport, FaultReport, HOST_SHARE_MOST, Http, HttpOptions, Lies,
    Nvme, NvmeError, RestoreReport, Server, ServerOptions, StatusReport, Tls,
};

use super::image::{failure, fits, missing};
use super::print_json;
use super::{log, service};
use crate::args::nvme;
use crate::args::served::{FaultArgs, ImageArgs, Lie, RestoreArgs, ServeArgs};
use crate::failure::Failure;
use crate::output::table::Table;
use crate::signals::Signals;
use leyden_report::format::{bytes, count, energy, number, seconds};

/// How often the server looks whether it has been interrupted.
const LOOK: Duration = Duration::from_millis(50);

pub(crate) fn main(args: &ServeArgs, signals: &Signals) -> Result<(), Failure> {
    log::start(&args.log);
    check(args)?;
    let limits = args.clients.limits().map_err(Failure::usage)?;
    let tls = args.tls().as_ref().map(Tls::new).transpose().map_err(Failure::usage)?;
    let options = ServerOptions {
        nbd: args.nbd.clone(),
        programs: args.programs.clone(),
        tls,
        sector_bytes: args.sector,
        fuse: args.fuse.clone(),
        lies: Lies {
            flushes: args.lie.contains(&Lie::Flush),
            atomic: args.lie.contains(&Lie::Atomic),
        },
        limits,
        access: args.clients.access(),
        ..ServerOptions::new(args.pace.pace())
    };
    let mut servers = Vec::new();
    let served = serve(args, &options, signals, &mut servers);
    for server in &servers {
        server.handle().control(ControlAsk::Stop);
    }
    let joined = args
        .files
        .iter()
        .zip(servers)
        .map(|(file, server)| server.join().map_err(|error| failure(file, None, error)));
    served.and(joined.fold(Ok(()), Result::and))
}

/// Serves the drives until they have ended or the user interrupts. Whatever comes in the way, `servers` are the drives to stop.
fn serve(
    args: &ServeArgs,
    options: &ServerOptions,
    signals: &Signals,
    servers: &mut Vec<Server>,
) -> Result<(), Failure> {
    let cancel = signals.watched();
    for file in &args.files {
        let mut drive = open(file, args.stay_off)?;
        if args.sector > drive.unit_bytes() {
            return Err(Failure::usage(anyhow::anyhow!(
                "{} has mapping units of {} bytes, and no sector is larger\n  help: --sector {1}",
                file.display(),
                drive.unit_bytes()
            )));
        }
        if let Some(path) = &args.record {
            record(&mut drive, path)?;
        }
        servers.push(Server::start(drive, options).map_err(Failure::io)?);
    }
    let http = page_options(args)?.map(|options| Http::start(servers, &options)).transpose();
    let http = http.map_err(Failure::io)?;
    let hosts = args.nvme.options(args.clients.access())?;
    let nvme = hosts.map(|hosts| Nvme::start(servers, &hosts)).transpose();
    let nvme = nvme.map_err(|error| match error {
        NvmeError::Fit(..) | NvmeError::Subsystem(_) => Failure::usage(error),
        NvmeError::Serve(_) | NvmeError::Gone => Failure::io(error),
    })?;
    announce(args, &servers[0], nvme.as_ref())?;
    if let Some(http) = &http {
        announce_page(args, http)?;
    }
    control_at(args)?;
    service::notify("READY=1");
    while servers.iter().any(|server| !server.has_ended()) {
        if cancel.load(Ordering::Relaxed) {
            service::notify("STOPPING=1");
            break;
        }
        std::thread::sleep(LOOK);
    }
    // `nvme` ends before the drives do: its hosts find that the box is gone, and not that its drives fail.
    Ok(())
}

/// Says where clients find what is served.
fn announce(args: &ServeArgs, server: &Server, nvme: Option<&Nvme>) -> Result<(), Failure> {
    let mut out = anstream::stderr().lock();
    for listen in server.nbd() {
        writeln!(out, "NBD at {listen}")?;
    }
    for path in &args.programs {
        writeln!(out, "programs at unix:{}", path.display())?;
    }
    if let Some(folder) = &args.fuse {
        writeln!(out, "FUSE at {}", folder.join("disk").display())?;
    }
    if let Some(served) = nvme {
        for listen in served.addresses() {
            writeln!(out, "NVMe at {}, subsystem {}", nvme::address(listen), served.name())?;
        }
    }
    for lie in &args.lie {
        let lie = match lie {
            Lie::Flush => "flushes are answered and not done",
            Lie::Atomic => "atomic writes are announced and torn",
        };
        writeln!(out, "this drive lies: {lie}")?;
    }
    Ok(())
}

/// Says where the page is. The address with the token goes to standard output: the log, on standard error, has no token.
fn announce_page(args: &ServeArgs, http: &Http) -> Result<(), Failure> {
    writeln!(anstream::stderr().lock(), "page at {}", http.url())?;
    if args.http.http_token.is_none() {
        let (url, token) = (http.url(), http.token());
        writeln!(anstream::stdout().lock(), "page with the switch at {url}#{token}")?;
    }
    Ok(())
}

/// Says where the switches are. Scripts that wait for a server wait for the last of these lines.
fn control_at(args: &ServeArgs) -> Result<(), Failure> {
    let mut out = anstream::stderr().lock();
    for file in &args.files {
        writeln!(out, "control at {}", socket_of(file).display())?;
    }
    Ok(())
}

/// Whether a drive can be mounted there. A server that was killed leaves a dead mount behind, of which nothing can be said.
fn is_folder(path: &Path) -> Result<(), Failure> {
    let folder = path.display();
    let problem = match path.metadata() {
        Ok(of) if !of.is_dir() => {
            format!("{folder} is no folder, and would be covered\n  help: --fuse takes a folder")
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            format!("there is no folder {folder}\n  help: mkdir {folder}")
        }
        _ => return Ok(()),
    };
    Err(Failure::usage(anyhow::anyhow!(problem)))
}

/// Refuses wrong arguments before anything is opened, and warns of risky ones.
fn check(args: &ServeArgs) -> Result<(), Failure> {
    if let Some(file) = args.files.iter().find(|file| !file.exists()) {
        return Err(missing(file));
    }
    let others = !args.nbd.is_empty() || !args.programs.is_empty() || args.fuse.is_some();
    if !others && args.nvme.nvme.is_empty() && args.http.http.is_none() {
        let help = "name an address (--nbd unix:PATH, --nvme tcp), a socket for programs (--programs unix:PATH), a folder \
                    (--fuse DIR) or a page (--http 7070)";
        return Err(Failure::usage(anyhow::anyhow!(
            "no client could reach the drive\n  help: {help}"
        )));
    }
    if args.files.len() > 1 && (others || args.record.is_some()) {
        let what = "several drives are served together to NVMe hosts and on a page only\n  help: one leyden serve for each drive that \
                    --nbd, --programs, --fuse or --record is to serve";
        return Err(Failure::usage(anyhow::anyhow!(what)));
    }
    for listen in args.nvme.nvme.iter().filter(|listen| listen.is_beyond_this_machine()) {
        super::warn(&format!(
            "{listen} lets other machines read and write the drives, unencrypted{}",
            if args.nvme.nvme_secrets.is_some() {
                ""
            } else {
                ": --nvme-secrets lets in hosts that prove who they are"
            }
        ));
    }
    if let Some(folder) = &args.fuse {
        is_folder(folder)?;
    }
    page_options(args)?;
    check_page(args);
    for (what, file) in [
        ("key", &args.tls_key),
        ("secrets", &args.nvme.nvme_secrets),
        ("token", &args.http.http_token),
    ] {
        let Some(file) = file else { continue };
        if file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0) {
            let file = file.display();
            super::warn(&format!("others can read the {what} {file}: chmod 600 {file}"));
        }
    }
    for listen in args.nbd.iter().filter(|listen| listen.is_beyond_this_machine()) {
        if args.tls_certificate.is_none() {
            super::warn(&format!(
                "{listen} lets other machines read and write the drive, unencrypted: --tls-certificate, --tls-key and \
                 --tls-clients let in those with a certificate only"
            ));
        }
    }
    Ok(())
}

fn page_options(args: &ServeArgs) -> Result<Option<HttpOptions>, Failure> {
    args.http.options().map_err(|error| Failure::usage(anyhow::anyhow!(error)))
}

/// Warns of a page that other machines can see.
fn check_page(args: &ServeArgs) {
    if let Some(listen) = args.http.http.as_ref().filter(|it| it.is_beyond_this_machine()) {
        super::warn(&format!(
            "{listen} shows the drives to other machines, unencrypted: who reads the token on the way can cut their power; \
             `ssh -L 7070:localhost:7070 HOST` reaches a page at the loopback interface"
        ));
    }
}

/// Opens the drive in `image`, with its power on unless it is to `stay_off`. If its last process was killed,
/// what that has cost is told.
pub(super) fn open(image: &Path, stay_off: bool) -> Result<Drive, Failure> {
    fits(image)?;
    let named = |error| failure(image, None, error);
    let (mut drive, opened) = Drive::open(image).map_err(named)?;
    let mut out = anstream::stderr().lock();
    if let Some(loss) = &opened.cut {
        let unit_sectors = u64::from(drive.unit_bytes()) / leyden_device::SECTOR_BYTES;
        writeln!(out, "The last server was killed: that was a power cut.")?;
        cut_table(&CutReport::new(loss, 0, unit_sectors)).write(&mut out)?;
    }
    if drive.is_off() && !stay_off {
        let now = drive.now();
        let recovery = drive.restore(now, None).map_err(named)?;
        restore_table(&RestoreReport::new(&recovery, now)).write(&mut out)?;
    }
    match drive.device().stack().and_then(Stack::problem) {
        None => Ok(drive),
        Some(problem) => {
            let what = format!("{}: {problem}", image.display());
            Err(Failure::usage(anyhow::anyhow!(what)))
        }
    }
}

/// Records what `drive` is asked from now on.
pub(super) fn record(drive: &mut Drive, path: &Path) -> Result<(), Failure> {
    drive.rest().and_then(|()| drive.record(path)).map_err(|error| failure(path, None, error))
}

pub(crate) fn cut(args: &ImageArgs) -> Result<(), Failure> {
    match ask(&args.file, &ControlAsk::Cut)? {
        ControlAnswer::Cut(report) => tell(args.json, &report, || cut_table(&report)),
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn restore(args: &RestoreArgs) -> Result<(), Failure> {
    let capacitance_nf = args.capacitance_uf.map(|uf| uf * 1_000);
    match ask(&args.image.file, &ControlAsk::Restore { capacitance_nf })? {
        ControlAnswer::Restored(report) => {
            tell(args.image.json, &report, || restore_table(&report))
        }
        other => Err(unexpected(&other)),
    }
}

pub(crate) fn fault(args: &FaultArgs) -> Result<(), Failure> {
    let ask_for = |rule, clear| match ask(&args.image.file, &ControlAsk::Fault { rule, clear })? {
        ControlAnswer::Faults { rules } => Ok(rules),
        other => Err(unexpected(&other)),
    };
    let mut rules = ask_for(args.rules.first().copied(), args.clear)?;
    for &rule in args.rules.iter().skip(1) {
        rules = ask_for(Some(rule), false)?;
    }
    if args.image.json {
        return print_json(&rules);
    }
    let mut table = Table::default();
    for FaultReport { rule, seen, failed, is_over } in &rules {
        let over = if *is_over { ", over" } else { "" };
        table.row([rule.as_str(), &format!("{} of {} failed{over}", count(*failed), count(*seen))]);
    }
    if rules.is_empty() {
        table.row(["rules", "none"]);
    }
    Ok(table.write(&mut anstream::stdout().lock())?)
}

pub(crate) fn status(args: &ImageArgs) -> Result<(), Failure> {
    match ask(&args.file, &ControlAsk::Status)? {
        ControlAnswer::Status(report) => {
            tell(args.json, &report, || status_table(&report))?;
            warn_of_host(&report);
            Ok(())
        }
        other => Err(unexpected(&other)),
    }
}

/// A drive that is served more slowly than it is modelled looks like another drive.
fn warn_of_host(report: &StatusReport) {
    if let Some(share) = report.host_share.filter(|&share| share > HOST_SHARE_MOST) {
        super::warn(&format!(
            "the host, and not the drive, is the limit: {} % of the time that commands took was the host's\n  help: ask for \
             less at once, or serve the drive at a lower --speed",
            number(share * 100.0)
        ));
    }
}

fn tell<T: serde::Serialize>(
    json: bool,
    report: &T,
    table: impl FnOnce() -> Table,
) -> Result<(), Failure> {
    if json {
        return print_json(report);
    }
    Ok(table().write(&mut anstream::stdout().lock())?)
}

fn ask(image: &Path, ask: &ControlAsk) -> Result<ControlAnswer, Failure> {
    if !image.exists() {
        return Err(missing(image));
    }
    let answer = control::ask(image, ask).map_err(|error| {
        let (image, socket) = (image.display(), socket_of(image));
        let is_nobody = matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused);
        let what = if is_nobody {
            format!(
                "{image} is not served\n  no answer at {}\n  help: `leyden serve {image} --nbd unix:PATH` does, until \
                 it is ended",
                socket.display()
            )
        } else {
            format!("no answer about {image} at {}", socket.display())
        };
        Failure::usage(anyhow::Error::from(error).context(what))
    })?;
    match answer {
        ControlAnswer::Refused { why } => Err(Failure::usage(anyhow::anyhow!("{why}"))),
        answer => Ok(answer),
    }
}

fn unexpected(answer: &ControlAnswer) -> Failure {
    Failure::failed(anyhow::anyhow!("the server sent an unexpected answer: {answer:?}"))
}

pub(super) fn cut_table(report: &CutReport) -> Table {
    let mut table = Table::default();
    table.row(["power", "off"]);
    table.row(["commands in flight", &count(report.interrupted_commands)]);
    table.row(["dumped", &bytes(report.dumped_bytes)]);
    let pages = format!("{} in {} ms", count(report.dumped_pages), ms(report.dump_ns));
    table.row(["pages dumped", &pages]);
    let energy = |nj: u64| energy(nj as f64 / 1e6);
    let left = energy(report.energy_left_nj);
    table.row(["energy", &format!("{}, {left} left", energy(report.energy_nj))]);
    table.row(["pages torn", &count(report.torn_pages)]);
    let sectors: u64 = report.lost.iter().map(|&(_, sectors)| sectors).sum();
    table.row(["promised and lost", &bytes(sectors * leyden_device::SECTOR_BYTES)]);
    for (lba, sectors) in report.lost.iter().take(RANGES_SHOWN) {
        table.row(["", &format!("LBA {lba}, {sectors} sectors")]);
    }
    if report.lost.len() > RANGES_SHOWN {
        let more = count((report.lost.len() - RANGES_SHOWN) as u64);
        table.row(["", &format!("and {more} ranges more; --json has all")]);
    }
    table
}

/// Lost ranges that a table names.
const RANGES_SHOWN: usize = 8;

pub(super) fn restore_table(report: &RestoreReport) -> Table {
    let mut table = Table::default();
    table.row(["power", "on"]);
    table.row(["ready in", &format!("{} ms", ms(report.ready_in_ns))]);
    table.row(["reading flash", &format!("{} ms", ms(report.scan_ns))]);
    table.row(["charging", &format!("{} ms", ms(report.charge_ns))]);
    table.row(["pages put back", &count(report.pages_restored)]);
    table
}

fn status_table(report: &StatusReport) -> Table {
    let mut table = Table::default();
    table.row(["drive", &report.name]);
    table.row(["power", if report.is_on { "on" } else { "off" }]);
    table.row(["its time", &seconds(report.time_ns as f64 / 1e9)]);
    table.row(["capacity", &bytes(report.capacity_bytes)]);
    table.row(["image", &bytes(report.allocated_bytes)]);
    table.row(["power cuts", &count(report.cuts)]);
    table.row(["in flight", &count(report.pending)]);
    let served = [
        ("reads", report.reads),
        ("writes", report.writes),
        ("flushes", report.flushes),
        ("trims", report.trims),
        ("failed", report.failed),
        ("  image's disk full", report.no_space),
    ];
    for (name, number) in served {
        table.row([name, &count(number)]);
    }
    let us = |ns: u64| format!("{} us", number(ns as f64 / 1e3));
    let late = format!("half by {}, 99 % by {}", us(report.late_p50_ns), us(report.late_p99_ns));
    table.row(["answered later", &late]);
    if let Some(share) = report.host_share {
        table.row(["host's share", &format!("{} %", number(share * 100.0))]);
    }
    table.row(["WAF", &number(report.waf)]);
    if let Some(cost) = &report.if_cut_now {
        let needs =
            format!("{} ms, {} uF", ms(cost.dump_ns), number(cost.capacitance_nf as f64 / 1e3));
        table.row(["a cut now", &needs]);
    }
    if let Some(layer) = &report.zoned_block {
        let journal = match layer.journal_bytes {
            0 => "none found".to_owned(),
            size => bytes(size),
        };
        table.row(["journal", &journal]);
        table.row(["written", &bytes(layer.host_bytes)]);
        table.row(["  of journals", &bytes(layer.host_journal_bytes)]);
        table.row(["  kept apart", &bytes(layer.separated_bytes)]);
        table.row(["copied by reclaim", &bytes(layer.copied_bytes)]);
        table.row(["  of journals", &bytes(layer.copied_journal_bytes)]);
        table.row(["chunks moved", &count(layer.reclaimed)]);
    }
    table
}

fn ms(ns: u64) -> String {
    number(ns as f64 / 1e6)
}
