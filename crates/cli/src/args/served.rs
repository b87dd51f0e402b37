//! Images, and the drives that are served from them.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};
use leyden_config::Set;
use leyden_serve::{Access, FaultRule, Limits, Listen, Pace, TlsFiles, TooLittle};
use leyden_sim::{Bytes, Span};

use super::http::HttpArgs;
use super::nvme::NvmeArgs;
use super::parse_set;

pub(crate) const SERVE_EXAMPLES: &str = "\
Examples:
  leyden serve disk.leyden --nbd unix:/tmp/leyden.sock
  leyden serve disk.leyden --nbd tcp:10810 --latency off
  leyden serve disk.leyden --programs unix:/tmp/leyden.sock     for libleyden, zoned drives too
  leyden serve disk.leyden --fuse /mnt/leyden     then losetup --direct-io=on -f /mnt/leyden/disk
  nbdinfo 'nbd+unix:///?socket=/tmp/leyden.sock'
  leyden serve disk.leyden zoned.leyden --nvme tcp     then nvme connect -t tcp -a 127.0.0.1 -s 4420 -n NQN
  leyden serve disk.leyden --nbd tcp --http 7070     then open the address that it prints

While it serves, from another shell:
  leyden status disk.leyden
  leyden cut disk.leyden
  leyden restore disk.leyden

Ctrl-C or SIGTERM finishes commands in flight and closes the image. Killing the server otherwise is a power \
cut: the next server finds the drive as capacitors and flash have left it.";

/// `leyden image`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Make an image with an empty drive
    Create(CreateArgs),
    /// Show the drive in an image and its state
    Info(ImageArgs),
    /// Read all of an image, and report damage
    Check(ImageArgs),
    /// Copy an image, its holes left as holes
    Clone {
        /// The image
        #[arg(value_name = "IMAGE")]
        from: PathBuf,
        /// The copy, which must not exist
        #[arg(value_name = "COPY")]
        to: PathBuf,
    },
    /// Write the drive's data to a raw disk image
    Export {
        /// The image
        #[arg(value_name = "IMAGE")]
        from: PathBuf,
        /// The raw image, which must not exist
        #[arg(value_name = "RAW")]
        to: PathBuf,
    },
    /// Make an image with the data of a raw disk image
    Import {
        /// The raw image
        #[arg(value_name = "RAW")]
        from: PathBuf,
        #[command(flatten)]
        create: CreateArgs,
    },
}

/// `leyden recording`.
#[derive(Debug, Subcommand)]
pub(crate) enum RecordingCommand {
    /// Show the content of a recording
    Info(RecordingArgs),
    /// Replay a recording, and verify that the drive behaves identically
    Replay {
        #[command(flatten)]
        recording: RecordingArgs,
        /// Cut the power at this time after the recording began, and report the losses
        #[arg(long, value_name = "TIME")]
        cut: Option<Span>,
        /// Capacitance in microfarads; only with --cut
        #[arg(long, value_name = "UF", requires = "cut",
              value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
        capacitance_uf: Option<u64>,
        /// Write the drive's final data to a raw disk image, which must not exist
        #[arg(long, value_name = "RAW")]
        raw: Option<PathBuf>,
    },
}

/// A recording, and the form of the output.
#[derive(Debug, clap::Args)]
pub(crate) struct RecordingArgs {
    /// The recording
    #[arg(value_name = "RECORDING")]
    pub(crate) file: PathBuf,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) const MOUNT_EXAMPLES: &str = "\
Examples:
  leyden image create disk.leyden
  leyden mount disk.leyden /mnt/disk --fs ext4
  leyden mount disk.leyden /mnt/disk --latency off

An empty drive is formatted first. Ctrl-C or SIGTERM unmounts it and closes the image. `leyden status`, `leyden cut` \
and `leyden restore` work meanwhile; after a cut, mount again. Requires root, FUSE and loop devices.";

/// `leyden mount`.
#[derive(Debug, clap::Args)]
pub(crate) struct MountArgs {
    /// The image
    #[arg(value_name = "IMAGE")]
    pub(crate) file: PathBuf,
    /// The folder to mount it on
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The file system: a drive that holds nothing is formatted with it (mkfs.FS must be installed), one
    /// that holds
    /// another one is refused
    #[arg(long, value_name = "FS", default_value = "ext4", value_parser = parse_fs)]
    pub(crate) fs: String,
    /// More options for mount -o, behind nosuid,nodev
    #[arg(long, value_name = "OPTIONS")]
    pub(crate) options: Option<String>,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    /// Record all commands with their bytes in this file, which must not exist
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
}

