module store

go 1.24

require github.com/dgraph-io/badger/v4 v4.9.6
