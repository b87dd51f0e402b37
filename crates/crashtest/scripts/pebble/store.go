package main

import (
	"bytes"
	"errors"

	"github.com/cockroachdb/pebble/v2"
)

const module = "github.com/cockroachdb/pebble/v2"

type database struct{ db *pebble.DB }

type quiet struct{ pebble.Logger }

func (quiet) Infof(string, ...interface{})  {}
func (quiet) Errorf(string, ...interface{}) {}

func open() (store, error) {
	// Tables are written and compacted within the run.
	options := &pebble.Options{MemTableSize: 64 << 10, Logger: quiet{pebble.DefaultLogger}}
	db, err := pebble.Open(path("pebble"), options)
	return database{db}, err
}

func (d database) put(records map[string][]byte, gone string, isSynced bool) error {
	batch := d.db.NewBatch()
	for key, value := range records {
		if err := batch.Set([]byte(key), value, nil); err != nil {
			return err
		}
	}
	if err := batch.Delete([]byte(gone), nil); err != nil {
		return err
	}
	return batch.Commit(&pebble.WriteOptions{Sync: isSynced})
}

func (d database) get(key string) ([]byte, error) {
	found, closer, err := d.db.Get([]byte(key))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer closer.Close()
	return bytes.Clone(found), nil
}

func (d database) verify() error { return d.db.CheckLevels(nil) }
func (d database) close() error  { return d.db.Close() }
