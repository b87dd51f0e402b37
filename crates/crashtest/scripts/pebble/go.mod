module store

go 1.25

require github.com/cockroachdb/pebble/v2 v2.1.7
