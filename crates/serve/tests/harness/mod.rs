//! A server of a small drive, and an NBD client that trusts nothing.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use leyden_buffer::Region;
use leyden_device::Config;
use leyden_image::{Drive, ImageConfig};
use leyden_serve::{
    ControlAnswer, ControlAsk, Limits, Listen, Pace, Server, ServerOptions, Tls, control,
};
use leyden_sim::{Bytes, Ratio};

/// A server of a small drive, in a folder of its own.
pub(crate) struct Served {
    folder: tempfile::TempDir,
    pub(crate) server: Option<Server>,
    limits: Limits,
    pace: Pace,
    pub(crate) tls: Option<Tls>,
    pub(crate) sector_bytes: u32,
}

impl Served {
    pub(crate) fn new(region: Region, pace: Pace) -> Self {
        Self::within(region, pace, Limits::default())
    }

    pub(crate) fn within(region: Region, pace: Pace, limits: Limits) -> Self {
        let mut device = Config::default();
        (device.nand.channels, device.nand.dies_per_channel) = (2, 1);
        (device.nand.blocks_per_plane, device.nand.pages_per_block) = (96, 16);
        device.ftl.over_provisioning = Ratio::from_percent(60);
        device.buffer.region = region;
        device.buffer.size = Bytes::new(128 << 10);
        device.power = Some(leyden_power::Config::default());
        let made_by = "test".to_owned();
        let config = ImageConfig { name: "disk".to_owned(), seed: 1, device, stack: None, made_by };
        let folder = tempfile::tempdir().unwrap();
        let drive = Drive::create(&folder.path().join("disk.leyden"), config).unwrap();
        let mut served = Self { folder, server: None, limits, tls: None, pace, sector_bytes: 512 };
        served.start(drive);
        served
    }

    fn start(&mut self, drive: Drive) {
        let options = ServerOptions {
            nbd: vec![Listen::Unix(self.socket())],
            limits: self.limits,
            tls: self.tls.clone(),
            sector_bytes: self.sector_bytes,
            ..ServerOptions::new(self.pace)
        };
        self.server = Some(Server::start(drive, &options).unwrap());
    }

    /// Serves the image that was closed.
    pub(crate) fn reopen(&mut self) {
        let (drive, opened) = Drive::open(&self.image()).unwrap();
        assert!(opened.cut.is_none() && !drive.is_off(), "it was closed");
        self.start(drive);
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.folder.path().join("disk.leyden")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("nbd.sock")
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(&self.socket())
    }

    /// Closes the image.
    pub(crate) fn stop(&mut self) {
        let server = self.server.take().unwrap();
        assert_eq!(control::ask(&self.image(), &ControlAsk::Stop).unwrap(), ControlAnswer::Stopped);
        server.join().unwrap();
    }
}

/// A client that has gone on with the export, with simple replies.
pub(crate) struct Client {
    pub(crate) stream: UnixStream,
    pub(crate) bytes: u64,
}

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const WRITE_ZEROES: u16 = 6;
pub(crate) const FUA: u16 = 1;

pub(crate) fn take<const N: usize>(stream: &mut UnixStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).unwrap();
    bytes
}

impl Client {
    pub(crate) fn connect(path: &Path) -> Self {
        let mut stream = UnixStream::connect(path).unwrap();
        assert_eq!(&take::<18>(&mut stream)[..16], b"NBDMAGICIHAVEOPT");
        stream.write_all(&3_u32.to_be_bytes()).unwrap();
        // NBD_OPT_EXPORT_NAME with no name.
        stream.write_all(b"IHAVEOPT\0\0\0\x01\0\0\0\0").unwrap();
        let bytes = u64::from_be_bytes(take(&mut stream));
        let flags = u16::from_be_bytes(take(&mut stream));
        assert_eq!(
            flags & 0b101_0110_1101,
            0b1_0110_1101,
            "flush, FUA, trim, zeroes, multi-connection"
        );
        Self { stream, bytes }
    }

    pub(crate) fn send(
        &mut self,
        flags: u16,
        kind: u16,
        cookie: u64,
        offset: u64,
        length: u32,
        data: &[u8],
    ) {
        let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
        request.extend(flags.to_be_bytes());
        request.extend(kind.to_be_bytes());
        request.extend(cookie.to_be_bytes());
        request.extend(offset.to_be_bytes());
        request.extend(length.to_be_bytes());
        request.extend(data);
        self.stream.write_all(&request).unwrap();
    }

    /// Cookie and error of the next reply; the data of a read must be taken then.
    pub(crate) fn reply(&mut self) -> (u64, u32) {
        assert_eq!(take::<4>(&mut self.stream), 0x6744_6698_u32.to_be_bytes());
        let error = u32::from_be_bytes(take(&mut self.stream));
        (u64::from_be_bytes(take(&mut self.stream)), error)
    }

    pub(crate) fn ask(
        &mut self,
        flags: u16,
        kind: u16,
        offset: u64,
        length: u32,
        data: &[u8],
    ) -> u32 {
        self.send(flags, kind, 77, offset, length, data);
        let (cookie, error) = self.reply();
        assert_eq!(cookie, 77);
        error
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8]) -> u32 {
        self.ask(0, WRITE, offset, data.len() as u32, data)
    }

    pub(crate) fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, u32> {
        match self.ask(0, READ, offset, length, &[]) {
            0 => {
                let mut data = vec![0; length as usize];
                self.stream.read_exact(&mut data).unwrap();
                Ok(data)
            }
            error => Err(error),
        }
    }
}
