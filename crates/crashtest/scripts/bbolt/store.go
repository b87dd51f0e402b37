package main

import (
	"bytes"
	"time"

	"go.etcd.io/bbolt"
)

const module = "go.etcd.io/bbolt"

var bucket = []byte("b")

type bolt struct{ db *bbolt.DB }

func open() (store, error) {
	db, err := bbolt.Open(path("data.bolt"), 0o600, &bbolt.Options{Timeout: time.Second})
	return bolt{db}, err
}

func (b bolt) put(records map[string][]byte, gone string, isSynced bool) error {
	b.db.NoSync = !isSynced
	return b.db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucketIfNotExists(bucket)
		for key, value := range records {
			if err == nil {
				err = bucket.Put([]byte(key), value)
			}
		}
		if err != nil {
			return err
		}
		// Pages are freed and used again.
		return bucket.Delete([]byte(gone))
	})
}

func (b bolt) get(key string) (found []byte, err error) {
	err = b.db.View(func(tx *bbolt.Tx) error {
		if bucket := tx.Bucket(bucket); bucket != nil {
			found = bytes.Clone(bucket.Get([]byte(key)))
		}
		return nil
	})
	return found, err
}

func (b bolt) verify() error {
	return b.db.View(func(tx *bbolt.Tx) error {
		for problem := range tx.Check() {
			return problem
		}
		return nil
	})
}

func (b bolt) close() error { return b.db.Close() }
