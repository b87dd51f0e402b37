//! How drives are served to NVMe hosts.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::ValueEnum;
use leyden_serve::{Access, CutMode, HostSecrets, Listen, NvmeOptions};

use crate::failure::Failure;

/// The port that is registered for NVMe over TCP.
const PORT: u16 = 4420;
/// Begins the address of a socket for virtual machines.
const VFIO_USER: &str = "vfio-user:";

/// Options of `leyden serve` about NVMe.
#[derive(Debug, clap::Args)]
pub(crate) struct NvmeArgs {
    /// Serve NVMe hosts at tcp (the loopback interface, port 4420), tcp:PORT or tcp:HOST:PORT, or virtual machines at
    /// vfio-user:PATH; may be repeated
    ///
    /// Each image is a namespace of one subsystem, in the order given: `nvme connect` finds all of them. At vfio-user:PATH
    /// QEMU 10.1 or later finds a PCI drive.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_address)]
    pub(crate) nvme: Vec<Listen>,
    /// Name of the NVMe subsystem; nqn.2026-01.local.leyden:NAME, with the first drive's name, if not given
    #[arg(long, value_name = "NQN", requires = "nvme")]
    nvme_name: Option<String>,
    /// Let only NVMe hosts with this name connect over TCP; may be repeated
    ///
    /// A host's name is not authenticated without --nvme-secrets: the list prevents mistakes, not attacks.
    #[arg(long, value_name = "NQN", requires = "nvme")]
    nvme_host: Vec<String>,
    /// Let only NVMe hosts connect that prove to know their secrets (DH-HMAC-CHAP)
    ///
    /// On each line of the file: the host's NQN and its secret, as `nvme gen-dhchap-key` prints it; then the controller's
    /// secret, if the host wants to know who that is, too.
    #[arg(long, value_name = "FILE", requires = "nvme")]
    pub(crate) nvme_secrets: Option<PathBuf>,
    /// How a power cut looks to NVMe hosts
    #[arg(long, value_enum, value_name = "HOW", default_value_t = Cut::Lost, requires = "nvme")]
    nvme_cut: Cut,
}

/// As [`CutMode`].
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Cut {
    /// Connections end, and none is accepted until a drive has power again; over vfio-user as dead
    Lost,
    /// Connections stay, and commands never end
    Hang,
    /// As hang, and the controller's registers read as all ones, like a device that was pulled out
    Dead,
    /// Commands end with an error
    Error,
}

impl NvmeArgs {
    /// The server's options; `None` if it serves no NVMe hosts.
    ///
    /// # Errors
    /// If there is no such file of secrets, or a line of it is wrong.
    pub(crate) fn options(&self, access: Access) -> Result<Option<NvmeOptions>, Failure> {
        if self.nvme.is_empty() {
            return Ok(None);
        }
        Ok(Some(NvmeOptions {
            listen: self.nvme.clone(),
            access,
            name: self.nvme_name.clone(),
            hosts: self.nvme_host.clone(),
            secrets: self.secrets()?,
            cut: match self.nvme_cut {
                Cut::Lost => CutMode::Lost,
                Cut::Hang => CutMode::Hang,
                Cut::Dead => CutMode::Dead,
                Cut::Error => CutMode::Error,
            },
        }))
    }

    fn secrets(&self) -> Result<BTreeMap<String, HostSecrets>, Failure> {
        let Some(file) = &self.nvme_secrets else { return Ok(BTreeMap::new()) };
        let named =
            |problem: String| Failure::usage(anyhow::anyhow!("{}: {problem}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| named(error.to_string()))?;
        let secrets =
            leyden_serve::parse_secrets(&text).map_err(|error| named(error.to_string()))?;
        if secrets.is_empty() {
            return Err(named("it has no secrets, so no host could connect".to_owned()));
        }
        Ok(secrets)
    }
}

/// An address as [`parse_address`] takes it.
pub(crate) fn address(listen: &Listen) -> String {
    match listen {
        Listen::Tcp(_) => listen.to_string(),
        Listen::Unix(path) => format!("{VFIO_USER}{}", path.display()),
    }
}

fn parse_address(text: &str) -> Result<Listen, String> {
    if text == "tcp" {
        return Ok(Listen::Tcp(format!("127.0.0.1:{PORT}")));
    }
    if let Some(path) = text.strip_prefix(VFIO_USER).filter(|path| !path.is_empty()) {
        return Ok(Listen::Unix(path.into()));
    }
    match text.parse() {
        Ok(listen @ Listen::Tcp(_)) => Ok(listen),
        Ok(Listen::Unix(_)) | Err(_) => {
            Err("write tcp, tcp:PORT, tcp:HOST:PORT or vfio-user:PATH".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_tcp_with_a_port_of_their_own_or_sockets_of_vfio_user() {
        assert_eq!(parse_address("tcp"), Ok(Listen::Tcp("127.0.0.1:4420".to_owned())));
        assert_eq!(parse_address("tcp:0"), Ok(Listen::Tcp("127.0.0.1:0".to_owned())));
        assert_eq!(parse_address("tcp:[::1]:9"), Ok(Listen::Tcp("[::1]:9".to_owned())));
        let socket = parse_address("vfio-user:/run/a.sock").unwrap();
        assert_eq!(socket, Listen::Unix("/run/a.sock".into()));
        assert_eq!(address(&socket), "vfio-user:/run/a.sock");
        for wrong in ["unix:/run/a", "vfio-user:", "vfio-user", "rdma", "tcp:host", ""] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
    }
}
