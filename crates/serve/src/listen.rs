//! Where a front end listens.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, UCred};

use crate::clock::wall;

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
            Some(("tcp", address)) if is_host_and_port(address) => {
                Ok(Self::Tcp(address.to_owned()))
            }
            _ => Err("write unix:PATH, tcp, tcp:PORT or tcp:HOST:PORT".to_owned()),
        }
    }
}

/// HOST:PORT, where colons of an IPv6 address stand in brackets.
fn is_host_and_port(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let is_bracketed = host.starts_with('[') && host.ends_with(']');
    port.parse::<u16>().is_ok() && !host.is_empty() && (is_bracketed || !host.contains(':'))
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
    /// True if other machines can connect.
    pub fn is_beyond_this_machine(&self) -> bool {
        let Self::Tcp(address) = self else { return false };
        let all = std::net::ToSocketAddrs::to_socket_addrs(address.as_str());
        all.map_or(true, |mut all| all.any(|address| !address.ip().is_loopback()))
    }
}

/// The users that may connect to sockets in the file system.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Access {
    /// Permissions of the sockets, whatever the umask is.
    pub mode: u32,
    /// Their group.
    pub group: Option<u32>,
}

impl Default for Access {
    fn default() -> Self {
        Self { mode: 0o600, group: None }
    }
}

/// Something that clients connect to.
#[derive(Debug)]
pub(crate) enum Listener {
    Unix(UnixListener, Entry),
    Tcp(TcpListener),
}

impl Listener {
    pub(crate) fn bind(listen: &Listen, access: Access) -> io::Result<Self> {
        match listen {
            Listen::Unix(path) => {
                let (listener, entry) = bind_unix(path, access)?;
                Ok(Self::Unix(listener, entry))
            }
            Listen::Tcp(address) => Ok(Self::Tcp(TcpListener::bind(address)?)),
        }
    }

    /// The bell that ends the wait for clients.
    pub(crate) fn bell(&self) -> io::Result<Bell> {
        let socket = match self {
            Self::Unix(listener, _) => listener.as_fd().try_clone_to_owned()?,
            Self::Tcp(listener) => listener.as_fd().try_clone_to_owned()?,
        };
        Ok(Bell(socket))
    }

    /// Where clients can connect to: of a port 0 it is known now which one it is.
    pub(crate) fn address(&self) -> io::Result<Listen> {
        match self {
            Self::Unix(_, entry) => Ok(Listen::Unix(entry.path.clone())),
            Self::Tcp(listener) => Ok(Listen::Tcp(listener.local_addr()?.to_string())),
        }
    }

    pub(crate) fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Unix(listener, _) => Ok(Socket::from(listener.accept()?.0)),
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept()?;
                stream.set_nodelay(true)?;
                keep_alive(&stream)?;
                Ok(Socket::Tcp(Arc::new(stream)))
            }
        }
    }
}

/// The socket of a listener. Its name may be gone: it is not needed.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    /// Stops accepting: the wait for clients returns.
    pub(crate) fn ring(&self) {
        // One that is shut already is what is wanted.
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}

/// Has the kernel find out whether an idle peer is still there.
fn keep_alive(stream: &TcpStream) -> io::Result<()> {
    use rustix::net::sockopt;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    Ok(sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?)
}

const KEEPALIVE_IDLE: Duration = Duration::from_mins(1);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEPALIVE_PROBES: u32 = 4;
/// Clients that may wait to be accepted.
const BACKLOG: i32 = 128;
/// Longer paths are no addresses of sockets: `sockaddr_un` ends there.
const SUN_LEN: usize = 108;

/// A socket in its folder, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Entry {
    path: PathBuf,
    folder: OwnedFd,
    name: OsString,
    /// Which file it is: another one in its place is not removed.
    identity: (u64, u64),
}

impl Drop for Entry {
    fn drop(&mut self) {
        if identity_of(&self.folder, &self.name).is_ok_and(|identity| identity == self.identity) {
            // No server listens there any more.
            let _ = rustix::fs::unlinkat(&self.folder, &self.name, AtFlags::empty());
        }
    }
}

fn identity_of(folder: &OwnedFd, name: &OsStr) -> io::Result<(u64, u64)> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((stat.st_dev, stat.st_ino))
}

