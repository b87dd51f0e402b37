#include "metadata_log.h"

#include <cstdio>
#include <cstring>
#include <fstream>

#include "codec.h"
#include "counters.h"

namespace leyden_fs {
namespace {

enum RecordKind : uint32_t { kSuperblock = 1, kSnapshot = 2, kSnapshotEnd = 3, kEntries = 4 };

constexpr uint32_t kSalt = 0x5346594c;  // "LYFS"
const char kMagic[] = "Leyden file system";
constexpr size_t kPieceBytes = 32 << 10;

LogProtection ProtectionOf(const Device& device, bool is_protected) {
  if (!is_protected) return LogProtection::kNever;
  return device.mode() == Mode::kNone ? LogProtection::kOnSync : LogProtection::kOnAppend;
}

IOStatus NewUuid(std::string* uuid) {
  std::ifstream in("/proc/sys/kernel/random/uuid");
  if (!(in >> *uuid)) return IOStatus::IOError("/proc/sys/kernel/random/uuid cannot be read");
  return IOStatus::OK();
}

}  // namespace

// What a zone of the log holds.
struct MetadataLog::Found {
  bool has_superblock = false;
  bool is_whole = false;
  Superblock superblock;
  std::vector<std::string> entries;
  uint64_t last_sequence = 0;
};

MetadataLog::MetadataLog(Device* device, bool is_protected)
    : device_(device), protection_(ProtectionOf(*device, is_protected)) {}

std::string MetadataLog::EncodeSuperblock(uint64_t generation) const {
  const leyden_identity& id = device_->identity();
  std::string out;
  PutText(&out, kMagic);
  PutU32(&out, kFormatVersion);
  PutText(&out, superblock_.uuid);
  PutU64(&out, generation);
  PutU32(&out, id.block_bytes);
  PutU32(&out, id.zone_count);
  PutU64(&out, id.zone_size_bytes);
  PutU64(&out, id.zone_capacity_bytes);
  return out;
}

IOStatus MetadataLog::ReadSuperblock(const Record& record, Superblock* superblock) const {
  const leyden_identity& id = device_->identity();
  Decoder in(record.payload, record.length);
  if (in.Text() != kMagic) return device_->Damaged("the superblock is none");
  const uint32_t version = in.U32();
  if (version > kFormatVersion) {
    return IOStatus::NotSupported(device_->image() + ": its file system has format version " + std::to_string(version) +
                                      ", and this plugin knows version " + std::to_string(kFormatVersion),
                                  "use the plugin of a newer Leyden");
  }
  superblock->uuid = in.Text();
  superblock->generation = in.U64();
  const uint64_t block_bytes = in.U32();
  const uint32_t zone_count = in.U32();
  const uint64_t zone_size = in.U64();
  const uint64_t zone_capacity = in.U64();
  if (!in.ok() || version == 0) return device_->Damaged("the superblock ends early");
  if (block_bytes != id.block_bytes || zone_count != id.zone_count || zone_size != id.zone_size_bytes ||
      zone_capacity != id.zone_capacity_bytes) {
    return device_->Damaged("the file system was made on a drive of another geometry");
  }
  return IOStatus::OK();
}

IOStatus MetadataLog::LoadZone(const leyden_zone& zone, Found* found) const {
  uint64_t end = 0;
  return ScanLogZone(
      *device_, zone, kSalt,
      [&](const Record& r) {
        found->last_sequence = r.sequence;
        if (r.kind == kSuperblock) {
          found->has_superblock = true;
          return ReadSuperblock(r, &found->superblock);
        }
        if (r.kind == kSnapshotEnd) {
          found->is_whole = found->has_superblock;
        } else {
          found->entries.emplace_back(r.payload, r.length);
        }
        return IOStatus::OK();
      },
      &end);
}

IOStatus MetadataLog::Load(const std::vector<leyden_zone>& zones, Tree* tree) {
  if (zones.size() <= kMetadataZones) return device_->Full("it has too few zones for a file system");
  std::array<Found, kMetadataZones> found;
  bool all_empty = true;
  for (const leyden_zone& z : zones) all_empty = all_empty && z.state == LEYDEN_ZONE_EMPTY;
  if (all_empty) {
    return IOStatus::NotFound(device_->image() + ": there is no file system on it",
                              "make one: leyden-fs mkfs " + device_->image());
  }
  Found* newest = nullptr;
  for (uint32_t z = 0; z < kMetadataZones; z++) {
    IOStatus s = LoadZone(zones[z], &found[z]);
    if (s.IsCorruption() && !found[z].has_superblock) {
      // Not even the first record: if it is not marked as one, it is somebody else's data.
      std::string head(LogZone::kHeaderBytes, '\0');
      IOStatus r = device_->Read(zones[z].start_bytes, head.size(), head.data());
      if (!r.ok()) return r;
      std::string mark;
      PutU32(&mark, kSalt);
      if (head.compare(LogZone::kSaltAt, 4, mark) != 0) continue;
    }
    if (!s.ok()) return s;
    if (!found[z].is_whole) continue;
    if (newest == nullptr || found[z].superblock.generation > newest->superblock.generation) {
      newest = &found[z];
      zone_ = z;
    }
  }
  if (newest == nullptr) {
    return IOStatus::InvalidArgument(device_->image() + ": its zones hold no Leyden file system",
                                     "name another image, or give this one up with leyden-fs mkfs --force");
  }
  superblock_ = newest->superblock;
  sequence_ = newest->last_sequence;
  for (const std::string& entries : newest->entries) {
    IOStatus s = tree->Apply(entries);
    if (!s.ok()) return device_->Damaged(s.ToString());
    tree->TakeUnlinked();
  }
  return IOStatus::OK();
}

IOStatus MetadataLog::Create(const Tree& tree) {
  IOStatus s = NewUuid(&superblock_.uuid);
  if (!s.ok()) return s;
  zone_ = kMetadataZones - 1;
  superblock_.generation = 0;
  return Roll(tree);
}

IOStatus MetadataLog::Roll(const Tree& tree) {
  const std::vector<std::string> pieces = tree.Snapshot(kPieceBytes);
  size_t bytes = 0;
  for (const std::string& p : pieces) bytes += p.size() + device_->block_bytes();
  if (bytes + 4 * device_->block_bytes() > device_->zone_capacity()) {
    return device_->Full("its zones are too small for the metadata of so many files");
  }
  const uint32_t next = (zone_ + 1) % kMetadataZones;
  leyden_zone z{};
  IOStatus s = device_->Describe(next, &z);
  if (s.ok() && z.state != LEYDEN_ZONE_EMPTY) s = device_->Reset(next);
  std::unique_ptr<LogZone> log;
  if (s.ok()) s = LogZone::Begin(device_, next, kSalt, protection_, &log);
  if (!s.ok()) return s;
  uint64_t offset = 0;
  const std::string super = EncodeSuperblock(superblock_.generation + 1);
  s = log->Append(kSuperblock, ++sequence_, super, nullptr, 0, &offset);
  for (size_t i = 0; s.ok() && i < pieces.size(); i++) {
    s = log->Append(kSnapshot, ++sequence_, pieces[i], nullptr, 0, &offset);
  }
  if (s.ok()) s = log->Append(kSnapshotEnd, ++sequence_, "", nullptr, 0, &offset);
  if (s.ok()) s = log->Sync();
  if (!s.ok()) return s;
  superblock_.generation++;
  snapshot_bytes_ = bytes;
  appended_bytes_ = 0;
  log_ = std::move(log);
  const uint32_t old = zone_;
  zone_ = next;
  return device_->Reset(old);
}

IOStatus MetadataLog::Append(const std::string& entries, const Tree& tree) {
  if (entries.size() > log_->Room()) {
    Counted().rolls++;
    return Roll(tree);
  }
  uint64_t offset = 0;
  appended_bytes_ += entries.size();
  IOStatus s = log_->Append(kEntries, ++sequence_, entries, nullptr, 0, &offset);
  return s.ok() ? log_->Sync() : s;
}

bool MetadataLog::HasRoomFor(const Tree& tree, size_t bytes) {
  const size_t limit = device_->zone_capacity() / 2;
  if (snapshot_bytes_ + appended_bytes_ + bytes < limit) return true;
  // Most of what was appended may be undone again: count.
  size_t now = bytes;
  for (const std::string& p : tree.Snapshot(kPieceBytes)) now += p.size() + device_->block_bytes();
  return now < limit;
}

IOStatus MetadataLog::End() { return log_ == nullptr ? IOStatus::OK() : log_->Sync(); }

}  // namespace leyden_fs
