// Package pebblefs runs Pebble on a crashtest.FS.
package pebblefs

import (
	"errors"
	"io"
	"os"
	"path"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"leyden.dev/go/crashtest"
)

// New is fs as Pebble's file system: pebble.Options{FS: pebblefs.New(fs)}. Names are relative to the folder.
func New(fs crashtest.FS) vfs.FS { return pebbleFS{fs} }

type pebbleFS struct{ fs crashtest.FS }

func (p pebbleFS) open(name string, flag int, options ...vfs.OpenOption) (vfs.File, error) {
	opened, err := p.fs.OpenFile(name, flag, 0o666)
	if err != nil {
		return nil, err
	}
	wrapped := file{opened}
	for _, option := range options {
		option.Apply(wrapped)
	}
	return wrapped, nil
}

// Create makes a file that is new: another name of an older one keeps its content.
func (p pebbleFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	if err := p.fs.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return p.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

func (p pebbleFS) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	return p.open(name, os.O_RDONLY, options...)
}

func (p pebbleFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, options ...vfs.OpenOption) (vfs.File, error) {
	return p.open(name, os.O_RDWR|os.O_CREATE, options...)
}

func (p pebbleFS) OpenDir(name string) (vfs.File, error) { return p.open(name, os.O_RDONLY) }

func (p pebbleFS) ReuseForWrite(oldname, newname string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	if err := p.fs.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return p.open(newname, os.O_RDWR|os.O_CREATE)
}

// Lock takes the file's lock, which ends with the handle, also when a power cut took the process.
func (p pebbleFS) Lock(name string) (io.Closer, error) {
	locked, err := p.fs.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(locked.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, locked.Close())
	}
	return locked, nil
}

func (p pebbleFS) List(dir string) ([]string, error) {
	entries, err := p.fs.ReadDir(dir)
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, err
}

func (p pebbleFS) Stat(name string) (vfs.FileInfo, error) { return info(p.fs.Stat(name)) }

func (p pebbleFS) Link(oldname, newname string) error          { return p.fs.Link(oldname, newname) }
func (p pebbleFS) Remove(name string) error                    { return p.fs.Remove(name) }
func (p pebbleFS) RemoveAll(name string) error                 { return p.fs.RemoveAll(name) }
func (p pebbleFS) Rename(oldname, newname string) error        { return p.fs.Rename(oldname, newname) }
func (p pebbleFS) MkdirAll(dir string, perm os.FileMode) error { return p.fs.MkdirAll(dir, perm) }
func (pebbleFS) PathBase(name string) string                   { return path.Base(name) }
func (pebbleFS) PathJoin(elem ...string) string                { return path.Join(elem...) }
func (pebbleFS) PathDir(name string) string                    { return path.Dir(name) }
func (pebbleFS) GetDiskUsage(name string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{}, vfs.ErrUnsupported
}
func (pebbleFS) Unwrap() vfs.FS { return nil }

type file struct{ crashtest.File }

func (f file) Stat() (vfs.FileInfo, error) { return info(f.File.Stat()) }

func (f file) Preallocate(offset, length int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, offset, length)
}

// SyncData is a whole sync: a file that misses syncs misses this one, too.
func (f file) SyncData() error { return f.Sync() }

// SyncTo promises nothing, as sync_file_range does.
func (file) SyncTo(int64) (bool, error) { return false, nil }

func (file) Prefetch(int64, int64) error { return nil }

type fileInfo struct{ os.FileInfo }

// DeviceID is that of every file: there is one folder.
func (fileInfo) DeviceID() vfs.DeviceID { return vfs.DeviceID{} }

func info(found os.FileInfo, err error) (vfs.FileInfo, error) {
	if err != nil {
		return nil, err
	}
	return fileInfo{found}, nil
}
