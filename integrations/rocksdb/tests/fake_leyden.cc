#include "fake_leyden.h"

#include <leyden.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

namespace {

constexpr uint64_t kBlock = 4096;

struct FakeZone {
  uint32_t state = LEYDEN_ZONE_EMPTY;
  bool has_area = false;
  uint64_t pointer = 0;  // within the zone
  uint64_t held = 0;
  uint64_t durable = 0;  // a prefix
};

}  // namespace

struct leyden_drive {
  std::mutex mu;
  fake::Shape shape;
  std::vector<FakeZone> zones;
  std::string bytes;
  bool is_open = false;
  bool is_on = true;
  uint64_t cut_in = 0;
  std::mt19937_64 random;
  uint64_t commands = 0;
  uint64_t flushes = 0;
  int32_t open_status = 0;

  uint32_t Active() const {
    return static_cast<uint32_t>(std::count_if(zones.begin(), zones.end(), [](const FakeZone& z) {
      return z.state != LEYDEN_ZONE_EMPTY && z.state != LEYDEN_ZONE_FULL;
    }));
  }
  uint32_t Areas() const {
    return static_cast<uint32_t>(
        std::count_if(zones.begin(), zones.end(), [](const FakeZone& z) { return z.has_area; }));
  }
  // Takes away what was not promised: all of it, or a random part.
  void Lose() {
    is_on = false;
    for (size_t i = 0; i < zones.size(); i++) {
      FakeZone& z = zones[i];
      if (z.has_area || z.held <= z.durable) continue;
      const uint64_t blocks = (z.held - z.durable) / kBlock;
      const uint64_t kept = random() % 2 == 0 ? 0 : random() % (blocks + 1);
      z.held = z.durable + kept * kBlock;
      if (z.state != LEYDEN_ZONE_FULL) z.pointer = z.held;
      const uint64_t start = i * shape.zone_bytes;
      std::fill(bytes.begin() + static_cast<ptrdiff_t>(start + z.held),
                bytes.begin() + static_cast<ptrdiff_t>(start + shape.zone_bytes), '\0');
    }
  }
  // Counts a command; true if the power fails in its midst.
  bool Fails() {
    commands++;
    return cut_in > 0 && --cut_in == 0;
  }
};

namespace {

thread_local std::string last_error;

std::map<std::string, std::unique_ptr<leyden_drive>>& Drives() {
  static std::map<std::string, std::unique_ptr<leyden_drive>> drives;
  return drives;
}

leyden_status Fail(leyden_status status, const std::string& why) {
  last_error = why;
  return status;
}

void Activate(leyden_drive* d, FakeZone* z) {
  (void)d;
  if (z->state == LEYDEN_ZONE_EMPTY || z->state == LEYDEN_ZONE_CLOSED) z->state = LEYDEN_ZONE_IMPLICITLY_OPEN;
}

void MoveArea(leyden_drive* d, FakeZone* z, uint64_t to) {
  z->pointer = std::max(z->pointer, to);
  z->held = z->durable = std::max(z->held, z->pointer);
  if (z->pointer == d->shape.zone_bytes) {
    z->state = LEYDEN_ZONE_FULL;
    z->has_area = false;
  }
}

leyden_status WriteArea(leyden_drive* d, FakeZone* z, uint64_t offset, const char* data, uint64_t n, bool fails) {
  const uint64_t at = offset % d->shape.zone_bytes;
  if (at < z->pointer || at + n > z->pointer + 2 * d->shape.area_bytes) {
    return Fail(LEYDEN_NVME_ZONE_INVALID_WRITE, "outside the area");
  }
  const uint64_t part = fails ? d->random() % (n / kBlock + 1) * kBlock : n;
  memcpy(&d->bytes[offset], data, part);
  if (part > 0 && at + part > z->pointer + d->shape.area_bytes) MoveArea(d, z, at + part - d->shape.area_bytes);
  return LEYDEN_OK;
}

}  // namespace

