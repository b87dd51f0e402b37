//! sled: a flush after each batch.

use sled::{Batch, Config, Db};

use crate::{Records, Said, path};

pub(crate) const CRATE: &str = "sled";

pub(crate) struct Store(Db);

impl Store {
    pub(crate) fn open() -> Said<Self> {
        Ok(Self(Config::new().path(path("sled")?).cache_capacity(1 << 20).open()?))
    }

    pub(crate) fn put(&self, records: Records, gone: &str, is_synced: bool) -> Said<()> {
        let mut batch = Batch::default();
        for (key, value) in records {
            batch.insert(key.as_str(), value);
        }
        batch.remove(gone);
        self.0.apply_batch(batch)?;
        if is_synced {
            self.0.flush()?;
        }
        Ok(())
    }

    pub(crate) fn get(&self, key: &str) -> Said<Option<Vec<u8>>> {
        Ok(self.0.get(key)?.map(|found| found.to_vec()))
    }
}