/// The folder of a socket, and its name there.
fn folder_of(path: &Path) -> io::Result<(OwnedFd, &OsStr)> {
    let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidFilename))?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(parent.unwrap_or(Path::new(".")), flags, Mode::empty())?;
    Ok((folder, name))
}

/// The address of a socket, however deep its folder lies.
fn address_of(folder: &OwnedFd, name: &OsStr) -> io::Result<SocketAddrUnix> {
    let mut path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    path.push(name);
    if path.as_os_str().len() >= SUN_LEN {
        let most = SUN_LEN - (path.as_os_str().len() - name.len()) - 1;
        let what = format!(
            "the socket's name is {} bytes long; {most} are possible: name the image \
                            or the socket shorter",
            name.len()
        );
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, what));
    }
    Ok(SocketAddrUnix::new(path)?)
}

fn unix_socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// Connects to a socket in the file system, and not to what a link there names. One whose queue is full is tried again for
/// `patience`.
pub(crate) fn dial(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let (folder, name) = folder_of(path)?;
    // The file itself: whatever takes its name meanwhile is not connected to.
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) == FileType::Symlink {
        let what = format!("{} is a link, and links are not followed", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidFilename, what));
    }
    let address = SocketAddrUnix::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let deadline = wall() + patience;
    loop {
        let socket = unix_socket(SocketFlags::NONBLOCK)?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) => {
                let stream = UnixStream::from(socket);
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(rustix::io::Errno::AGAIN) if wall() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A socket in the file system. One that a killed process has left behind is replaced; one that somebody
/// answers at is not, and nor is any other file.
fn bind_unix(path: &Path, access: Access) -> io::Result<(UnixListener, Entry)> {
    let (folder, name) = folder_of(path)?;
    let address = address_of(&folder, name)?;
    let is_socket = rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
    // A refused connection means that no process listens. A server that lets others wait listens, too.
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && dial(path, Duration::ZERO).err().is_some_and(refused) {
        rustix::fs::unlinkat(&folder, name, AtFlags::empty())?;
    }
    let socket = unix_socket(SocketFlags::empty())?;
    rustix::net::bind(&socket, &address)?;
    let identity = identity_of(&folder, name)?;
    let entry = Entry { path: path.to_owned(), folder, name: name.to_owned(), identity };
    if let Some(group) = access.group {
        let group = Some(rustix::fs::Gid::from_raw(group));
        rustix::fs::chownat(&entry.folder, name, None, group, AtFlags::SYMLINK_NOFOLLOW)?;
    }
    // No client can connect before it listens.
    rustix::fs::chmodat(&entry.folder, name, Mode::from_raw_mode(access.mode), AtFlags::empty())?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok((UnixListener::from(socket), entry))
}

/// A connection. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) enum Socket {
    Unix(Arc<UnixStream>),
    Tcp(Arc<TcpStream>),
}

impl From<UnixStream> for Socket {
    fn from(stream: UnixStream) -> Self {
        Self::Unix(Arc::new(stream))
    }
}

