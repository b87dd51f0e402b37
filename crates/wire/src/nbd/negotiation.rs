//! The handshake before the first request.

use super::{Fields, NbdError};

const INIT: &[u8; 8] = b"NBDMAGIC";
const OPTION: &[u8; 8] = b"IHAVEOPT";
const OPTION_REPLY: u64 = 0x0003_e889_0455_65a9;
const FIXED_NEWSTYLE: u16 = 1;
const NO_ZEROES: u16 = 2;
/// Options are short texts; what is longer is refused unread.
const OPTION_MOST: u32 = 64 << 10;

/// The server's greeting: fixed newstyle, and no zeroes behind an export if the client agrees.
#[derive(Clone, Copy, Debug)]
pub struct Greeting;

impl Greeting {
    /// As bytes.
    pub fn encode(self) -> [u8; 18] {
        let mut bytes = [0; 18];
        bytes[..8].copy_from_slice(INIT);
        bytes[8..16].copy_from_slice(OPTION);
        bytes[16..].copy_from_slice(&(FIXED_NEWSTYLE | NO_ZEROES).to_be_bytes());
        bytes
    }
}

/// The client's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientFlags {
    /// It wants no zeroes behind an export.
    pub no_zeroes: bool,
}

impl ClientFlags {
    /// # Errors
    /// If there are flags that were not offered.
    pub fn parse(bytes: [u8; 4]) -> Result<Self, NbdError> {
        let flags = u32::from_be_bytes(bytes);
        if flags & !u32::from(FIXED_NEWSTYLE | NO_ZEROES) != 0 {
            return Err(NbdError::Flags(flags));
        }
        Ok(Self { no_zeroes: flags & u32::from(NO_ZEROES) != 0 })
    }
}

/// Length of an option's header.
pub const OPTION_HEADER_BYTES: usize = 16;

/// The header of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionHeader {
    /// Which option it is.
    pub option: u32,
    /// Bytes that follow.
    pub length: u32,
}

impl OptionHeader {
    /// # Errors
    /// If it is none, or of an option that is too long.
    pub fn parse(bytes: &[u8; OPTION_HEADER_BYTES]) -> Result<Self, NbdError> {
        let mut fields = Fields(bytes);
        let header = (fields.bytes(8), fields.u32(), fields.u32());
        let (Some(magic), Some(option), Some(length)) = header else { return Err(NbdError::Magic) };
        if magic != OPTION {
            return Err(NbdError::Magic);
        }
        if length > OPTION_MOST {
            return Err(NbdError::TooLong(length));
        }
        Ok(Self { option, length })
    }
}

/// A context of block status that a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Context {
    /// `base:allocation`.
    Allocation,
}

impl Context {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allocation => "base:allocation",
        }
    }
}

/// An option of a client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientOption {
    /// `NBD_OPT_EXPORT_NAME`: go on with this export; what it is called.
    ExportName(String),
    /// `NBD_OPT_ABORT`: the client goes.
    Abort,
    /// `NBD_OPT_LIST`: which exports are there?
    List,
    /// `NBD_OPT_STARTTLS`.
    StartTls,
    /// `NBD_OPT_INFO`, and `NBD_OPT_GO`, which goes on with the export.
    Info {
        /// The export's name.
        export: String,
        /// It goes on with it.
        go: bool,
    },
    /// `NBD_OPT_STRUCTURED_REPLY`.
    StructuredReply,
    /// `NBD_OPT_LIST_META_CONTEXT`, and `NBD_OPT_SET_META_CONTEXT`, which chooses them.
    MetaContext {
        /// Of which export.
        export: String,
        /// The contexts that the queries name and the server knows.
        contexts: Vec<Context>,
        /// It chooses them.
        set: bool,
    },
    /// One that this server does not know.
    Unknown,
    /// One that it knows, but not with such a content.
    Invalid,
}

