//! The configuration of a job, under `[[workload.job]]`.

use std::borrow::Cow;
use std::fmt;

use leyden_sim::{Bytes, BytesPerSec, Ratio, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Distribution;

/// A synthetic job. Several run at once, each with its own threads.
///
/// Every limit counts the job as a whole, over all of its threads; at least one of `requests`,
/// `bytes` and `time` must be set, and the first to be reached ends the job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobConfig {
    /// A name for messages and tables; `job N` if there is none.
    pub name: String,
    /// The order of addresses, or a ready-made mix.
    pub pattern: Pattern,
    /// Share of requests that read; the rest writes, but for `trim_share`.
    pub read_share: Ratio,
    /// Share of requests that trim.
    pub trim_share: Ratio,
    /// Share of writes that carry FUA.
    pub fua_share: Ratio,
    /// Size of requests: one (`"4 KiB"`) or a weighted mix
    /// (`[{ size = "4 KiB", weight = 67 }, { size = "8 KiB", weight = 10 }]`).
    pub block_size: BlockSize,
    /// Requests begin at multiples of this, counted from `offset`. The smallest block size if not
    /// given, as fio's `blockalign`.
    pub align: Option<Bytes>,
    /// Where random requests go.
    pub distribution: Distribution,
    /// Where random reads go, if that differs from writes.
    pub read_distribution: Option<Distribution>,
    /// Where the job's region of the device begins.
    pub offset: Bytes,
    /// How long the region is; to the device's end if not given. Threads of a sequential job
    /// divide the region among them, and start over at the end of their part.
    pub span: Option<Bytes>,
    /// Threads, each with its own queue.
    pub threads: u32,
    /// Requests that each thread keeps outstanding.
    pub queue_depth: u32,
    /// The most requests per second of the job as a whole: its threads share it, so that more threads ask for
    /// no more.
    /// fio's `rate_iops` is of each thread (`numjobs`): multiply it by them. A job that fell behind catches up, as in
    /// fio.
    pub iops_limit: Option<u64>,
    /// The most bytes per second, likewise of the job as a whole.
    pub rate_limit: Option<BytesPerSec>,
    /// How long a thread rests after every `think_every` requests. It lets its outstanding
    /// requests complete first, as fio does.
    pub think_time: Span,
    /// Requests between two rests of a thread.
    pub think_every: u64,
    /// A thread flushes after this number of its writes: it waits for its outstanding requests, flushes, and
    /// continues when the flush has completed. 0: never.
    pub fsync_every: u64,
    /// The scope of such a flush.
    #[serde(skip_serializing_if = "FsyncOf::is_default")]
    pub fsync_of: FsyncOf,
    /// Requests pass `host.page_cache` by (`O_DIRECT`, fio's `direct`); without one it changes nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
    /// How long after the start of the workload the job begins.
    pub start_delay: Span,
    /// Stop after this number of requests (flushes not counted).
    pub requests: Option<u64>,
    /// Stop when this number of bytes has been requested; the last request may exceed it.
    pub bytes: Option<Bytes>,
    /// Ask for nothing more this long after the job's start.
    pub time: Option<Span>,
}

impl Default for JobConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            pattern: Pattern::Random,
            read_share: Ratio::ZERO,
            trim_share: Ratio::ZERO,
            fua_share: Ratio::ZERO,
            block_size: BlockSize::default(),
            align: None,
            distribution: Distribution::Uniform,
            read_distribution: None,
            offset: Bytes::new(0),
            span: None,
            threads: 1,
            queue_depth: 1,
            iops_limit: None,
            rate_limit: None,
            think_time: Span::ZERO,
            think_every: 1,
            fsync_every: 0,
            fsync_of: FsyncOf::Device,
            direct: false,
            start_delay: Span::ZERO,
            requests: None,
            bytes: None,
            time: None,
        }
    }
}

/// The scope of a job's flush.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FsyncOf {
    /// Everything: the jobs have a block device open, which is one file.
    #[default]
    Device,
    /// The job's region, as if it were a file: `host.page_cache` writes its dirty pages alone. The drive flushes
    /// everything.
    Region,
}

impl FsyncOf {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_default(&self) -> bool {
        *self == Self::Device
    }
}

/// The order of addresses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Ascending; a pass covers every sector of the region once (the last request of a pass is
    /// cut short if it does not fit).
    Sequential,
    /// By `distribution`.
    #[default]
    Random,
    /// Every block of the region once before any twice, in a new random order for each pass: fio's random map. Takes
    /// one `block_size`, and no `align` or `distribution`; threads share the order.
    Shuffled,
    /// As `shuffled`, in the same order each pass.
    ShuffledSame,
    /// The enterprise workload of JEDEC's JESD219: sets `read_share`, `block_size`, `align` and
    /// `distribution`, which must not be given.
    Jesd219,
}

/// One size, or several with their weights.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlockSize {
    /// All requests are this long.
    One(Bytes),
    /// Sizes and how often each occurs, relative to the others.
    Mix(Vec<WeightedSize>),
}

/// A size of a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedSize {
    /// The size.
    pub size: Bytes,
    /// How often, relative to the other sizes' weights.
    pub weight: u32,
}

impl Default for BlockSize {
    fn default() -> Self {
        Self::One(Bytes::new(4096))
    }
}

impl BlockSize {
    /// The sizes and weights; one size has the weight 1.
    pub fn sizes(&self) -> Cow<'_, [WeightedSize]> {
        match self {
            Self::One(size) => Cow::Owned(vec![WeightedSize { size: *size, weight: 1 }]),
            Self::Mix(sizes) => Cow::Borrowed(sizes),
        }
    }
}

impl Serialize for BlockSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::One(size) => size.serialize(serializer),
            Self::Mix(sizes) => sizes.serialize(serializer),
        }
    }
}

// By hand, because serde's untagged enums forget what was wrong.
impl<'de> Deserialize<'de> for BlockSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct SizeOrMix;
        impl<'de> de::Visitor<'de> for SizeOrMix {
            type Value = BlockSize;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a size like \"4 KiB\", or a list of { size, weight }")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<BlockSize, E> {
                text.parse().map(BlockSize::One).map_err(E::custom)
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<BlockSize, A::Error> {
                let mut sizes = Vec::new();
                while let Some(size) = seq.next_element()? {
                    sizes.push(size);
                }
                Ok(BlockSize::Mix(sizes))
            }
        }
        deserializer.deserialize_any(SizeOrMix)
    }
}

impl JsonSchema for BlockSize {
    fn schema_name() -> Cow<'static, str> {
        "BlockSize".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<Bytes>();
        let mix = generator.subschema_for::<Vec<WeightedSize>>();
        json_schema!({
            "description": "One size, or several with their weights.",
            "anyOf": [one, mix],
        })
    }
}
