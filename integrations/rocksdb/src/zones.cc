#include "zones.h"

#include <algorithm>

namespace leyden_fs {
namespace {

// Active zones that are not for plain files: two of metadata while one takes over, and one for each kind of log.
constexpr uint32_t kReservedActive = 4;
// Free zones that opening a database takes: for its MANIFEST, for its log, and one for copies.
constexpr size_t kToOpen = 3;
// Drives with fewer zones keep no more than that: a database that has filled one may not open.
constexpr size_t kFewZones = 24;
// What others keep beyond that: tables have more bytes than their logs, and the first log of all is in a zone of its own.
constexpr size_t kSpare = 3;
// Bytes that may be logged however full the drive is: opening a database logs some.
constexpr uint64_t kLittle = 16 << 10;

}  // namespace

IOStatus Zones::Load(const std::vector<leyden_zone>& zones, const std::vector<ZoneUse>& use, bool read_only) {
  if (device_->active_max() <= kReservedActive) {
    return IOStatus::InvalidArgument(device_->image() + ": its drive lets too few zones be active: " +
                                         std::to_string(device_->active_max()) + ", and the file system needs 5",
                                     "make a drive with a larger device.zoned.max_active and max_open");
  }
  std::lock_guard<std::mutex> lock(mu_);
  zones_.resize(zones.size());
  for (uint32_t i = 0; i < zones.size(); i++) {
    const leyden_zone& r = zones[i];
    Zone& z = zones_[i];
    z.use = use[i];
    if (r.state == LEYDEN_ZONE_OFFLINE || (r.state == LEYDEN_ZONE_READ_ONLY && z.use == ZoneUse::kFree)) {
      z.use = ZoneUse::kLost;
    }
    z.is_empty = r.state == LEYDEN_ZONE_EMPTY;
    z.is_finished = r.write_pointer_bytes == LEYDEN_NO_OFFSET;
    z.written = z.is_finished ? r.capacity_bytes : r.write_pointer_bytes - r.start_bytes;
    if (z.use == ZoneUse::kFree) free_.push_back(i);
    // What nothing lives in must not take up the drive's resources.
    if (z.use == ZoneUse::kFree && !z.is_empty && !z.is_finished && !read_only) {
      IOStatus s = device_->Reset(i);
      if (!s.ok()) return s;
      z.is_empty = true;
    }
    if (IsActive(z)) active_++;
  }
  while (!read_only && active_ > device_->active_max() - kReservedActive && FinishSmallest()) {
  }
  return IOStatus::OK();
}

// Free zones that a request must leave to the more urgent ones: for copies, for MANIFESTs, for logs, and as many as it
// takes to flush what the logs hold. Opening a database flushes its logs and begins new ones: these zones are for that,
// so that a database that has filled its drive can be opened, and can delete.
size_t Zones::MustLeave(Urgency urgency) const {
  switch (urgency) {
    case Urgency::kReclaim: return 0;
    case Urgency::kState: return 1;
    // Those that were found are free as soon as the database is open.
    case Urgency::kLog: return is_recovering_ ? 0 : 2;
    case Urgency::kFlush:
      if (is_recovering_) return kToOpen - 1;
      break;
    case Urgency::kPlain: break;
  }
  const uint64_t capacity = device_->zone_capacity();
  return kToOpen + static_cast<size_t>((logged_ + capacity - 1) / capacity) + (zones_.size() < kFewZones ? 0 : kSpare);
}

bool Zones::MayLog(uint64_t bytes) {
  std::lock_guard<std::mutex> lock(mu_);
  since_mount_ += bytes;
  const uint64_t capacity = device_->zone_capacity();
  // A zone beside, for what tables have beyond their logs.
  uint64_t room = free_.size() > kToOpen + 1 ? (free_.size() - kToOpen - 1) * capacity : 0;
  if (logged_ + bytes <= room || since_mount_ <= kLittle || zones_.size() < kFewZones) return true;
  for (const Zone& z : zones_) {
    if (z.use == ZoneUse::kPlain && z.writers == 0) room += Room(z);
  }
  return logged_ + bytes <= room;
}

IOStatus Zones::TakeFree(Urgency urgency, uint32_t* zone) {
  while (free_.size() > MustLeave(urgency)) {
    const uint32_t taken = free_.front();
    free_.pop_front();
    Zone& z = zones_[taken];
    if (!z.is_empty) {
      IOStatus s = device_->Reset(taken);
      if (!s.ok()) {
        z.use = ZoneUse::kLost;
        continue;
      }
    }
    z.is_empty = false;
    z.is_finished = false;
    z.written = z.live = 0;
    *zone = taken;
    return IOStatus::OK();
  }
  return device_->Full("no zone is free");
}

IOStatus Zones::TakeForLog(Urgency urgency, uint32_t* zone) {
  std::lock_guard<std::mutex> lock(mu_);
  IOStatus s = TakeFree(urgency, zone);
  if (s.ok()) {
    is_recovering_ = is_recovering_ && urgency != Urgency::kLog;
    zones_[*zone].use = ZoneUse::kLog;
    zones_[*zone].writers = 1;
  }
  return s;
}

Zones::Zone* Zones::FindIdle(uint64_t at_least, int lifetime, uint32_t* zone) {
  Zone* best = nullptr;
  for (uint32_t i = 0; i < zones_.size(); i++) {
    Zone& z = zones_[i];
    if (!IsActive(z) || z.writers > 0 || Room(z) < at_least || z.lifetime != lifetime) continue;
    if (best == nullptr || Room(z) < Room(*best)) {
      best = &z;
      *zone = i;
    }
  }
  return best;
}

Zones::Zone* Zones::FindLargest(bool idle, uint32_t* zone) {
  Zone* best = nullptr;
  for (uint32_t i = 0; i < zones_.size(); i++) {
    Zone& z = zones_[i];
    if (z.use != ZoneUse::kPlain || Room(z) == 0 || (idle && z.writers > 0)) continue;
    if (best == nullptr || Room(z) > Room(*best)) {
      best = &z;
      *zone = i;
    }
  }
  return best;
}

bool Zones::FinishSmallest() {
  Zone* least = nullptr;
  uint32_t number = 0;
  for (uint32_t i = 0; i < zones_.size(); i++) {
    Zone& z = zones_[i];
    if (!IsActive(z) || z.writers > 0) continue;
    if (least == nullptr || Room(z) < Room(*least)) {
      least = &z;
      number = i;
    }
  }
  if (least == nullptr || !device_->Finish(number).ok()) return false;
  least->is_finished = true;
  active_--;
  return true;
}

IOStatus Zones::Acquire(uint64_t expected, int lifetime, Urgency urgency, uint32_t* zone) {
  std::lock_guard<std::mutex> lock(mu_);
  const uint64_t wanted = std::min(std::max(expected, device_->block_bytes()), device_->zone_capacity());
  Zone* found = FindIdle(wanted, lifetime, zone);
  const bool plenty = free_.size() > zones_.size() / 4;
  const uint32_t budget = device_->active_max() - kReservedActive;
  if (found == nullptr && free_.size() > MustLeave(urgency)) {
    // Room of a finished zone is lost until it is reset: only where there is plenty.
    if (active_ < budget || (plenty && FinishSmallest())) {
      IOStatus s = TakeFree(urgency, zone);
      if (s.ok()) {
        found = &zones_[*zone];
        found->use = ZoneUse::kPlain;
        found->lifetime = lifetime;
        active_++;
      }
    }
  }
  // What is left in zones is then for what opening the database flushes.
  if (found == nullptr && urgency == Urgency::kPlain && free_.size() <= kToOpen && zones_.size() >= kFewZones) {
    return device_->Full("what room is left is kept for opening the database");
  }
  if (found == nullptr) found = FindLargest(true, zone);
  if (found == nullptr) found = FindLargest(false, zone);
  if (found == nullptr) return device_->Full("no zone has room");
  found->writers++;
  return IOStatus::OK();
}

void Zones::Release(uint32_t zone) {
  std::lock_guard<std::mutex> lock(mu_);
  Zone& z = zones_[zone];
  z.writers--;
  if (z.writers == 0 && z.live == 0) dying_.insert(zone);
}

IOStatus Zones::Write(uint32_t zone, const char* data, size_t n, size_t* written, uint64_t* offset) {
  Zone& z = zones_[zone];
  std::lock_guard<std::mutex> writing(z.writing);
  uint64_t at;
  {
    std::lock_guard<std::mutex> lock(mu_);
    *written = std::min<uint64_t>(n, Room(z));
    at = z.written;
  }
  *offset = device_->ZoneStart(zone) + at;
  if (*written == 0) return IOStatus::OK();
  IOStatus s = device_->Write(*offset, data, *written, Durability::kVolatile);
  std::lock_guard<std::mutex> lock(mu_);
  if (!s.ok()) {
    // The write pointer tells how much of it got there.
    leyden_zone r{};
    if (device_->Describe(zone, &r).ok() && r.write_pointer_bytes != LEYDEN_NO_OFFSET) {
      z.written = r.write_pointer_bytes - r.start_bytes;
    }
    return s;
  }
  z.written += *written;
  if (Room(z) == 0) active_--;
  return s;
}

// Of plain files whole blocks count: that is what copying them takes.
uint64_t Zones::LiveIn(const Zone& z, const Extent& extent) const {
  if (z.use == ZoneUse::kLog) return extent.length;
  const uint64_t block = device_->block_bytes();
  const uint64_t end = (extent.device_offset + extent.length + block - 1) / block * block;
  return end - (extent.device_offset + block - 1) / block * block;
}

void Zones::AddLive(const Extent& extent) {
  std::lock_guard<std::mutex> lock(mu_);
  Zone& z = zones_[device_->ZoneOf(extent.device_offset)];
  z.live += LiveIn(z, extent);
  if (z.use == ZoneUse::kLog) logged_ += extent.length;
}

void Zones::SubtractLive(const Extent& extent) {
  std::lock_guard<std::mutex> lock(mu_);
  const uint32_t zone = device_->ZoneOf(extent.device_offset);
  Zone& z = zones_[zone];
  const uint64_t gone = std::min(z.live, LiveIn(z, extent));
  z.live -= gone;
  if (z.use == ZoneUse::kLog) logged_ -= gone;
  if (z.live == 0 && z.use == ZoneUse::kPlain) dying_.insert(zone);
}

IOStatus Zones::EndLog(uint32_t zone) {
  std::lock_guard<std::mutex> lock(mu_);
  // At once: what the drive still buffers of it need not go to flash.
  IOStatus s = device_->Reset(zone);
  Zone& z = zones_[zone];
  z.use = ZoneUse::kFree;
  z.is_empty = s.ok();
  logged_ -= z.live;
  z.live = 0;
  free_.push_back(zone);
  return s;
}

void Zones::Retire(uint32_t zone) {
  std::lock_guard<std::mutex> lock(mu_);
  Zone& z = zones_[zone];
  if (!IsActive(z) || !device_->Finish(zone).ok()) return;
  z.is_finished = true;
  active_--;
}

IOStatus Zones::Collect() {
  std::lock_guard<std::mutex> lock(mu_);
  std::set<uint32_t> zones;
  zones.swap(dying_);
  IOStatus result;
  for (uint32_t zone : zones) {
    Zone& z = zones_[zone];
    if (z.use != ZoneUse::kPlain || z.live > 0 || z.writers > 0 || z.written == 0) continue;
    IOStatus s = device_->Reset(zone);
    if (!s.ok()) {
      dying_.insert(zone);
      result = s;
      continue;
    }
    if (IsActive(z)) active_--;
    z.use = ZoneUse::kFree;
    z.is_empty = true;
    free_.push_back(zone);
  }
  return result;
}

std::vector<uint32_t> Zones::DeadLogs() {
  std::lock_guard<std::mutex> lock(mu_);
  std::vector<uint32_t> dead;
  for (uint32_t i = 0; i < zones_.size(); i++) {
    if (zones_[i].use == ZoneUse::kLog && zones_[i].live == 0 && zones_[i].writers == 0) dead.push_back(i);
  }
  return dead;
}

bool Zones::Victim(const std::set<uint32_t>& except, uint32_t* zone) {
  std::lock_guard<std::mutex> lock(mu_);
  uint64_t best = device_->zone_capacity() / 16;
  bool found = false;
  for (uint32_t i = 0; i < zones_.size(); i++) {
    const Zone& z = zones_[i];
    if ((z.use != ZoneUse::kLog && z.use != ZoneUse::kPlain) || z.writers > 0 || except.count(i) != 0) continue;
    const uint64_t taken = z.use == ZoneUse::kLog || z.is_finished ? device_->zone_capacity() : z.written;
    const uint64_t gain = taken - std::min(taken, z.live);
    if (gain > best) {
      best = gain;
      *zone = i;
      found = true;
    }
  }
  return found;
}

ZoneUse Zones::Use(uint32_t zone) {
  std::lock_guard<std::mutex> lock(mu_);
  return zones_[zone].use;
}

uint64_t Zones::FreeBytes() {
  std::lock_guard<std::mutex> lock(mu_);
  const size_t left = MustLeave(Urgency::kPlain);
  uint64_t bytes = free_.size() > left ? (free_.size() - left) * device_->zone_capacity() : 0;
  for (const Zone& z : zones_) {
    if (z.use == ZoneUse::kPlain) bytes += Room(z);
  }
  return bytes;
}

uint32_t Zones::FreeZones() {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<uint32_t>(free_.size());
}

bool Zones::HasFree() {
  std::lock_guard<std::mutex> lock(mu_);
  return free_.size() > MustLeave(Urgency::kPlain);
}

uint64_t Zones::LiveBytes(uint32_t zone) {
  std::lock_guard<std::mutex> lock(mu_);
  return zones_[zone].live;
}

}  // namespace leyden_fs
