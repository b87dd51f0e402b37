//! TLS for NBD: what a server shows and asks for, and an encrypted connection.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use thiserror::Error;

use crate::listen::Socket;

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
        /// What is wrong with it.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// They do not go together.
    #[error("TLS cannot be had with this certificate and key")]
    Together(#[from] rustls::Error),
}

/// What TLS connections are made with.
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
            .with_safe_default_protocol_versions()?;
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
        Ok(Self(Arc::new(config.with_single_cert(chain, key)?)))
    }

    /// Shakes hands with a client that has asked for it.
    pub(crate) fn accept(&self, mut socket: Socket) -> io::Result<TlsStream> {
        let mut connection =
            ServerConnection::new(Arc::clone(&self.0)).map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket)?;
        }
        Ok(TlsStream { socket, connection: Arc::new(Mutex::new(connection)) })
    }
}

/// An encrypted connection. One thread may read while another writes.
#[derive(Debug)]
pub(crate) struct TlsStream {
    socket: Socket,
    connection: Arc<Mutex<ServerConnection>>,
}

impl TlsStream {
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let socket = self.socket.try_clone()?;
        Ok(Self { socket, connection: Arc::clone(&self.connection) })
    }

    pub(crate) const fn socket(&self) -> &Socket {
        &self.socket
    }

    fn lock(&self) -> MutexGuard<'_, ServerConnection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Read for TlsStream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut packets = [0; 16 << 10];
        loop {
            match self.lock().reader().read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
            // Waited for without the lock: the writer goes on meanwhile.
            let count = self.socket.read(&mut packets)?;
            let mut received = &packets[..count];
            let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
            loop {
                connection.read_tls(&mut received)?;
                let processed = connection.process_new_packets();
                while connection.wants_write() {
                    connection.write_tls(&mut self.socket)?; // alerts, and answers to changes of keys
                }
                processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
                if received.is_empty() {
                    break;
                }
            }
        }
    }
}

impl Write for TlsStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let count = connection.writer().write(bytes)?;
        while connection.wants_write() {
            connection.write_tls(&mut self.socket)?;
        }
        Ok(count)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
