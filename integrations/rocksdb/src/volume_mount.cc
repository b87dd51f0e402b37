// Mounting: the tree from the metadata log, files in log zones from their records, and zones from both.

#include <algorithm>

#include "volume.h"

namespace leyden_fs {

IOStatus Volume::Format(const Options& options, bool force) {
  std::unique_ptr<Device> device;
  IOStatus s = Device::Open(options, &device);
  if (!s.ok()) return s;
  std::vector<leyden_zone> zones;
  s = device->Report(&zones);
  if (!s.ok()) return s;
  for (const leyden_zone& z : zones) {
    if (z.state == LEYDEN_ZONE_EMPTY || z.state >= LEYDEN_ZONE_OFFLINE || z.state == LEYDEN_ZONE_READ_ONLY) continue;
    if (!force) {
      return IOStatus::InvalidArgument(device->image() + ": there is data on it already",
                                       "leyden-fs mkfs --force gives it up");
    }
    s = device->Reset(z.zone);
    if (!s.ok()) return s;
  }
  s = device->Report(&zones);
  if (!s.ok()) return s;
  Zones check(device.get());
  s = check.Load(zones, std::vector<ZoneUse>(zones.size(), ZoneUse::kFree), false);
  if (!s.ok()) return s;
  if (zones.size() < kMetadataZones + 8) {
    return device->Full("a file system needs " + std::to_string(kMetadataZones + 8) + " zones, and there are " +
                        std::to_string(zones.size()));
  }
  if (device->zone_capacity() < 16 * device->block_bytes()) return device->Full("its zones are too small for metadata");
  Tree tree(device->identity().zone_size_bytes);
  MetadataLog metadata(device.get(), options.protect_metadata);
  s = metadata.Create(tree);
  IOStatus closed = device->Close();
  return s.ok() ? closed : s;
}

IOStatus Volume::Mount(const Options& options, std::unique_ptr<Volume>* volume) {
  std::unique_ptr<Device> device;
  IOStatus s = Device::Open(options, &device);
  if (!s.ok()) return s;
  std::unique_ptr<Volume> mounted(new Volume(options, std::move(device)));
  s = mounted->Load();
  if (s.IsNotFound() && options.format_if_empty) {
    mounted.reset();
    s = Format(options, false);
    if (!s.ok()) return s;
    Options again = options;
    again.format_if_empty = false;
    return Mount(again, volume);
  }
  if (!s.ok()) return s;
  *volume = std::move(mounted);
  return s;
}

IOStatus Volume::Load() {
  std::vector<leyden_zone> reported;
  IOStatus s = device_->Report(&reported);
  if (s.ok()) s = metadata_.Load(reported, &tree_);
  if (!s.ok()) return s;
  std::map<uint32_t, uint64_t> ends;
  s = LoadLogs(reported, &ends);
  if (s.ok()) s = CutLostExtents(reported);
  if (s.ok()) s = zones_.Load(reported, Uses(), options_.read_only);
  if (!s.ok()) return s;
  for (const InodePtr& f : tree_.Files()) {
    for (const Extent& e : f->extents.all()) zones_.AddLive(e);
  }
  if (options_.read_only) {
    is_mounted_ = true;
    return s;
  }
  // From here on the image changes. A new snapshot comes first: what a torn record was is forgotten with it.
  s = metadata_.Roll(tree_);
  if (!s.ok()) return s;
  for (const auto& end : ends) {
    s = EndOldLogZone(device_.get(), end.first, end.second);
    if (!s.ok()) return s;
  }
  is_mounted_ = true;
  std::lock_guard<std::mutex> lock(mu_);
  return ReleaseDeadLogs();
}

IOStatus Volume::LoadLogs(const std::vector<leyden_zone>& reported, std::map<uint32_t, uint64_t>* ends) {
  std::vector<LogRecord> records;
  for (const auto& zone : tree_.log_zones()) {
    if (zone.first < kMetadataZones || zone.first >= reported.size()) {
      return device_->Damaged("the metadata names a log zone that is none");
    }
    IOStatus s = LogStream::Scan(*device_, reported[zone.first], zone.second, &records, &(*ends)[zone.first]);
    if (!s.ok()) return s;
  }
  for (const InodePtr& f : tree_.Files()) {
    for (const auto& cut : f->cuts) records.push_back({cut.first, f->number, {cut.second, 0, 0}, true});
  }
  std::sort(records.begin(), records.end(),
            [](const LogRecord& a, const LogRecord& b) { return a.sequence < b.sequence; });
  if (!records.empty()) log_sequence_ = records.back().sequence;
  for (const auto& zone : tree_.log_zones()) log_sequence_ = std::max<uint64_t>(log_sequence_, zone.second);
  return ApplyLogs(std::move(records));
}

// A record takes the place of older ones about the same bytes: that is how reclaiming moves them.
IOStatus Volume::ApplyLogs(std::vector<LogRecord> records) {
  std::map<uint64_t, std::map<uint64_t, Extent>> files;
  for (const LogRecord& r : records) {
    if (tree_.FindInode(r.inode) == nullptr) continue;
    auto& pieces = files[r.inode];
    const uint64_t from = r.extent.file_offset;
    const uint64_t to = r.is_cut ? UINT64_MAX : r.extent.end();
    auto it = pieces.upper_bound(from);
    if (it != pieces.begin()) --it;
    while (it != pieces.end() && it->second.file_offset < to) {
      const Extent old = it->second;
      if (old.end() <= from) {
        ++it;
        continue;
      }
      it = pieces.erase(it);
      if (old.file_offset < from) pieces[old.file_offset] = {old.file_offset, old.device_offset, from - old.file_offset};
      if (old.end() > to) pieces[to] = {to, old.device_offset + (to - old.file_offset), old.end() - to};
    }
    if (!r.is_cut) pieces[from] = r.extent;
  }
  for (const auto& f : files) {
    const InodePtr inode = tree_.FindInode(f.first);
    for (const auto& piece : f.second) {
      if (piece.first != inode->extents.size()) {
        return device_->Damaged("log file " + std::to_string(f.first) + " has a hole at byte " +
                                std::to_string(inode->extents.size()));
      }
      inode->extents.Append(piece.second.device_offset, piece.second.length);
    }
  }
  return IOStatus::OK();
}

// Files that are longer than what the drive holds end there: beyond it new data will lie, and not theirs.
IOStatus Volume::CutLostExtents(const std::vector<leyden_zone>& reported) {
  std::vector<Extent> all;
  for (const auto& name : tree_.names()) {
    const InodePtr& inode = name.second;
    if (inode == nullptr || inode->file_class != FileClass::kPlain) continue;
    for (const Extent& e : inode->extents.all()) {
      const uint64_t zone = device_->ZoneOf(e.device_offset);
      if (zone < kMetadataZones || zone >= reported.size()) return device_->Damaged(name.first + " lies in no zone");
      const leyden_zone& z = reported[zone];
      const uint64_t held = z.start_bytes + z.held_bytes;
      if (e.device_offset + e.length <= held) continue;
      const uint64_t size = e.file_offset + (held > e.device_offset ? held - e.device_offset : 0);
      cut_files_.push_back(name.first + ": " + std::to_string(inode->recorded_size) + " bytes, " +
                           std::to_string(size) + " are left");
      inode->extents.Truncate(size);
      inode->recorded_size = size;
      break;
    }
  }
  for (const InodePtr& f : tree_.Files()) all.insert(all.end(), f->extents.all().begin(), f->extents.all().end());
  std::sort(all.begin(), all.end(),
            [](const Extent& a, const Extent& b) { return a.device_offset < b.device_offset; });
  for (size_t i = 1; i < all.size(); i++) {
    if (all[i - 1].device_offset + all[i - 1].length > all[i].device_offset) {
      return device_->Damaged("two files claim the same bytes, at " + std::to_string(all[i].device_offset));
    }
  }
  return IOStatus::OK();
}

std::vector<ZoneUse> Volume::Uses() const {
  std::vector<ZoneUse> uses(device_->identity().zone_count, ZoneUse::kFree);
  for (const InodePtr& f : tree_.Files()) {
    for (const Extent& e : f->extents.all()) {
      if (f->file_class == FileClass::kPlain) uses[device_->ZoneOf(e.device_offset)] = ZoneUse::kPlain;
    }
  }
  for (const auto& zone : tree_.log_zones()) uses[zone.first] = ZoneUse::kLog;
  for (uint32_t z = 0; z < kMetadataZones; z++) uses[z] = ZoneUse::kMetadata;
  return uses;
}

}  // namespace leyden_fs
