// RocksDB's file objects, on a volume.

#pragma once

#include <memory>
#include <string>

#include "rocksdb/file_system.h"
#include "volume.h"

namespace leyden_fs {

using rocksdb::FileOptions;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSRandomRWFile;
using rocksdb::FSSequentialFile;
using rocksdb::FSWritableFile;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::Slice;

// An open file: it stays what it is after its names are gone.
class OpenFile {
 public:
  OpenFile(std::shared_ptr<Volume> volume, InodePtr inode) : volume_(std::move(volume)), inode_(std::move(inode)) {}
  ~OpenFile() { volume_->CloseInode(inode_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  Volume& volume() const { return *volume_; }
  Inode& inode() const { return *inode_; }
  // At least 16 bytes, or 0 if there is no room for them.
  size_t UniqueId(char* id, size_t max_size) const;

 private:
  const std::shared_ptr<Volume> volume_;
  const InodePtr inode_;
};

std::unique_ptr<FSSequentialFile> MakeSequentialFile(std::unique_ptr<OpenFile> file);
std::unique_ptr<FSRandomAccessFile> MakeRandomAccessFile(std::unique_ptr<OpenFile> file);
std::unique_ptr<FSWritableFile> MakeWritableFile(std::unique_ptr<OpenFile> file, const FileOptions& options);

// Runs `work` and makes a status of what it throws: exceptions must not get into RocksDB.
template <typename Work>
IOStatus Guarded(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return IOStatus::Aborted("out of memory");
  } catch (const std::exception& e) {
    return IOStatus::Aborted(std::string("a bug in the Leyden plugin: ") + e.what());
  }
}

}  // namespace leyden_fs
