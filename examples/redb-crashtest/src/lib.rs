//! redb, unmodified, on files that a power cut may take: an adapter of forty lines, and two tests of its promise.
//!
//! ```sh
//! cargo test --package redb-crashtest
//! ```

use std::io;

use leyden_crashtest::{File, Fs, OpenOptions};
use redb::{Database, DatabaseError, StorageBackend};

/// A file of a crash test as redb's storage.
#[derive(Debug)]
pub struct Backend(File);

impl Backend {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// As open(2).
    pub fn new(fs: &Fs, path: &str) -> io::Result<Self> {
        OpenOptions::new().read(true).write(true).create(true).open(fs, path).map(Self)
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata().len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }

    // As redb's own backend on Linux.
    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all_at(data, offset)
    }
}

/// Opens the database in this file, or makes it.
///
/// # Errors
/// If the file is no database, or cannot be recovered.
pub fn open(fs: &Fs, path: &str) -> Result<Database, DatabaseError> {
    Database::builder().set_cache_size(1 << 20).create_with_backend(Backend::new(fs, path)?)
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use leyden_crashtest::{Call, CrashTest, Persistence, Summary};
    use redb::{Durability, ReadableDatabase as _, TableDefinition};

    use super::*;

    const TABLE: TableDefinition<'_, u64, u64> = TableDefinition::new("orders");
    const EIO: i32 = 5;

    /// Orders in a transaction each; acknowledged after the commit. Ends at the first error, as a service would.
    fn orders(fs: &Fs, durability: Durability) -> Result<(), Box<dyn Error>> {
        let database = open(fs, "orders.redb")?;
        // redb syncs its file. That its name survives is the matter of who makes it.
        fs.sync_dir("/")?;
        for number in 1..=12 {
            let mut transaction = database.begin_write()?;
            transaction.set_durability(durability)?;
            transaction.open_table(TABLE)?.insert(number, number * number)?;
            transaction.commit()?;
            fs.acknowledge(&number.to_string());
        }
        Ok(())
    }

    fn check(fs: &Fs, acks: &[String]) -> Result<(), String> {
        let database = match open(fs, "orders.redb") {
            // A file whose making was cut off does not open. Nothing had been promised of it.
            Err(_) if acks.is_empty() => return Ok(()),
            opened => opened.map_err(|error| format!("does not open: {error}"))?,
        };
        let transaction = database.begin_read().map_err(|error| error.to_string())?;
        for ack in acks {
            let number: u64 = ack.parse().expect("a number");
            let table =
                transaction.open_table(TABLE).map_err(|error| format!("lost {ack}: {error}"))?;
            let found = table.get(number).map_err(|error| error.to_string())?;
            if found.map(|it| it.value()) != Some(number * number) {
                return Err(format!("lost {ack}"));
            }
        }
        Ok(())
    }

    fn run(durability: Durability, rules: Persistence) -> Summary {
        let work = |fs: &Fs| orders(fs, durability).expect("nothing fails");
        let setup = |fs: &Fs| drop(open(fs, "other.redb").expect("nothing fails"));
        CrashTest::files(work, check)
            .setup(setup)
            .persistence(rules)
            .states(1_000)
            .run()
            .expect("in memory")
    }

    #[test]
    fn durable_commits_survive_on_every_file_system() {
        for rules in Persistence::ALL {
            let summary = run(Durability::Immediate, rules);
            summary.assert_held();
            assert!(summary.models[0].states >= 100, "{rules:?}: {}", summary.models[0].states);
        }
    }

    /// As its documentation says.
    #[test]
    fn commits_without_durability_are_lost() {
        let summary = run(Durability::None, Persistence::Xfs);
        assert!(summary.models[0].broken() > 0, "{}", summary.headline());
        // None of these states is damaged: all of them open.
        let said =
            summary.models[0].findings.iter().all(|finding| finding.said.starts_with("lost"));
        assert!(said, "{:?}", summary.models[0].findings);
    }

    /// A sync that fails ends the service; what it had promised before is there.
    #[test]
    fn promises_before_a_failed_sync_are_kept() {
        for (nth, rules) in
            [6, 9, 14].into_iter().flat_map(|nth| Persistence::ALL.map(|rules| (nth, rules)))
        {
            let work = |fs: &Fs| drop(orders(fs, Durability::Immediate));
            let mut test = CrashTest::files(work, check).fails(Call::Sync, nth, EIO).states(500);
            test = test.persistence(rules);
            test.run().expect("in memory").assert_held();
        }
    }
}
