// Names and files, and the entries of the metadata log that change them.
//
// Every change is an entry first: `Apply` is the only way to change the tree, on mounting and in use alike, so
// that both come to the same. Not thread-safe: the volume's mutex guards it.

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "inode.h"
#include "rocksdb/io_status.h"

namespace leyden_fs {

using rocksdb::IOStatus;

// Entries, encoded.
namespace entry {
std::string Directory(const std::string& path);
std::string File(const std::string& path, uint64_t inode, FileClass file_class, uint64_t modified_s);
std::string Link(const std::string& path, uint64_t inode);
// Of a directory, too.
std::string Unlink(const std::string& path);
// Renames a file, or a directory and everything in it; replaces a file.
std::string Rename(const std::string& from, const std::string& to);
// From `from` on the file is made of `extents`; its end is theirs.
std::string Extents(uint64_t inode, uint64_t from, const std::vector<Extent>& extents);
// A log file was cut to `size` after record `sequence` of the log zones.
std::string Cut(uint64_t inode, uint64_t sequence, uint64_t size);
// Zone `zone` holds records of logs; `salt` 0 ends that.
std::string LogZone(uint32_t zone, uint32_t salt);
}  // namespace entry

// "/a/b" from "a//b/", "/a/./b" and the like.
std::string NormalPath(const std::string& path);
std::string ParentPath(const std::string& path);

class Tree {
 public:
  explicit Tree(uint64_t zone_bytes);

  // Changes the tree by encoded entries. Corruption if they do not fit it.
  IOStatus Apply(const std::string& entries);
  // Files that the last `Apply` calls took the last name of. The caller frees what they are made of.
  std::vector<InodePtr> TakeUnlinked();
  // Entries that make an empty tree this one, in texts of about `piece_bytes`.
  std::vector<std::string> Snapshot(size_t piece_bytes) const;

  bool IsDirectory(const std::string& path) const;
  // Null if there is no file of this name.
  InodePtr Find(const std::string& path) const;
  std::vector<std::string> Children(const std::string& directory) const;
  std::vector<InodePtr> Files() const;
  const std::map<std::string, InodePtr>& names() const { return names_; }
  InodePtr FindInode(uint64_t number) const;
  uint64_t NextInode() { return next_inode_++; }
  const std::map<uint32_t, uint32_t>& log_zones() const { return log_zones_; }

 private:
  bool ApplyOne(class Decoder* in);
  void Drop(const std::string& path);
  bool RenameAll(const std::string& from, const std::string& to);

  const uint64_t zone_bytes_;
  // Paths of files, and of directories with no file behind them.
  std::map<std::string, InodePtr> names_;
  std::map<uint64_t, InodePtr> inodes_;
  // Salts of zones that hold logs.
  std::map<uint32_t, uint32_t> log_zones_;
  std::vector<InodePtr> unlinked_;
  uint64_t next_inode_ = 1;
};

}  // namespace leyden_fs