namespace fake {

void Make(const std::string& path, const Shape& shape) {
  auto d = std::make_unique<leyden_drive>();
  d->shape = shape;
  d->zones.resize(shape.zones);
  d->bytes.resize(shape.zones * shape.zone_bytes);
  Drives()[path] = std::move(d);
}
void CutAfter(const std::string& path, uint64_t n, uint64_t seed) {
  Drives()[path]->cut_in = n;
  Drives()[path]->random.seed(seed);
}
void Cut(const std::string& path, uint64_t seed) {
  Drives()[path]->random.seed(seed);
  Drives()[path]->Lose();
}
bool IsOn(const std::string& path) { return Drives()[path]->is_on; }
void Restore(const std::string& path) {
  leyden_drive& d = *Drives()[path];
  if (d.is_on) d.Lose();
  d.is_on = true;
  d.cut_in = 0;
  for (FakeZone& z : d.zones) z.durable = z.held;
  for (FakeZone& z : d.zones) {
    if (z.state == LEYDEN_ZONE_IMPLICITLY_OPEN || z.state == LEYDEN_ZONE_EXPLICITLY_OPEN) {
      z.state = z.pointer == 0 && !z.has_area ? LEYDEN_ZONE_EMPTY : LEYDEN_ZONE_CLOSED;
    }
  }
}
uint64_t Commands(const std::string& path) { return Drives()[path]->commands; }
uint64_t Flushes(const std::string& path) { return Drives()[path]->flushes; }
void FailOpen(const std::string& path, int32_t status) { Drives()[path]->open_status = status; }
char& Byte(const std::string& path, uint64_t offset) { return Drives()[path]->bytes[offset]; }

}  // namespace fake