impl Socket {
    /// How long a read or a write waits at most.
    pub(crate) fn set_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Unix(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
            Self::Tcp(stream) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)
            }
        }
    }

    /// Where its client is, for logs.
    pub(crate) fn peer(&self) -> String {
        match self {
            Self::Unix(_) => match self.credentials() {
                Some(who) => {
                    format!("process {} of user {}", who.pid.as_raw_nonzero(), who.uid.as_raw())
                }
                None => "this machine".to_owned(),
            },
            Self::Tcp(stream) => {
                stream.peer_addr().map_or_else(|_| "nowhere".to_owned(), |it| it.to_string())
            }
        }
    }

    /// Where its client has reached it; `None` of a socket in the file system.
    pub(crate) fn local(&self) -> Option<std::net::SocketAddr> {
        match self {
            Self::Unix(_) => None,
            Self::Tcp(stream) => stream.local_addr().ok(),
        }
    }

    /// Which process connected; `None` over TCP.
    pub(crate) fn credentials(&self) -> Option<UCred> {
        match self {
            Self::Unix(stream) => rustix::net::sockopt::socket_peercred(stream).ok(),
            Self::Tcp(_) => None,
        }
    }

    /// True if the other side has closed it: nobody reads replies. Over TCP that is known as soon as something was sent
    /// that was not taken. Who has only ended its requests may still read.
    pub(crate) fn is_gone(&self) -> bool {
        // To send nothing fails where something could not be sent.
        let nothing = |fd| rustix::net::send(fd, &[], SendFlags::NOSIGNAL);
        match self {
            Self::Unix(stream) => nothing(stream.as_fd()),
            Self::Tcp(stream) => nothing(stream.as_fd()),
        }
        .is_err()
    }

    /// Sends as much as it takes without a wait; says how much that was.
    pub(crate) fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        Ok(match self {
            Self::Unix(stream) => rustix::net::send(stream.as_fd(), bytes, flags),
            Self::Tcp(stream) => rustix::net::send(stream.as_fd(), bytes, flags),
        }?)
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
            Self::Unix(stream) => (&**stream).read(bytes),
            Self::Tcp(stream) => (&**stream).read(bytes),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => (&**stream).write(bytes),
            Self::Tcp(stream) => (&**stream).write(bytes),
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
        for wrong in [
            "",
            "unix",
            "unix:",
            "tcp:",
            "tcp:host",
            "tcp:80:80:80",
            "tcp:::1:9",
            "tcp:127.0.0.1:99999",
            "tcp::9",
            "udp:9",
            "/run/a.sock",
        ] {
            assert!(wrong.parse::<Listen>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_socket_that_was_left_behind_is_replaced_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let bind = |path: &Path| bind_unix(path, Access::default());
        let (first, entry) = bind(&path).unwrap();
        assert!(bind(&path).is_err(), "somebody answers there");
        drop(first); // as if its process was killed: the entry stays
        let (_second, new) = bind(&path).unwrap();
        drop(new);
        assert!(!path.exists());
        drop(entry);
        let file = folder.path().join("file");
        std::fs::write(&file, "mine").unwrap();
        assert!(bind(&file).is_err());
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    }

    #[test]
    fn sockets_are_their_owners_whatever_the_umask_and_others_if_asked() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        for mode in [0o600, 0o660, 0o666] {
            let (_listener, _entry) = bind_unix(&path, Access { mode, group: None }).unwrap();
            let made = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(made & 0o777, mode, "the umask takes what 0666 has");
        }
        assert_eq!(Access::default().mode, 0o600);
    }

    #[test]
    fn the_kernel_looks_after_idle_peers() {
        use rustix::net::sockopt;
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(!sockopt::socket_keepalive(&peer).unwrap(), "nobody has asked for it");
        let Socket::Tcp(stream) = Listener::Tcp(listener).accept().unwrap() else { unreachable!() };
        assert!(sockopt::socket_keepalive(&stream).unwrap());
        // A peer that is gone is given up within two minutes.
        let idle = sockopt::tcp_keepidle(&stream).unwrap();
        let probes = sockopt::tcp_keepcnt(&stream).unwrap();
        let given_up = idle + sockopt::tcp_keepintvl(&stream).unwrap() * probes;
        assert!(given_up <= Duration::from_mins(2), "{given_up:?}");
    }

    #[test]
    fn a_folder_may_lie_deep_and_a_name_may_not_be_endless() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&deep).unwrap();
        let path = deep.join("drive.leyden.sock");
        let (listener, _entry) = bind_unix(&path, Access::default()).unwrap();
        let mut client = dial(&path, Duration::ZERO).unwrap();
        client.write_all(b"x").unwrap();
        let mut got = [0; 1];
        listener.accept().unwrap().0.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"x");
        let endless = deep.join("n".repeat(120));
        let said = bind_unix(&endless, Access::default()).unwrap_err().to_string();
        assert!(said.contains("120 bytes long"), "{said}");
    }

    #[test]
    fn a_socket_whose_queue_is_full_is_in_use_and_delays_nobody() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.sock");
        let (full, _entry) = bind_unix(&path, Access::default()).unwrap();
        rustix::net::listen(&full, 0).unwrap();
        let mut waiting = Vec::new();
        while let Ok(stream) = dial(&path, Duration::ZERO) {
            waiting.push(stream);
        }
        let began = wall();
        assert!(bind_unix(&path, Access::default()).is_err(), "somebody listens there");
        assert!(dial(&path, Duration::from_millis(100)).is_err());
        assert!(began.elapsed() < Duration::from_secs(5));
    }
}
