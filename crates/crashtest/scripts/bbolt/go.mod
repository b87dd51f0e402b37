module store

go 1.20

require go.etcd.io/bbolt v1.3.7

require golang.org/x/sys v0.4.0 // indirect