impl ClientOption {
    /// Parses `data`, behind the header of `option`.
    pub fn parse(option: u32, data: &[u8]) -> Self {
        let mut fields = Fields(data);
        match option {
            1 => std::str::from_utf8(data)
                .map_or(Self::Invalid, |name| Self::ExportName(name.to_owned())),
            2 => Self::Abort,
            3 if data.is_empty() => Self::List,
            5 if data.is_empty() => Self::StartTls,
            6 | 7 => info(&mut fields, option == 7).unwrap_or(Self::Invalid),
            8 if data.is_empty() => Self::StructuredReply,
            9 | 10 => meta_context(&mut fields, option == 10).unwrap_or(Self::Invalid),
            3 | 5 | 8 => Self::Invalid,
            _ => Self::Unknown,
        }
    }
}

fn info(fields: &mut Fields<'_>, go: bool) -> Option<ClientOption> {
    let export = fields.string()?.to_owned();
    // Which figures the client would like: it gets them all.
    let wanted = fields.u16()?;
    fields.bytes(usize::from(wanted) * 2)?;
    fields.is_empty().then_some(ClientOption::Info { export, go })
}

fn meta_context(fields: &mut Fields<'_>, set: bool) -> Option<ClientOption> {
    let export = fields.string()?.to_owned();
    let queries = fields.u32()?;
    let mut contexts = Vec::new();
    for _ in 0..queries {
        let query = fields.string()?;
        // A list may ask for all of a namespace.
        if query == Context::Allocation.name() || !set && query == "base:" {
            contexts = vec![Context::Allocation];
        }
    }
    if queries == 0 && !set {
        contexts = vec![Context::Allocation];
    }
    fields.is_empty().then_some(ClientOption::MetaContext { export, contexts, set })
}

/// An export.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExportInfo {
    /// Its size in bytes.
    pub bytes: u64,
    /// The least that a request may touch, and what it should begin and end at.
    pub minimum_block_bytes: u32,
    /// The preferred block size of requests.
    pub preferred_block_bytes: u32,
    /// The most that a request may carry.
    pub maximum_block_bytes: u32,
    /// Structured replies were agreed on.
    pub structured: bool,
}

impl ExportInfo {
    /// The transmission flags: flush, FUA, trim, write zeroes, several connections at once, and, with
    /// structured replies, "do not fragment", which no reply of this server is.
    const fn flags(self) -> u16 {
        1 | 1 << 2 | 1 << 3 | 1 << 5 | 1 << 6 | 1 << 8 | (self.structured as u16) << 7
    }

    /// The answer to [`ClientOption::ExportName`].
    pub fn encode_export(self, flags: ClientFlags) -> Vec<u8> {
        let mut bytes = self.bytes.to_be_bytes().to_vec();
        bytes.extend(self.flags().to_be_bytes());
        if !flags.no_zeroes {
            bytes.resize(bytes.len() + 124, 0);
        }
        bytes
    }
}

/// The server's answers to an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionReply<'a> {
    /// `NBD_REP_ACK`.
    Ack,
    /// `NBD_REP_SERVER`: an export of this name.
    Server(&'a str),
    /// `NBD_REP_INFO`, `NBD_INFO_EXPORT`.
    Export(ExportInfo),
    /// `NBD_REP_INFO`, `NBD_INFO_BLOCK_SIZE`.
    BlockSize(ExportInfo),
    /// `NBD_REP_META_CONTEXT`, with the number that requests for it carry.
    MetaContext(Context, u32),
    /// `NBD_REP_ERR_UNSUP`.
    Unsupported,
    /// `NBD_REP_ERR_INVALID`.
    Invalid,
    /// `NBD_REP_ERR_UNKNOWN`: there is no such export.
    UnknownExport,
    /// `NBD_REP_ERR_TLS_REQD`: not before `NBD_OPT_STARTTLS`.
    TlsRequired,
}

