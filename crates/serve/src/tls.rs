//! TLS for NBD: what a server shows and asks for, and an encrypted connection.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use thiserror::Error;

use crate::listen::Socket;
use crate::negotiating::Negotiating;

/// Files in PEM.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The server's certificate, and those between it and an authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities of clients: with these, each client must show a certificate.
    pub clients: Option<PathBuf>,
}

/// Why TLS cannot be had with these files.
#[derive(Debug, Error)]
pub enum TlsError {
    /// A file that cannot be read, or in which is not what there must be.
    #[error("cannot use {} for TLS", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// They do not go together.
    #[error(
        "TLS cannot be had with this certificate and key: {0}\n  help: is the key that of the certificate? One of certtool for \
         an elliptic curve is read after `openssl ec -in KEY -out NEW_KEY`"
    )]
    Together(rustls::Error),
}

/// The certificates and keys of TLS connections.
#[derive(Clone, Debug)]
pub struct Tls(Arc<ServerConfig>);

fn wrong(path: &Path, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TlsError {
    TlsError::File { path: path.to_owned(), source: source.into() }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let file = File::open(path).map_err(|error| wrong(path, error))?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(BufReader::new(file)).collect();
    let all = all.map_err(|error| wrong(path, error))?;
    if all.is_empty() { Err(wrong(path, "there is no certificate in it")) } else { Ok(all) }
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// If one cannot be read, or they do not go together.
    pub fn new(files: &TlsFiles) -> Result<Self, TlsError> {
        let chain = certificates(&files.certificate)?;
        let key =
            PrivateKeyDer::from_pem_file(&files.key).map_err(|error| wrong(&files.key, error))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Together)?;
        let config = match &files.clients {
            None => config.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| wrong(path, error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                config.with_client_cert_verifier(verifier.map_err(|error| wrong(path, error))?)
            }
        };
        Ok(Self(Arc::new(config.with_single_cert(chain, key).map_err(TlsError::Together)?)))
    }

    /// Shakes hands with a client that has asked for it.
    pub(crate) fn accept(&self, mut socket: Negotiating<'_, Socket>) -> io::Result<TlsStream> {
        let mut connection =
            ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        let both = Both { connection: Mutex::new(connection), out: Mutex::default() };
        Ok(TlsStream { socket: socket.socket().clone(), both: Arc::new(both) })
    }
}

/// The state that reader and writer share.
#[derive(Debug)]
struct Both {
    connection: Mutex<ServerConnection>,
    /// The holder of this lock writes to the socket.
    out: Mutex<Out>,
}

/// Records on their way to the socket.
#[derive(Debug, Default)]
struct Out {
    records: Vec<u8>,
    /// Bytes of them that are sent.
    sent: usize,
}

impl Out {
    /// Writes what is left; a timeout leaves the rest.
    fn send(&mut self, socket: &mut Socket) -> io::Result<()> {
        while self.sent < self.records.len() {
            match socket.write(&self.records[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.records.clear();
        self.sent = 0;
        Ok(())
    }
}

/// An encrypted connection. One thread may read while another writes: what is encrypted goes to the socket after the
/// connection's lock is free again.
#[derive(Clone, Debug)]
pub(crate) struct TlsStream {
    socket: Socket,
    both: Arc<Both>,
}

impl TlsStream {
    pub(crate) const fn socket(&self) -> &Socket {
        &self.socket
    }

    fn lock(&self) -> MutexGuard<'_, ServerConnection> {
        self.both.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what the connection itself has to say: alerts, and answers to changes of keys. A writer that is at work
    /// does it.
    fn speak(&self) -> io::Result<()> {
        while self.lock().wants_write() {
            let mut out = match self.both.out.try_lock() {
                Ok(out) => out,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Ok(()),
            };
            self.take_records(&mut out)?;
            match out.send(&mut self.socket.clone()) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()), // later
                sent => sent?,
            }
        }
        Ok(())
    }

    fn take_records(&self, out: &mut Out) -> io::Result<()> {
        let mut connection = self.lock();
        while connection.wants_write() {
            connection.write_tls(&mut out.records)?;
        }
        Ok(())
    }
}

/// Reads once from the socket at most: a record that trickles in is `WouldBlock`, so that the caller sees the time pass.
impl Read for TlsStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.lock().reader().read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read,
        }
        // Waited for without the lock: the writer goes on meanwhile.
        let mut packets = [0; 16 << 10];
        let count = self.socket.read(&mut packets)?;
        let mut received = &packets[..count];
        loop {
            let mut connection = self.lock();
            connection.read_tls(&mut received)?;
            let processed = connection.process_new_packets();
            drop(connection);
            self.speak()?;
            processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            if received.is_empty() {
                return self.lock().reader().read(bytes);
            }
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut out = self.both.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.send(&mut self.socket)?;
        let count = self.lock().writer().write(bytes)?;
        self.take_records(&mut out)?;
        match out.send(&mut self.socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {} // `flush` sends the rest
            sent => sent?,
        }
        drop(out);
        self.speak()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut out = self.both.out.lock().unwrap_or_else(PoisonError::into_inner);
        out.send(&mut self.socket)?;
        drop(out);
        self.speak()
    }
}
