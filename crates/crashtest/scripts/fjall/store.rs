//! fjall: each batch is persisted by `SyncAll`.

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::{Records, Said, path};

pub(crate) const CRATE: &str = "fjall";

pub(crate) struct Store(Database, Keyspace);

impl Store {
    pub(crate) fn open() -> Said<Self> {
        let database = Database::builder(path("fjall")?).cache_size(1 << 20).open()?;
        // Tables are written within the run.
        let small = || KeyspaceCreateOptions::default().max_memtable_size(64 << 10);
        let records = database.keyspace("records", small)?;
        Ok(Self(database, records))
    }

    pub(crate) fn put(&self, records: Records, gone: &str, is_synced: bool) -> Said<()> {
        let mut batch = self.0.batch().durability(is_synced.then_some(PersistMode::SyncAll));
        for (key, value) in records {
            batch.insert(&self.1, key, value);
        }
        batch.remove(&self.1, gone);
        Ok(batch.commit()?)
    }

    pub(crate) fn get(&self, key: &str) -> Said<Option<Vec<u8>>> {
        Ok(self.1.get(key)?.map(|found| found.to_vec()))
    }
}