/// The speed of a drive's time.
#[derive(Debug, clap::Args)]
pub(crate) struct PaceArgs {
    /// "on": commands take the modelled time; "off": they end at once
    #[arg(long, value_name = "WHICH", default_value = "on", value_parser = ["on", "off"])]
    latency: String,
    /// Simulated seconds per wall-clock second
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse_speed)]
    speed: f64,
}

impl PaceArgs {
    pub(crate) fn pace(&self) -> Pace {
        if self.latency == "off" { Pace::Untimed } else { Pace::Times(self.speed) }
    }
}

/// The log of servers.
#[derive(Debug, clap::Args)]
pub(crate) struct LogArgs {
    /// Form of the log, on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = LogFormat::Text)]
    pub(crate) log: LogFormat,
    /// Lowest level to log
    #[arg(long, value_name = "LEVEL", default_value = "info",
          value_parser = ["error", "warn", "info", "debug"])]
    pub(crate) log_level: String,
}

/// Lines of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Nothing
    Off,
    /// Text
    Text,
    /// JSON objects
    Json,
}

/// A promise that a lying drive breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lie {
    /// Acknowledge flushes and force unit access without doing them
    Flush,
    /// Announce the atomic writes of `[device.atomic]`, and tear them at mapping units
    Atomic,
}

/// `leyden image create`.
#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// The image, which must not exist
    #[arg(value_name = "IMAGE")]
    pub(crate) file: PathBuf,
    /// The drive: a scenario file, or the name of a bundled one, of which the drive is taken
    #[arg(long, value_name = "SCENARIO", default_value = "devices/tlc-datacenter")]
    pub(crate) drive: String,
    /// Size for the host, at least; parallelism, times, buffer and capacitors stay. Default: the scenario's
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) size: Option<Bytes>,
    /// Override a key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    /// Shorthand for --set seed=N
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// Name of the drive for clients; default: the image's name without its ending
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// An image, and the form of the output.
#[derive(Debug, clap::Args)]
pub(crate) struct ImageArgs {
    /// The image
    #[arg(value_name = "IMAGE")]
    pub(crate) file: PathBuf,
    /// Print JSON, and nothing else, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// `leyden serve`.
#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    /// The image; several of them with --nvme or --http
    #[arg(value_name = "IMAGE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) nvme: NvmeArgs,
    #[command(flatten)]
    pub(crate) http: HttpArgs,
    /// Serve NBD clients at unix:PATH, tcp, tcp:PORT (the loopback interface) or tcp:HOST:PORT; may be
    /// repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nbd: Vec<Listen>,
    /// Bytes of a sector for NBD clients
    #[arg(long, value_name = "BYTES", default_value_t = 512, requires = "nbd", value_parser = parse_sector)]
    pub(crate) sector: u32,
    /// Serve programs with libleyden at this socket: zoned drives, too; may be repeated
    #[arg(long, value_name = "unix:PATH", value_parser = parse_socket)]
    pub(crate) programs: Vec<PathBuf>,
    /// NBD clients must use TLS: the server's certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_certificate: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Clients must show a certificate of one of these authorities
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    pub(crate) tls_clients: Option<PathBuf>,
    /// Mount the drive in this folder, as one file, disk, for loop devices
    #[arg(long, value_name = "DIR")]
    pub(crate) fuse: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) pace: PaceArgs,
    /// Leave the power off if the last server was killed, until `leyden restore`
    #[arg(long, conflicts_with = "record")]
    pub(crate) stay_off: bool,
    /// Record all commands with their bytes in this file, which must not exist
    ///
    /// `leyden recording replay` runs it again. Lines that are written to the file `marks` beside the disk
    /// (--fuse) are recorded in order with the commands.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Simulate a drive that breaks a promise
    ///
    /// For tests of tests: one that notices no difference does not test the promise.
    #[arg(long, value_enum, value_name = "PROMISE", require_equals = true, num_args = 0..=1, default_missing_value = "flush")]
    pub(crate) lie: Vec<Lie>,
    #[command(flatten)]
    pub(crate) clients: ClientArgs,
    #[command(flatten)]
    pub(crate) log: LogArgs,
}

