package crashtest

import (
	"io"
	"os"
	"path/filepath"
)

// FS is a folder. Engines that work through an interface of their own adapt it to this one, as package pebblefs does for
// Pebble. Names are relative to the folder.
type FS interface {
	OpenFile(name string, flag int, perm os.FileMode) (File, error)
	MkdirAll(name string, perm os.FileMode) error
	ReadDir(name string) ([]os.DirEntry, error)
	Stat(name string) (os.FileInfo, error)
	Link(from, to string) error
	Rename(from, to string) error
	Remove(name string) error
	RemoveAll(name string) error
}

// File is an open file, or a folder that is opened to be synced.
type File interface {
	io.ReadWriteCloser
	io.ReaderAt
	io.WriterAt
	io.Seeker
	Stat() (os.FileInfo, error)
	Truncate(size int64) error
	Sync() error
	// Fd is the descriptor, for calls that this interface lacks.
	Fd() uintptr
}

// Folder is the folder at path.
func Folder(path string) FS { return folder(path) }

type folder string

func (f folder) at(name string) string { return filepath.Join(string(f), name) }

func (f folder) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	file, err := os.OpenFile(f.at(name), flag, perm)
	if err != nil {
		return nil, err
	}
	return file, nil
}

func (f folder) MkdirAll(name string, perm os.FileMode) error { return os.MkdirAll(f.at(name), perm) }
func (f folder) ReadDir(name string) ([]os.DirEntry, error)   { return os.ReadDir(f.at(name)) }
func (f folder) Stat(name string) (os.FileInfo, error)        { return os.Stat(f.at(name)) }
func (f folder) Link(from, to string) error                   { return os.Link(f.at(from), f.at(to)) }
func (f folder) Rename(from, to string) error                 { return os.Rename(f.at(from), f.at(to)) }
func (f folder) Remove(name string) error                     { return os.Remove(f.at(name)) }
func (f folder) RemoveAll(name string) error                  { return os.RemoveAll(f.at(name)) }

// WithoutSync is fs, but for syncs that return success and sync nothing: those of files and folders whose name is missed. A
// test that still passes does not need them, or does not notice their loss.
func WithoutSync(fs FS, missed func(name string) bool) FS { return &withoutSync{fs, missed} }

type withoutSync struct {
	FS
	missed func(name string) bool
}

func (w *withoutSync) OpenFile(name string, flag int, perm os.FileMode) (File, error) {
	file, err := w.FS.OpenFile(name, flag, perm)
	if err == nil && w.missed(name) {
		file = unsynced{file}
	}
	return file, err
}

type unsynced struct{ File }

func (unsynced) Sync() error { return nil }