extern "C" {

uint32_t leyden_abi_version(void) { return LEYDEN_ABI_VERSION; }
const char* leyden_status_name(leyden_status status) { return status == LEYDEN_OK ? "Success" : "Failure"; }
const char* leyden_last_error(void) { return last_error.c_str(); }

leyden_status leyden_connect(const char*, const leyden_connect_options*, leyden_drive** drive) {
  *drive = nullptr;
  return LEYDEN_E_NOT_FOUND;
}

leyden_status leyden_open(const char* path, const leyden_open_options*, leyden_open_report* report,
                          leyden_drive** drive) {
  *drive = nullptr;
  auto found = Drives().find(path);
  if (found == Drives().end()) return Fail(LEYDEN_E_NOT_FOUND, "no such drive");
  leyden_drive* d = found->second.get();
  if (d->open_status != 0) return Fail(d->open_status, "as the test wants it");
  if (d->is_open) return Fail(LEYDEN_E_IN_USE, "open already");
  d->is_open = true;
  report->was_killed = 0;
  *drive = d;
  return LEYDEN_OK;
}

leyden_status leyden_close(leyden_drive* d) {
  if (d == nullptr) return LEYDEN_OK;
  d->is_open = false;
  if (!d->is_on) return LEYDEN_OK;
  for (FakeZone& z : d->zones) z.durable = z.held;
  return LEYDEN_OK;
}

leyden_status leyden_identify(leyden_drive* d, leyden_identity* id) {
  const uint32_t size = id->size;
  *id = leyden_identity{};
  id->size = size;
  id->is_zoned = d->shape.is_zoned ? 1 : 0;
  id->block_bytes = id->unit_bytes = kBlock;
  id->capacity_bytes = d->bytes.size();
  id->transfer_max_bytes = 1 << 20;
  id->region = d->shape.region;
  id->zone_count = d->shape.zones;
  id->zone_size_bytes = id->zone_capacity_bytes = d->shape.zone_bytes;
  id->open_max = id->active_max = d->shape.active_max;
  id->zrwa_size_bytes = d->shape.areas > 0 ? d->shape.area_bytes : 0;
  id->zrwa_granularity_bytes = kBlock;
  id->zrwa_max = d->shape.areas;
  return LEYDEN_OK;
}

leyden_status leyden_read(leyden_drive* d, uint64_t offset, void* buffer, size_t n) {
  if (d == nullptr) return LEYDEN_E_ARGUMENT;
  std::lock_guard<std::mutex> lock(d->mu);
  if (!d->is_on) return LEYDEN_NVME_NOT_READY;
  if (offset % kBlock != 0 || n % kBlock != 0) return Fail(LEYDEN_NVME_INVALID_FIELD, "not whole blocks");
  if (offset + n > d->bytes.size()) return Fail(LEYDEN_NVME_LBA_OUT_OF_RANGE, "beyond the drive");
  if (offset / d->shape.zone_bytes != (offset + n - 1) / d->shape.zone_bytes) {
    return Fail(LEYDEN_NVME_ZONE_BOUNDARY, "across zones");
  }
  memcpy(buffer, &d->bytes[offset], n);
  return LEYDEN_OK;
}

leyden_status leyden_write(leyden_drive* d, uint64_t offset, const void* buffer, size_t n, uint32_t flags) {
  if (d == nullptr) return LEYDEN_E_ARGUMENT;
  std::lock_guard<std::mutex> lock(d->mu);
  if (!d->is_on) return LEYDEN_NVME_NOT_READY;
  if (offset % kBlock != 0 || n % kBlock != 0 || n == 0) return Fail(LEYDEN_NVME_INVALID_FIELD, "not whole blocks");
  if ((flags & LEYDEN_PLP) != 0 && d->shape.region == LEYDEN_REGION_NONE) {
    return Fail(LEYDEN_NVME_INVALID_FIELD, "nothing is protected");
  }
  const uint64_t at = offset % d->shape.zone_bytes;
  FakeZone& z = d->zones[offset / d->shape.zone_bytes];
  if (at + n > d->shape.zone_bytes) return Fail(LEYDEN_NVME_ZONE_BOUNDARY, "beyond the zone");
  if (z.state == LEYDEN_ZONE_FULL) return Fail(LEYDEN_NVME_ZONE_FULL, "full");
  if (z.state == LEYDEN_ZONE_EMPTY && d->Active() >= d->shape.active_max) {
    return Fail(LEYDEN_NVME_TOO_MANY_ACTIVE, "too many active zones");
  }
  const bool fails = d->Fails();
  leyden_status s = LEYDEN_OK;
  if (z.has_area) {
    s = WriteArea(d, &z, offset, static_cast<const char*>(buffer), n, fails);
  } else if (at != z.pointer) {
    s = Fail(LEYDEN_NVME_ZONE_INVALID_WRITE, "not at the write pointer");
  } else {
    Activate(d, &z);
    const uint64_t part = fails ? d->random() % (n / kBlock + 1) * kBlock : n;
    memcpy(&d->bytes[offset], buffer, part);
    z.pointer += part;
    z.held = z.pointer;
    const bool protects = d->shape.region == LEYDEN_REGION_FULL || (flags & (LEYDEN_PLP | LEYDEN_FUA)) != 0;
    if (protects && !fails) z.durable = z.held;
    if (z.pointer == d->shape.zone_bytes) z.state = LEYDEN_ZONE_FULL;
  }
  if (s == LEYDEN_OK && fails) {
    d->Lose();
    s = Fail(LEYDEN_E_POWER_LOST, "the power failed");
  }
  return s;
}

leyden_status leyden_flush(leyden_drive* d) {
  if (d == nullptr) return LEYDEN_E_ARGUMENT;
  std::lock_guard<std::mutex> lock(d->mu);
  if (!d->is_on) return LEYDEN_NVME_NOT_READY;
  d->flushes++;
  if (d->Fails()) {
    d->Lose();
    return Fail(LEYDEN_E_POWER_LOST, "the power failed");
  }
  for (FakeZone& z : d->zones) z.durable = z.held;
  return LEYDEN_OK;
}

leyden_status leyden_zone_report(leyden_drive* d, uint32_t first, uint32_t count, leyden_zone* zones, size_t stride,
                                 uint32_t* described) {
  if (d == nullptr) return LEYDEN_E_ARGUMENT;
  std::lock_guard<std::mutex> lock(d->mu);
  if (!d->is_on) return LEYDEN_NVME_NOT_READY;
  *described = std::min<uint32_t>(count, d->shape.zones - first);
  for (uint32_t i = 0; i < *described; i++) {
    const FakeZone& z = d->zones[first + i];
    auto* out = reinterpret_cast<leyden_zone*>(reinterpret_cast<char*>(zones) + i * stride);
    *out = leyden_zone{};
    out->zone = first + i;
    out->state = z.state;
    out->attributes = z.has_area ? LEYDEN_ZONE_HAS_ZRWA : 0;
    out->start_bytes = (first + i) * d->shape.zone_bytes;
    out->capacity_bytes = d->shape.zone_bytes;
    out->write_pointer_bytes = z.state == LEYDEN_ZONE_FULL ? LEYDEN_NO_OFFSET : out->start_bytes + z.pointer;
    out->held_bytes = z.held;
  }
  return LEYDEN_OK;
}

leyden_status leyden_zone_open(leyden_drive* d, uint32_t zone, uint32_t flags) {
  std::lock_guard<std::mutex> lock(d->mu);
  if (!d->is_on) return LEYDEN_NVME_NOT_READY;
  FakeZone& z = d->zones[zone];
  if ((flags & LEYDEN_ZONE_ZRWA) != 0) {
    if (z.state != LEYDEN_ZONE_EMPTY) return Fail(LEYDEN_NVME_ZONE_INVALID_TRANSITION, "not empty");
    if (d->Areas() >= d->shape.areas) return Fail(LEYDEN_NVME_ZRWA_UNAVAILABLE, "no area left");
  }
  if (z.state == LEYDEN_ZONE_EMPTY && d->Active() >= d->shape.active_max) {
    return Fail(LEYDEN_NVME_TOO_MANY_ACTIVE, "too many active zones");
  }
  if (d->Fails()) {
    d->Lose();
    return Fail(LEYDEN_E_POWER_LOST, "the power failed");
  }
  z.state = LEYDEN_ZONE_EXPLICITLY_OPEN;
  z.has_area = (flags & LEYDEN_ZONE_ZRWA) != 0;
  return LEYDEN_OK;
}

leyden_status leyden_zone_finish(leyden_drive* d, uint32_t zone) {
  std::lock_guard<std::mutex> lock(d->mu);
  if (!d->is_on) return LEYDEN_NVME_NOT_READY;
  FakeZone& z = d->zones[zone];
  if (d->Fails()) {
    d->Lose();
    return Fail(LEYDEN_E_POWER_LOST, "the power failed");
  }
  if (z.has_area) {
    const auto start = static_cast<ptrdiff_t>(zone * d->shape.zone_bytes);
    std::fill(d->bytes.begin() + start + static_cast<ptrdiff_t>(z.pointer),
              d->bytes.begin() + start + static_cast<ptrdiff_t>(d->shape.zone_bytes), '\0');
  }
  z.has_area = false;
  z.state = LEYDEN_ZONE_FULL;
  return LEYDEN_OK;
}

leyden_status leyden_zone_reset(leyden_drive* d, uint32_t zone) {
  std::lock_guard<std::mutex> lock(d->mu);
  if (!d->is_on) return LEYDEN_NVME_NOT_READY;
  const bool fails = d->Fails();
  // A reset may or may not have happened when the power fails.
  if (!fails || d->random() % 2 == 0) {
    d->zones[zone] = FakeZone{};
    const auto start = static_cast<ptrdiff_t>(zone * d->shape.zone_bytes);
    std::fill(d->bytes.begin() + start, d->bytes.begin() + start + static_cast<ptrdiff_t>(d->shape.zone_bytes), '\0');
  }
  if (!fails) return LEYDEN_OK;
  d->Lose();
  return Fail(LEYDEN_E_POWER_LOST, "the power failed");
}

leyden_status leyden_zrwa_commit(leyden_drive* d, uint64_t end) {
  std::lock_guard<std::mutex> lock(d->mu);
  if (!d->is_on) return LEYDEN_NVME_NOT_READY;
  const uint32_t zone = static_cast<uint32_t>((end - 1) / d->shape.zone_bytes);
  FakeZone& z = d->zones[zone];
  const uint64_t to = end - zone * d->shape.zone_bytes;
  if (!z.has_area || to < z.pointer || to > z.pointer + d->shape.area_bytes || end % kBlock != 0) {
    return Fail(LEYDEN_NVME_ZONE_INVALID_OPERATION, "not in the area");
  }
  const bool fails = d->Fails();
  if (!fails || d->random() % 2 == 0) MoveArea(d, &z, to);
  if (!fails) return LEYDEN_OK;
  d->Lose();
  return Fail(LEYDEN_E_POWER_LOST, "the power failed");
}

}  // extern "C"
