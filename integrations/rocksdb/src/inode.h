// A file: which bytes of the drive it is made of.

#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace leyden_fs {

// Where a file's data goes.
enum class FileClass : uint8_t {
  kPlain = 1,  // to plain zones: durable after Sync
  kLog = 2,    // write-ahead logs, to protected log zones: durable when Append returns
  kState = 3,  // MANIFEST, CURRENT and their like, to protected zones of their own: as kLog
};

// The class that RocksDB's naming of files gives a path. (IOOptions.type is always unknown in 7.8.)
FileClass ClassOfPath(const std::string& path);

struct Extent {
  uint64_t file_offset;
  uint64_t device_offset;
  uint64_t length;
  uint64_t end() const { return file_offset + length; }
};

// A file's extents, in the order of the file, without holes or overlaps. None reaches from one zone into the next.
class ExtentList {
 public:
  explicit ExtentList(uint64_t zone_bytes) : zone_bytes_(zone_bytes) {}
  uint64_t size() const { return extents_.empty() ? 0 : extents_.back().end(); }
  const std::vector<Extent>& all() const { return extents_; }

  // Adds bytes at the end.
  void Append(uint64_t device_offset, uint64_t length);
  // Makes the file consist of `extent` where that says so, and lets go of what it had there.
  void Move(const Extent& extent);
  // Cuts the file to `size`, and returns what it lets go of.
  std::vector<Extent> Truncate(uint64_t size);
  // The part of an extent that holds `file_offset`, from there on; empty beyond the end.
  Extent Find(uint64_t file_offset) const;

 private:
  uint64_t zone_bytes_;
  std::vector<Extent> extents_;
};

// State of one file. `mu` guards `extents` and `tail`; the rest is guarded by the volume's mutex.
struct Inode {
  Inode(uint64_t n, FileClass c, uint64_t zone_bytes) : number(n), file_class(c), extents(zone_bytes) {}

  const uint64_t number;
  const FileClass file_class;

  mutable std::mutex mu;
  ExtentList extents;
  // Bytes after the extents that do not fill a block yet. Plain files only.
  std::string tail;

  uint32_t links = 0;
  uint32_t handles = 0;
  uint64_t modified_s = 0;
  // Sizes that a log file was cut to, and the sequence numbers of its records before each cut.
  std::vector<std::pair<uint64_t, uint64_t>> cuts;
  // Size in the metadata log. Plain files only.
  uint64_t recorded_size = 0;

  uint64_t Size() const {
    std::lock_guard<std::mutex> lock(mu);
    return extents.size() + tail.size();
  }
};

using InodePtr = std::shared_ptr<Inode>;

}  // namespace leyden_fs
