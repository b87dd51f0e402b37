#include "log_zone.h"

#include <algorithm>
#include <cstring>

#include "codec.h"

namespace leyden_fs {
namespace {

// Records begin at multiples of this.
constexpr uint64_t kAlign = 8;
// What is held back at most before it is written, if it need not be durable yet.
constexpr size_t kHoldBytes = 256 << 10;

uint64_t RoundUp(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

bool AllZero(const std::string& text, uint64_t from, uint64_t to) {
  return std::all_of(text.begin() + static_cast<ptrdiff_t>(from), text.begin() + static_cast<ptrdiff_t>(to),
                     [](char c) { return c == 0; });
}

// `header_crc` is that of the rest of the header: a length is believed only with it, or a flipped bit in the last
// record would look like a torn one.
struct Header {
  uint32_t header_crc, payload_crc, length, salt, kind;
  uint64_t sequence;
};

Header HeaderAt(const std::string& bytes, uint64_t at) {
  Decoder in(bytes.data() + at, LogZone::kHeaderBytes);
  Header h{};
  h.header_crc = in.U32();
  h.payload_crc = in.U32();
  h.length = in.U32();
  h.salt = in.U32();
  h.kind = in.U32();
  h.sequence = in.U64();
  return h;
}

uint64_t RecordEnd(uint64_t at, const Header& h) {
  return at + RoundUp(LogZone::kHeaderBytes + uint64_t{h.length}, kAlign);
}

bool IsHeader(const std::string& bytes, uint64_t at, uint32_t salt, Header* h) {
  if (at + LogZone::kHeaderBytes > bytes.size()) return false;
  *h = HeaderAt(bytes, at);
  return h->salt == salt && h->header_crc == Crc32c(bytes.data() + at + 4, LogZone::kHeaderBytes - 4);
}

bool IsRecord(const std::string& bytes, uint64_t at, uint32_t salt, Header* h) {
  return IsHeader(bytes, at, salt, h) && RecordEnd(at, *h) <= bytes.size() &&
         h->payload_crc == Crc32c(bytes.data() + at + LogZone::kHeaderBytes, h->length);
}

// Whether a power cut can have left these bytes: a record whose first units were written, and not its last.
// A unit is kept or lost as a whole, so a record within one unit is never torn.
bool IsTorn(const std::string& bytes, uint64_t at, uint32_t salt, uint64_t unit) {
  const uint64_t unit_end = at / unit * unit + unit;
  if (at + LogZone::kHeaderBytes > unit_end) return AllZero(bytes, unit_end, std::min(unit_end + unit, bytes.size()));
  Header h{};
  if (!IsHeader(bytes, at, salt, &h)) return false;
  for (uint64_t u = unit_end; u < std::min<uint64_t>(RecordEnd(at, h), bytes.size()); u += unit) {
    if (AllZero(bytes, u, std::min<uint64_t>(u + unit, bytes.size()))) return true;
  }
  return RecordEnd(at, h) > bytes.size();
}

}  // namespace

LogZone::LogZone(Device* device, uint32_t zone, uint32_t salt, LogProtection protection)
    : device_(device),
      zone_(zone),
      salt_(salt),
      protection_(protection),
      in_area_(protection == LogProtection::kOnAppend && device->has_areas()),
      start_(device->ZoneStart(zone)) {}

IOStatus LogZone::Begin(Device* device, uint32_t zone, uint32_t salt, LogProtection protection,
                        std::unique_ptr<LogZone>* log) {
  std::unique_ptr<LogZone> begun(new LogZone(device, zone, salt, protection));
  if (begun->in_area_) {
    IOStatus s = device->OpenArea(zone);
    if (!s.ok()) return s;
  }
  *log = std::move(begun);
  return IOStatus::OK();
}

size_t LogZone::Room() const {
  const uint64_t used = tail_start_ + tail_.size() + kHeaderBytes + kAlign;
  return used < device_->zone_capacity() ? device_->zone_capacity() - used : 0;
}

IOStatus LogZone::Append(uint32_t kind, uint64_t sequence, const std::string& head, const char* data, size_t n,
                         uint64_t* data_offset) {
  if (!failed_.ok()) return failed_;
  const size_t before = tail_.size();
  std::string header;
  header.reserve(kHeaderBytes);
  PutU32(&header, Crc32c(data, n, Crc32c(head.data(), head.size())));
  PutU32(&header, static_cast<uint32_t>(head.size() + n));
  PutU32(&header, salt_);
  PutU32(&header, kind);
  PutU64(&header, sequence);
  PutU32(&tail_, Crc32c(header.data(), header.size()));
  tail_ += header;
  tail_ += head;
  *data_offset = start_ + tail_start_ + tail_.size();
  tail_.append(data, n);
  tail_.resize(RoundUp(tail_.size(), kAlign));
  IOStatus s;
  if (protection_ == LogProtection::kOnAppend) {
    s = WriteTail(Durability::kAcknowledged);
  } else if (protection_ == LogProtection::kNever || tail_.size() >= kHoldBytes) {
    s = WriteTail(Durability::kVolatile);
  }
  if (s.IsNoSpace()) {
    // The command has not happened: as if the record had never come.
    if (tail_.size() >= before) tail_.resize(before);
  } else if (!s.ok()) {
    failed_ = s;
  }
  return s;
}

IOStatus LogZone::WriteTail(Durability durability) {
  const uint64_t block = device_->block_bytes();
  const size_t used = tail_.size();
  // Filled up for the write only, without a copy: a log does this with each record.
  tail_.resize(RoundUp(used, block));
  const size_t whole = tail_.size();
  const size_t most = in_area_ ? device_->identity().zrwa_size_bytes / block * block : whole;
  IOStatus s;
  size_t done = 0;
  for (; s.ok() && done < whole; done += most) {
    s = device_->Write(start_ + tail_start_ + done, tail_.data() + done, std::min(most, whole - done), durability);
  }
  tail_.resize(used);
  // Only the first of several writes can fail as if nothing had happened.
  if (!s.ok()) return done == most ? s : IOStatus::IOError(s.ToString());
  const uint64_t written = in_area_ ? used / block * block : whole;
  tail_start_ += written;
  tail_.erase(0, std::min<size_t>(written, used));
  is_volatile_ = durability == Durability::kVolatile;
  return IOStatus::OK();
}

IOStatus LogZone::Sync() {
  if (!failed_.ok()) return failed_;
  if (protection_ != LogProtection::kOnSync) return IOStatus::OK();
  IOStatus s;
  if (!tail_.empty()) {
    // Force Unit Access makes everything below it in the zone durable, too.
    s = WriteTail(Durability::kAcknowledged);
  } else if (is_volatile_) {
    s = device_->Flush();
    if (s.ok()) is_volatile_ = false;
  }
  if (!s.ok() && !s.IsNoSpace()) failed_ = s;
  return s;
}

IOStatus LogZone::End() {
  IOStatus s = Sync();
  if (!s.ok()) return s;
  return EndOldLogZone(device_, zone_, tail_start_ + tail_.size());
}

void LogZone::ReadPending(uint64_t offset, size_t n, char* buffer) const {
  memcpy(buffer, tail_.data() + (offset - pending_offset()), n);
}

IOStatus EndOldLogZone(Device* device, uint32_t zone, uint64_t end) {
  leyden_zone z{};
  IOStatus s = device->Describe(zone, &z);
  if (!s.ok() || z.state == LEYDEN_ZONE_FULL || z.state == LEYDEN_ZONE_EMPTY) return s;
  const uint64_t to = z.start_bytes + RoundUp(end, device->block_bytes());
  if ((z.attributes & LEYDEN_ZONE_HAS_ZRWA) != 0 && to > z.write_pointer_bytes) {
    s = device->CommitArea(to);
    if (!s.ok()) return s;
    if (to == z.start_bytes + z.capacity_bytes) return s;
  }
  return device->Finish(zone);
}

IOStatus ScanLogZone(const Device& device, const leyden_zone& zone, uint32_t salt,
                     const std::function<IOStatus(const Record&)>& visit, uint64_t* end) {
  const uint64_t unit = std::max<uint64_t>(device.block_bytes(), device.identity().unit_bytes);
  // An area reaches beyond what the zone's write pointer says.
  uint64_t used = zone.capacity_bytes;
  if (zone.write_pointer_bytes != LEYDEN_NO_OFFSET) {
    const uint64_t reach = zone.write_pointer_bytes - zone.start_bytes + 2 * device.identity().zrwa_size_bytes;
    used = std::min(used, std::max(reach, zone.held_bytes));
  }
  *end = 0;
  std::string bytes(used, '\0');
  IOStatus s = device.Read(zone.start_bytes, bytes.size(), bytes.data());
  if (!s.ok()) return s;
  uint64_t at = 0;
  uint64_t last = 0;
  while (at < bytes.size()) {
    const uint64_t unit_end = std::min<uint64_t>(at / unit * unit + unit, bytes.size());
    Header h{};
    if (IsRecord(bytes, at, salt, &h)) {
      if (h.sequence <= last) return device.Damaged("zone " + std::to_string(zone.zone) + ": records out of order");
      last = h.sequence;
      const uint64_t from = at + LogZone::kHeaderBytes;
      s = visit({h.kind, h.sequence, zone.start_bytes + from, bytes.data() + from, h.length});
      if (!s.ok()) return s;
      at = RecordEnd(at, h);
      *end = at;
    } else if (AllZero(bytes, at, unit_end)) {
      // A whole unit that was never written; or the last block of an area, which is not filled up.
      if (at == unit_end - unit || (zone.attributes & LEYDEN_ZONE_HAS_ZRWA) != 0) break;
      at = unit_end;
    } else if (IsTorn(bytes, at, salt, unit)) {
      break;
    } else {
      return device.Damaged("zone " + std::to_string(zone.zone) + ", byte " + std::to_string(at) +
                            ": not a record, and no power cut leaves this");
    }
  }
  // Records are written in order: beyond the end there are none.
  std::string mark;
  PutU32(&mark, salt);
  for (uint64_t p = RoundUp(std::max(at, *end), kAlign); p + LogZone::kHeaderBytes <= bytes.size(); p += kAlign) {
    Header h{};
    if (memcmp(bytes.data() + p + LogZone::kSaltAt, mark.data(), 4) == 0 && IsRecord(bytes, p, salt, &h) && h.sequence > last) {
      return device.Damaged("zone " + std::to_string(zone.zone) + ": records are missing before byte " +
                            std::to_string(p));
    }
  }
  return IOStatus::OK();
}

}  // namespace leyden_fs
