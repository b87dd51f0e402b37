//! Contents of the members: the data of the device above, or the layer's own metadata as bytes.
//!
//! **Invariants**: whole mapping units only; the layer itself puts parts of units together.

use std::sync::Arc;

use leyden_device::{Part, Payload, Units};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The bytes of a unit of metadata.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<u8>", into = "Vec<u8>")]
pub struct MetaBytes(Arc<Vec<u8>>);

impl From<Vec<u8>> for MetaBytes {
    fn from(bytes: Vec<u8>) -> Self {
        Self(Arc::new(bytes))
    }
}

impl From<MetaBytes> for Vec<u8> {
    fn from(bytes: MetaBytes) -> Self {
        bytes.0.to_vec()
    }
}

impl MetaBytes {
    pub(super) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

/// A mapping unit of a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(bound(serialize = "P: Serialize", deserialize = "P: DeserializeOwned"))]
pub enum Stored<P> {
    /// Data of the device above.
    Data(P),
    /// Metadata of the layer.
    Meta(MetaBytes),
}

impl<P: Payload> Stored<P> {
    /// The data; of metadata, which nobody above may see, zeroes.
    pub fn data(&self) -> P {
        match self {
            Self::Data(data) => data.clone(),
            Self::Meta(_) => P::default(),
        }
    }

    /// The bytes of metadata; none if this is data, or was never written.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Data(_) => &[],
            Self::Meta(bytes) => bytes.as_slice(),
        }
    }
}

impl<P: Default> Default for Stored<P> {
    fn default() -> Self {
        Self::Data(P::default())
    }
}

impl<P: Payload> leyden_device::Content for Stored<P> {}

/// The data of a write to a member.
#[derive(Clone, Debug)]
pub enum StoredData<P: Payload> {
    /// The data of the host's write, from unit number `from` on.
    Host {
        /// The host's data.
        data: P::WriteData,
        /// The host's units.
        units: Units,
        /// The first of them that is written.
        from: u32,
    },
    /// These units.
    Units(Arc<[Stored<P>]>),
}

impl<P: Payload> Default for StoredData<P> {
    fn default() -> Self {
        Self::Units(Arc::new([]))
    }
}

impl<P: Payload> Payload for Stored<P> {
    const KIND: u8 = 64 + P::KIND;
    /// Metadata is, whatever the data is.
    const STORED: bool = true;
    type WriteData = StoredData<P>;
    /// One for each unit touched.
    type ReadData = Vec<Self>;

    #[inline]
    fn written(data: &StoredData<P>, part: Part) -> Self {
        match data {
            StoredData::Host { data, units, from } => {
                Self::Data(P::written(data, units.part(from + part.index)))
            }
            StoredData::Units(units) => units.get(part.index as usize).cloned().unwrap_or_default(),
        }
    }

    fn merged(_: &Self, data: &StoredData<P>, part: Part) -> Self {
        Self::written(data, part)
    }

    fn zeroed(_: &Self, _: &StoredData<P>, _: Part) -> Self {
        Self::default()
    }

    #[inline]
    fn gather(data: &mut Vec<Self>, part: Part, unit: &Self) {
        data.resize(part.units as usize, Self::default());
        data[part.index as usize] = unit.clone();
    }

    fn unit(data: &Vec<Self>, part: Part) -> Self {
        data[part.index as usize].clone()
    }

    fn data_of<'a>(units: impl Iterator<Item = &'a Self>, _: u32) -> StoredData<P> {
        StoredData::Units(units.cloned().collect())
    }
}
