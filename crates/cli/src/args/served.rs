//! Images, and the drives that are served from them.

use std::path::PathBuf;

use clap::Subcommand;
use leyden_experiment::Set;
use leyden_serve::{Listen, Pace};

use super::parse_set;

pub(crate) const SERVE_EXAMPLES: &str = "\
Examples:
  leyden serve disk.leyden --nbd unix:/tmp/leyden.sock
  leyden serve disk.leyden --nbd tcp:10810 --latency off
  leyden serve disk.leyden --fuse /mnt/leyden     then losetup --direct-io=on -f /mnt/leyden/disk
  nbdinfo 'nbd+unix:///?socket=/tmp/leyden.sock'

While it serves, from another shell:
  leyden status disk.leyden
  leyden cut disk.leyden
  leyden restore disk.leyden

Ctrl-C or SIGTERM lets what is under way end, and closes the image. A server that is killed otherwise
is a power cut: the next one finds the drive as capacitors and flash have left it.";

/// `leyden image`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Make an image with an empty drive
    Create(CreateArgs),
    /// Say what drive an image holds, and how it was left
    Info(ImageArgs),
    /// Read all of an image, and say what is damaged
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
    /// Override a key of the configuration; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_set)]
    pub(crate) set: Vec<Set>,
    /// Shorthand for --set seed=N
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub(crate) seed: Option<u64>,
    /// What clients find the drive by; the image's name without its ending if not given
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

/// An image, and how to tell of it.
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
    /// The image
    #[arg(value_name = "IMAGE")]
    pub(crate) file: PathBuf,
    /// Serve NBD clients at unix:PATH, tcp, tcp:PORT (the loopback interface) or tcp:HOST:PORT; may be
    /// repeated
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) nbd: Vec<Listen>,
    /// Mount the drive in this folder, as one file, disk, for loop devices
    #[arg(long, value_name = "DIR")]
    pub(crate) fuse: Option<PathBuf>,
    /// "on": commands take the time that the flash takes; "off": they end as soon as they can
    #[arg(long, value_name = "WHICH", default_value = "on", value_parser = ["on", "off"])]
    pub(crate) latency: String,
    /// Let the drive's time go so many times as fast as the wall's
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse_speed)]
    pub(crate) speed: f64,
    /// Leave the power off if the last server was killed, until `leyden restore`
    #[arg(long)]
    pub(crate) stay_off: bool,
}

impl ServeArgs {
    pub(crate) fn pace(&self) -> Pace {
        if self.latency == "off" { Pace::Untimed } else { Pace::Times(self.speed) }
    }
}

/// `leyden restore`.
#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) image: ImageArgs,
    /// With so much capacitance from now on, in microfarads
    #[arg(long, value_name = "UF", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) capacitance_uf: Option<u64>,
}

fn parse_speed(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(speed) if (0.0001..=1000.0).contains(&speed) => Ok(speed),
        _ => Err("write a number from 0.0001 to 1000".to_owned()),
    }
}
