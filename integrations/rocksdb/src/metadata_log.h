// The metadata log: who the file system is, a snapshot of its tree, and every change since.
//
// It has the first two zones of the drive to itself. One holds the log; when it is full, or the image is mounted,
// a snapshot goes to the other one, which is valid when its end is written, and the first is reset. So there is
// always a whole one.

#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "log_zone.h"
#include "tree.h"

namespace leyden_fs {

constexpr uint32_t kMetadataZones = 2;
constexpr uint32_t kFormatVersion = 1;

struct Superblock {
  std::string uuid;
  uint64_t generation = 0;
};

class MetadataLog {
 public:
  MetadataLog(Device* device, bool is_protected);

  // Reads the log into `tree`.
  IOStatus Load(const std::vector<leyden_zone>& zones, Tree* tree);
  // Begins the log of a new file system.
  IOStatus Create(const Tree& tree);
  // Writes a snapshot of `tree` to the other zone, and goes on there.
  IOStatus Roll(const Tree& tree);
  // Writes entries, as one: all of them or none survive a power cut. `tree` must have them already, because a
  // snapshot may take their place.
  IOStatus Append(const std::string& entries, const Tree& tree);
  // Whether there is room for more names: half a zone is kept for changes.
  bool HasRoomFor(const Tree& tree, size_t bytes);
  IOStatus End();

  const Superblock& superblock() const { return superblock_; }

 private:
  struct Found;
  IOStatus LoadZone(const leyden_zone& zone, Found* found) const;
  IOStatus ReadSuperblock(const Record& record, Superblock* superblock) const;
  std::string EncodeSuperblock(uint64_t generation) const;

  Device* const device_;
  const LogProtection protection_;
  Superblock superblock_;
  uint32_t zone_ = 0;
  uint64_t sequence_ = 0;
  std::unique_ptr<LogZone> log_;
  size_t snapshot_bytes_ = 0;
  size_t appended_bytes_ = 0;
};

}  // namespace leyden_fs
