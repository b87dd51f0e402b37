package main

import (
	"errors"

	"github.com/dgraph-io/badger/v4"
)

const module = "github.com/dgraph-io/badger/v4"

type database struct{ db *badger.DB }

func options() badger.Options {
	// Small ones: tables are written within the run, and a state is opened soon. Records are in the value log.
	return badger.DefaultOptions(path("badger")).WithLogger(nil).WithMemTableSize(64 << 10).WithBaseTableSize(64 << 10).
		WithValueLogFileSize(1 << 20).WithValueThreshold(256).WithBlockCacheSize(1 << 20).WithNumMemtables(2).
		WithVerifyValueChecksum(true)
}

func open() (store, error) {
	db, err := badger.Open(options().WithSyncWrites(true))
	return database{db}, err
}

func (d database) put(records map[string][]byte, gone string, isSynced bool) error {
	if !isSynced {
		return errors.New("badger: syncs are set when it is opened")
	}
	return d.db.Update(func(txn *badger.Txn) error {
		for key, value := range records {
			if err := txn.Set([]byte(key), value); err != nil {
				return err
			}
		}
		return txn.Delete([]byte(gone))
	})
}

func (d database) get(key string) (found []byte, err error) {
	err = d.db.View(func(txn *badger.Txn) error {
		item, err := txn.Get([]byte(key))
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err == nil {
			found, err = item.ValueCopy(nil)
		}
		return err
	})
	return found, err
}

func (d database) verify() error { return d.db.VerifyChecksum() }
func (d database) close() error  { return d.db.Close() }
