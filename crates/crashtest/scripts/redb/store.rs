//! redb: each batch is a transaction.

use redb::{Database, Durability, ReadableDatabase as _, TableDefinition, TableError};

use crate::{Records, Said, path};

pub(crate) const CRATE: &str = "redb";
const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("records");

pub(crate) struct Store(Database);

impl Store {
    pub(crate) fn open() -> Said<Self> {
        Ok(Self(Database::builder().set_cache_size(1 << 20).create(path("data.redb")?)?))
    }

    pub(crate) fn put(&self, records: Records, gone: &str, is_synced: bool) -> Said<()> {
        let mut transaction = self.0.begin_write()?;
        if !is_synced {
            transaction.set_durability(Durability::None)?;
        }
        let mut table = transaction.open_table(TABLE)?;
        for (key, value) in &records {
            table.insert(key.as_str(), value.as_slice())?;
        }
        table.remove(gone)?;
        drop(table);
        Ok(transaction.commit()?)
    }

    pub(crate) fn get(&self, key: &str) -> Said<Option<Vec<u8>>> {
        let table = match self.0.begin_read()?.open_table(TABLE) {
            Err(TableError::TableDoesNotExist(_)) => return Ok(None),
            opened => opened?,
        };
        Ok(table.get(key)?.map(|found| found.value().to_vec()))
    }
}