impl OptionReply<'_> {
    /// As bytes, in answer to `option`.
    pub fn encode(&self, option: u32) -> Vec<u8> {
        let mut data = Vec::new();
        let kind: u32 = match self {
            Self::Ack => 1,
            Self::Server(name) => {
                data.extend((name.len() as u32).to_be_bytes());
                data.extend(name.as_bytes());
                2
            }
            Self::Export(info) => {
                data.extend(0_u16.to_be_bytes());
                data.extend(info.bytes.to_be_bytes());
                data.extend(info.flags().to_be_bytes());
                3
            }
            Self::BlockSize(info) => {
                data.extend(3_u16.to_be_bytes());
                data.extend(info.minimum_block_bytes.to_be_bytes());
                data.extend(info.preferred_block_bytes.to_be_bytes());
                data.extend(info.maximum_block_bytes.to_be_bytes());
                3
            }
            Self::MetaContext(context, id) => {
                data.extend(id.to_be_bytes());
                data.extend(context.name().as_bytes());
                4
            }
            Self::Unsupported => 1 << 31 | 1,
            Self::TlsRequired => 1 << 31 | 5,
            Self::Invalid => 1 << 31 | 3,
            Self::UnknownExport => 1 << 31 | 6,
        };
        let mut bytes = OPTION_REPLY.to_be_bytes().to_vec();
        bytes.extend(option.to_be_bytes());
        bytes.extend(kind.to_be_bytes());
        bytes.extend((data.len() as u32).to_be_bytes());
        bytes.extend(data);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn string(text: &str) -> Vec<u8> {
        [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
    }

    #[test]
    fn a_client_goes_on_with_an_export() {
        let data = [string("disk"), vec![0, 1, 0, 3]].concat();
        let go = ClientOption::Info { export: "disk".to_owned(), go: true };
        assert_eq!(ClientOption::parse(7, &data), go);
        assert_eq!(ClientOption::parse(7, &data[..data.len() - 1]), ClientOption::Invalid);
        assert_eq!(ClientOption::parse(7, &[&data[..], &[0]].concat()), ClientOption::Invalid);
    }

    #[test]
    fn contexts_are_found_among_the_queries() {
        let queries = |texts: &[&str]| {
            let count = (texts.len() as u32).to_be_bytes().to_vec();
            [vec![string(""), count], texts.iter().map(|text| string(text)).collect()]
                .concat()
                .concat()
        };
        let contexts = |option, texts: &[&str]| match ClientOption::parse(option, &queries(texts)) {
            ClientOption::MetaContext { contexts, .. } => contexts,
            other => panic!("{other:?}"),
        };
        assert_eq!(contexts(10, &["qemu:dirty", "base:allocation"]), [Context::Allocation]);
        assert_eq!(contexts(10, &["base:"]), []);
        assert_eq!(contexts(9, &["base:"]), [Context::Allocation]);
        assert_eq!(contexts(9, &[]), [Context::Allocation]);
        assert_eq!(contexts(10, &[]), []);
    }

    #[test]
    fn messages_are_as_long_as_the_protocol_says() {
        let info = ExportInfo {
            bytes: 1 << 30,
            minimum_block_bytes: 512,
            preferred_block_bytes: 4_096,
            maximum_block_bytes: 1 << 25,
            structured: true,
        };
        assert_eq!(info.encode_export(ClientFlags { no_zeroes: false }).len(), 134);
        assert_eq!(info.encode_export(ClientFlags { no_zeroes: true }).len(), 10);
        assert_eq!(OptionReply::Export(info).encode(7).len(), 20 + 12);
        assert_eq!(OptionReply::BlockSize(info).encode(7).len(), 20 + 14);
        assert_eq!(OptionReply::Ack.encode(7).len(), 20);
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_option(option in 0_u32..14, data: Vec<u8>) {
            let _ = ClientOption::parse(option, &data);
        }

        #[test]
        fn any_bytes_are_a_header_or_an_error(bytes: [u8; OPTION_HEADER_BYTES]) {
            if let Ok(header) = OptionHeader::parse(&bytes) {
                prop_assert!(header.length <= OPTION_MOST);
            }
        }
    }
}