/// Limits of clients, and access.
#[derive(Debug, clap::Args)]
pub(crate) struct ClientArgs {
    /// Memory for the requests and replies of all clients together
    ///
    /// Each connection has a small share of its own; large requests wait for memory, and fail with ENOMEM
    /// after 10 s.
    #[arg(long, value_name = "SIZE", default_value = "256 MiB")]
    memory: Bytes,
    /// Clients at once, at all addresses together
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u16).range(1..=16_384))]
    connections: u16,
    /// Permissions of the sockets, in octal: 660 lets their group connect
    ///
    /// Clients that may connect may write to the drive. Only its owner and root may cut, restore and stop
    /// it over the control socket.
    #[arg(long, value_name = "MODE", default_value = "600", value_parser = parse_mode)]
    socket_mode: u32,
    /// Group of the sockets, by name or number
    #[arg(long, value_name = "GROUP", value_parser = parse_group)]
    group: Option<u32>,
}

impl ClientArgs {
    /// The limits of all of them together.
    pub(crate) fn limits(&self) -> Result<Limits, TooLittle> {
        Limits::new(self.memory.get() as usize, usize::from(self.connections))
    }

    /// The access rights.
    pub(crate) const fn access(&self) -> Access {
        Access { mode: self.socket_mode, group: self.group }
    }
}

impl ServeArgs {
    /// The files for TLS.
    pub(crate) fn tls(&self) -> Option<TlsFiles> {
        let (certificate, key) = self.tls_certificate.clone().zip(self.tls_key.clone())?;
        Some(TlsFiles { certificate, key, clients: self.tls_clients.clone() })
    }
}

/// `leyden restore`.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) image: ImageArgs,
    /// New capacitance in microfarads
    #[arg(long, value_name = "UF", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) capacitance_uf: Option<u64>,
}

pub(crate) const FAULT_EXAMPLES: &str = "\
Rules: KIND[:PART,...], where KIND is read, write, flush, trim, zone or any, and each PART is one of
  nth=N           from the Nth matching command on (1)
  times=N, all    how many of them fail (1; all with for=)
  lba=FIRST+N     only commands that touch these sectors of 512 bytes
  for=TIME        until this time has passed

A command that fails does not reach the drive. Rules end with the server.

Examples:
  leyden fault disk.leyden flush                    the next flush fails, once
  leyden fault disk.leyden read:lba=2048+8,times=all
  leyden fault disk.leyden write:nth=40 any:for=5s
  leyden fault disk.leyden                          list the rules and their counts
  leyden fault disk.leyden --clear";

/// `leyden fault`.
#[derive(Debug, clap::Args)]
pub(crate) struct FaultArgs {
    #[command(flatten)]
    pub(crate) image: ImageArgs,
    /// Rules, in addition to earlier ones; without any, print the counts of all rules
    #[arg(value_name = "RULE")]
    pub(crate) rules: Vec<FaultRule>,
    /// End all earlier rules
    #[arg(long)]
    pub(crate) clear: bool,
}

fn parse_socket(text: &str) -> Result<PathBuf, String> {
    match text.parse() {
        Ok(Listen::Unix(path)) => Ok(path),
        _ => Err("write unix:PATH: programs are on this machine".to_owned()),
    }
}

pub(super) fn parse_size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    let is_possible = size.get() >= 1 << 20 && size.get().is_multiple_of(1 << 16);
    if is_possible {
        return Ok(size);
    }
    let next = size.get().max(1 << 20).next_multiple_of(1 << 16);
    Err(format!("write at least 1 MiB, in steps of 64 KiB, as \"{} KiB\"", next >> 10))
}

fn parse_mode(text: &str) -> Result<u32, String> {
    match u32::from_str_radix(text, 8) {
        Ok(mode) if mode & !0o666 == 0 && mode & 0o600 == 0o600 => Ok(mode),
        _ => Err("write 600, 660 or 666".to_owned()),
    }
}

fn parse_group(text: &str) -> Result<u32, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    let groups = std::fs::read_to_string("/etc/group").map_err(|error| error.to_string())?;
    let number = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(text)).then(|| fields.nth(1)?.parse().ok()).flatten()
    });
    number.ok_or_else(|| "there is no such group in /etc/group".to_owned())
}

fn parse_fs(text: &str) -> Result<String, String> {
    let is_name = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'));
    if is_name { Ok(text.to_owned()) } else { Err("write ext4, xfs, btrfs, ...".to_owned()) }
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.0001..=1000.0).contains(&speed) => Ok(speed),
        _ => Err("write a number from 0.0001 to 1000".to_owned()),
    }
}

pub(super) fn parse_sector(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(bytes) if bytes.is_power_of_two() && (512..=65_536).contains(&bytes) => Ok(bytes),
        _ => Err("write 512, 1024, ... or 65536".to_owned()),
    }
}
