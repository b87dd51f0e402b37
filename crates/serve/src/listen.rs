//! Where a front end listens.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// An address: `unix:PATH`, `tcp` (the loopback interface, port 10809), `tcp:PORT` or `tcp:HOST:PORT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Listen {
    /// A socket in the file system.
    Unix(PathBuf),
    /// Host and port.
    Tcp(String),
}

/// The port that is registered for NBD.
const NBD_PORT: &str = "10809";

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("unix", path)) if !path.is_empty() => Ok(Self::Unix(path.into())),
            None if text == "tcp" => Ok(Self::Tcp(format!("127.0.0.1:{NBD_PORT}"))),
            Some(("tcp", port)) if port.parse::<u16>().is_ok() => {
                Ok(Self::Tcp(format!("127.0.0.1:{port}")))
            }
            Some(("tcp", address)) if address.contains(':') => Ok(Self::Tcp(address.to_owned())),
            _ => Err("write unix:PATH, tcp, tcp:PORT or tcp:HOST:PORT".to_owned()),
        }
    }
}

impl std::fmt::Display for Listen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp:{address}"),
        }
    }
}

impl Listen {
    /// Connects, and hangs up.
    pub(crate) fn knock(&self) {
        match self {
            Self::Unix(path) => drop(UnixStream::connect(path)),
            Self::Tcp(address) => drop(TcpStream::connect(address)),
        }
    }
}

/// Something that clients connect to.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener, PathBuf),
    Tcp(TcpListener),
}

impl Listener {
    pub(crate) fn bind(listen: &Listen) -> io::Result<Self> {
        match listen {
            Listen::Unix(path) => Ok(Self::Unix(bind_unix(path)?, path.clone())),
            Listen::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address)?)),
        }
    }

    /// Where clients can connect to: of a port 0 it is known now which one it is.
    pub(crate) fn address(&self) -> io::Result<Listen> {
        match self {
            Self::Unix(_, path) => Ok(Listen::Unix(path.clone())),
            Self::Tcp(listener) => Ok(Listen::Tcp(listener.local_addr()?.to_string())),
        }
    }

    pub(crate) fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(listener, _) => Ok(Socket::Unix(listener.accept()?.0)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path); // no server listens there any more
        }
    }
}

/// A socket in the file system. One that a killed process has left behind is replaced; one that somebody
/// answers at is not, and nor is any other file.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    if is_socket && UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    UnixListener::bind(path)
}

/// A connection.
#[derive(Debug)]
pub(crate) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        match self {
            Self::Unix(stream) => Ok(Self::Unix(stream.try_clone()?)),
            Self::Tcp(stream) => Ok(Self::Tcp(stream.try_clone()?)),
        }
    }

    /// How long a read waits at most.
    pub(crate) fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.set_read_timeout(timeout),
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// Ends it, for both sides and for all who wait for it.
    pub(crate) fn close(&self) {
        let _ = match self {
            Self::Unix(stream) => stream.shutdown(std::net::Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(std::net::Shutdown::Both),
        };
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read(bytes),
            Self::Tcp(stream) => stream.read(bytes),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.write(bytes),
            Self::Tcp(stream) => stream.write(bytes),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_people_write_them() {
        let tcp = |address: &str| Ok(Listen::Tcp(address.to_owned()));
        assert_eq!("unix:/run/a.sock".parse(), Ok(Listen::Unix("/run/a.sock".into())));
        assert_eq!("tcp".parse(), tcp("127.0.0.1:10809"));
        assert_eq!("tcp:0".parse(), tcp("127.0.0.1:0"));
        assert_eq!("tcp:[::1]:9".parse(), tcp("[::1]:9"));
        for wrong in ["", "unix", "unix:", "tcp:", "tcp:host", "udp:9", "/run/a.sock"] {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_socket_that_was_left_behind_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let first = bind_unix(&path).unwrap();
        assert!(bind_unix(&path).is_err(), "somebody answers there");
        drop(first);
        bind_unix(&path).unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "mine").unwrap();
        assert!(bind_unix(&file).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    }
}
