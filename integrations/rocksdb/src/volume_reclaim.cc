// When nothing else helps: what lives in a zone is copied elsewhere, and the zone is reset.
//
// Everything else waits meanwhile (`space_`), because readers hold offsets of what moves.

#include <algorithm>

#include "counters.h"
#include "volume.h"

namespace leyden_fs {

IOStatus Volume::WithSpace(const std::function<IOStatus()>& work) {
  std::set<uint32_t> tried;
  for (;;) {
    IOStatus s;
    {
      std::shared_lock<std::shared_mutex> space(space_);
      if (!is_mounted_) return IOStatus::IOError(device_->image() + ": it is not mounted any more");
      s = work();
    }
    if (!s.IsNoSpace()) return s;
    std::unique_lock<std::shared_mutex> space(space_);
    if (!is_mounted_ || !Reclaim(&tried)) {
      Counted().no_space++;
      return s;
    }
  }
}

// Frees one zone more. False if none is worth it; those tried in vain are in `tried`.
bool Volume::Reclaim(std::set<uint32_t>* tried) {
  uint32_t victim = 0;
  while (zones_.Victim(*tried, &victim)) {
    tried->insert(victim);
    bool moved = true;
    const bool is_log = zones_.Use(victim) == ZoneUse::kLog;
    device_->Reclaims(is_log ? leyden_fs::Reclaim::kLogs : leyden_fs::Reclaim::kPlain);
    IOStatus s = is_log ? ReclaimLog(victim) : ReclaimPlain(victim, &moved);
    device_->Reclaims(leyden_fs::Reclaim::kNone);
    if (s.ok() && moved) return true;
  }
  return false;
}

IOStatus Volume::ReclaimPlain(uint32_t zone, bool* moved) {
  zones_.Retire(zone);
  std::vector<InodePtr> files;
  uint64_t found = 0;
  {
    std::lock_guard<std::mutex> lock(mu_);
    files = tree_.Files();
  }
  const uint64_t block = device_->block_bytes();
  std::vector<std::pair<InodePtr, ExtentList>> changes;
  std::vector<Extent> added;
  IOStatus s;
  for (const InodePtr& f : files) {
    if (f->file_class != FileClass::kPlain) continue;
    uint64_t here = 0;
    for (const Extent& e : f->extents.all()) {
      if (device_->ZoneOf(e.device_offset) == zone) here += (e.length + block - 1) / block * block;
    }
    if (here == 0) continue;
    found += here;
    changes.emplace_back(f, ExtentList(device_->identity().zone_size_bytes));
  }
  // Something else lives in it: a file that is deleted and still open.
  *moved = found == zones_.LiveBytes(zone);
  if (!*moved) return s;
  for (auto& c : changes) {
    s = CopyExtents(c.first.get(), zone, &c.second, &added);
    if (!s.ok()) break;
  }
  if (s.ok()) s = device_->Flush();
  if (!s.ok()) {
    // What was copied is garbage, and the originals are where they were.
    for (const Extent& e : added) zones_.SubtractLive(e);
    return s;
  }
  std::string entries;
  std::vector<Extent> freed;
  for (auto& c : changes) {
    Inode* f = c.first.get();
    for (const Extent& e : f->extents.all()) {
      if (device_->ZoneOf(e.device_offset) == zone) freed.push_back(e);
    }
    f->extents = c.second;
    ExtentList recorded = c.second;
    recorded.Truncate(f->recorded_size);
    if (f->recorded_size > 0) entries += entry::Extents(f->number, 0, recorded.all());
  }
  std::lock_guard<std::mutex> lock(mu_);
  s = Record(entries);
  if (!s.ok()) return s;
  for (const Extent& e : freed) zones_.SubtractLive(e);
  if (!changes.empty()) Counted().reclaimed_plain++;
  return zones_.Collect();
}

// Copies what a file has in `zone`: `*moved` becomes its extents then.
IOStatus Volume::CopyExtents(Inode* inode, uint32_t zone, ExtentList* moved, std::vector<Extent>* added) {
  const uint64_t block = device_->block_bytes();
  for (const Extent& e : inode->extents.all()) {
    if (device_->ZoneOf(e.device_offset) != zone) {
      moved->Append(e.device_offset, e.length);
      continue;
    }
    std::string bytes((e.length + block - 1) / block * block, '\0');
    IOStatus s = device_->Read(e.device_offset, e.length, bytes.data());
    size_t at = 0;
    while (s.ok() && at < bytes.size()) {
      uint32_t to = 0;
      s = zones_.Acquire(bytes.size() - at, 0, Urgency::kReclaim, &to);
      if (!s.ok()) break;
      size_t written = 0;
      uint64_t offset = 0;
      s = zones_.Write(to, bytes.data() + at, bytes.size() - at, &written, &offset);
      if (s.ok()) {
        const uint64_t length = std::min<uint64_t>(written, e.length - at);
        zones_.AddLive({0, offset, length});
        added->push_back({0, offset, length});
        moved->Append(offset, length);
        at += written;
      }
      zones_.Release(to);
    }
    if (!s.ok()) return s;
  }
  return IOStatus::OK();
}

IOStatus Volume::ReclaimLog(uint32_t zone) {
  std::vector<InodePtr> files;
  {
    std::lock_guard<std::mutex> lock(mu_);
    files = tree_.Files();
  }
  uint64_t moved = 0;
  for (const InodePtr& f : files) {
    if (f->file_class == FileClass::kPlain) continue;
    const std::vector<Extent> extents = f->extents.all();
    for (const Extent& e : extents) {
      if (device_->ZoneOf(e.device_offset) != zone) continue;
      std::string bytes(e.length, '\0');
      IOStatus s = ReadExtent(*f, e, bytes.data());
      size_t done = 0;
      while (s.ok() && done < bytes.size()) {
        s = StreamOf(*f)->Write(*f, e.file_offset + done, bytes.data() + done, bytes.size() - done,
                                SourceFor(*f, Urgency::kReclaim), [&](const Extent& placed) {
                                  zones_.AddLive(placed);
                                  zones_.SubtractLive({0, e.device_offset + done, placed.length});
                                  f->extents.Move(placed);
                                  done += placed.length;
                                });
      }
      if (!s.ok()) return s;
      moved += e.length;
    }
  }
  // The copies must be durable before the originals go.
  IOStatus s = log_stream_.Sync();
  if (s.ok()) s = state_stream_.Sync();
  if (!s.ok()) return s;
  if (moved > 0) Counted().reclaimed_logs++;
  std::lock_guard<std::mutex> lock(mu_);
  return moved == 0 ? IOStatus::OK() : ReleaseDeadLogs();
}

}  // namespace leyden_fs
