#include "inode.h"

#include <algorithm>
#include <cassert>

namespace leyden_fs {
namespace {

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}
bool BeginsWith(const std::string& text, const std::string& begin) {
  return text.compare(0, begin.size(), begin) == 0;
}

}  // namespace

FileClass ClassOfPath(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (EndsWith(name, ".log")) return FileClass::kLog;
  for (const char* begin : {"MANIFEST-", "OPTIONS-"}) {
    if (BeginsWith(name, begin)) return FileClass::kState;
  }
  if (name == "CURRENT" || name == "IDENTITY" || name == "LOCK" || EndsWith(name, ".dbtmp")) {
    return FileClass::kState;
  }
  return FileClass::kPlain;
}

void ExtentList::Append(uint64_t device_offset, uint64_t length) {
  if (length == 0) return;
  if (!extents_.empty()) {
    Extent& last = extents_.back();
    if (last.device_offset + last.length == device_offset && device_offset % zone_bytes_ != 0) {
      last.length += length;
      return;
    }
  }
  extents_.push_back({size(), device_offset, length});
}

void ExtentList::Move(const Extent& extent) {
  assert(extent.end() <= size());
  std::vector<Extent> kept;
  bool placed = false;
  for (const Extent& e : extents_) {
    const uint64_t from = std::max(e.file_offset, extent.file_offset);
    const uint64_t to = std::min(e.end(), extent.end());
    if (from >= to) {
      kept.push_back(e);
      continue;
    }
    if (e.file_offset < from) kept.push_back({e.file_offset, e.device_offset, from - e.file_offset});
    if (!placed) kept.push_back(extent);
    placed = true;
    if (to < e.end()) kept.push_back({to, e.device_offset + (to - e.file_offset), e.end() - to});
  }
  extents_ = std::move(kept);
}

std::vector<Extent> ExtentList::Truncate(uint64_t size) {
  std::vector<Extent> freed;
  while (!extents_.empty() && extents_.back().end() > size) {
    Extent& last = extents_.back();
    const uint64_t from = std::max(last.file_offset, size);
    freed.push_back({from, last.device_offset + (from - last.file_offset), last.end() - from});
    last.length = from - last.file_offset;
    if (last.length == 0) extents_.pop_back();
  }
  return freed;
}

Extent ExtentList::Find(uint64_t file_offset) const {
  auto after = std::upper_bound(extents_.begin(), extents_.end(), file_offset,
                                [](uint64_t offset, const Extent& e) { return offset < e.file_offset; });
  if (after == extents_.begin()) return {file_offset, 0, 0};
  const Extent& e = *(after - 1);
  if (file_offset >= e.end()) return {file_offset, 0, 0};
  const uint64_t skip = file_offset - e.file_offset;
  return {file_offset, e.device_offset + skip, e.length - skip};
}

}  // namespace leyden_fs
