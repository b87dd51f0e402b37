#include "device.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace leyden_fs {
namespace {

const char* Remedy(leyden_status status) {
  switch (status) {
    case LEYDEN_E_NOT_FOUND: return "make it: leyden image create, then leyden-fs mkfs";
    case LEYDEN_E_IN_USE: return "close the other program that has it open";
    case LEYDEN_E_FOREIGN: return "name an image made by this version of Leyden";
    case LEYDEN_E_DAMAGED:
    case LEYDEN_NVME_UNRECOVERED_READ: return "look with leyden image check; restore it from a copy";
    case LEYDEN_E_NO_SPACE: return "make room in the file system of the image";
    case LEYDEN_E_POWER_LOST:
    case LEYDEN_NVME_NOT_READY: return "return its power (leyden restore), and open the database again";
    case LEYDEN_E_STOPPED: return "close the database and open it again";
    case LEYDEN_E_GONE: return "serve its image again (leyden serve), and open the database again";
    case LEYDEN_E_NOT_ZONED: return "name an image of a zoned drive";
    case LEYDEN_NVME_WRITE_FAULT: return "delete something";
    default: return "see leyden image check";
  }
}

leyden_status OpenImage(const Options& options, leyden_open_report* report, leyden_drive** drive) {
  leyden_open_options how{};
  how.size = sizeof how;
  how.flags = options.control ? LEYDEN_OPEN_CONTROL : 0;
  how.speed = options.speed;
  how.record_path = options.record.empty() ? nullptr : options.record.c_str();
  return leyden_open(options.image.c_str(), &how, report, drive);
}

// The drive of another process. Two mounts of it would destroy each other's metadata: this one claims it.
leyden_status Connect(const Options& options, leyden_drive** drive) {
  leyden_connect_options how{};
  how.size = sizeof how;
  how.flags = LEYDEN_CONNECT_CLAIM;
  return leyden_connect(options.image.c_str(), &how, drive);
}

bool IsWithoutPower(leyden_status status) {
  return status == LEYDEN_E_POWER_LOST || status == LEYDEN_NVME_NOT_READY || status == LEYDEN_E_GONE;
}

}  // namespace

IOStatus Device::Explain(leyden_status status, const std::string& doing) const {
  if (status == LEYDEN_OK) return IOStatus::OK();
  if (dies_at_cut_ && IsWithoutPower(status)) {
    // Whoever has cut the power is told of it by a thread of this process: let it.
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    raise(SIGKILL);
  }
  const std::string what = image_ + ": " + doing + ": " + leyden_status_name(status);
  // Of a server that is not there, and of an NVMe namespace, the library has told the remedy.
  const bool is_namespace = image_.compare(0, 5, "/dev/") == 0;
  const bool is_told = is_namespace || (status == LEYDEN_E_NOT_FOUND && image_.compare(0, 5, "unix:") == 0);
  const std::string more = std::string(leyden_last_error()) + (is_told ? "" : std::string("; ") + Remedy(status));
  switch (status) {
    case LEYDEN_E_NOT_FOUND: return IOStatus::NotFound(what, more);
    case LEYDEN_E_IN_USE: return IOStatus::Busy(what, more);
    case LEYDEN_E_FOREIGN:
    case LEYDEN_E_CONFIG:
    case LEYDEN_E_NOT_ZONED: return IOStatus::InvalidArgument(what, more);
    case LEYDEN_E_DAMAGED:
    case LEYDEN_NVME_UNRECOVERED_READ: return IOStatus::Corruption(what, more);
    case LEYDEN_E_NO_SPACE:
    case LEYDEN_NVME_WRITE_FAULT: return IOStatus::NoSpace(what, more);
    default: return IOStatus::IOError(what, more);
  }
}

void Device::Begin() const {
  // Nobody else works meanwhile: everything waits for a reclaim.
  const Reclaim now = reclaims_;
  const Reclaim what = now == Reclaim::kNone ? after_.exchange(Reclaim::kNone) : now;
  if (what == Reclaim::kNone) return;
  std::atomic<uint64_t>& left = what == Reclaim::kLogs ? until_log_kill_ : until_plain_kill_;
  if (left == 0 || --left > 0) return;
  const char* name = what == Reclaim::kLogs ? "logs" : "plain files";
  const std::string told = image_ + ": killed in a reclaim of " + name + "\n";
  if (write(STDERR_FILENO, told.data(), told.size()) < 0) abort();
  raise(SIGKILL);
}

IOStatus Device::Open(const Options& options, std::unique_ptr<Device>* device) {
  if (leyden_abi_version() != LEYDEN_ABI_VERSION) {
    return IOStatus::NotSupported("libleyden.so has another interface version than this plugin",
                                  "build the plugin with the leyden.h of the library");
  }
  leyden_open_report report{};
  report.size = sizeof report;
  leyden_drive* drive = nullptr;
  const leyden_status status = options.is_served() ? Connect(options, &drive) : OpenImage(options, &report, &drive);
  std::unique_ptr<Device> opened(new Device(options.image, drive));
  IOStatus s = opened->Explain(status, "open");
  if (!s.ok()) return s;
  opened->dies_at_cut_ = options.die_at_cut;
  opened->until_plain_kill_ = options.kill_in_plain_reclaim;
  opened->until_log_kill_ = options.kill_in_log_reclaim;
  opened->was_killed_ = report.was_killed != 0;
  opened->identity_.size = sizeof opened->identity_;
  s = opened->Explain(leyden_identify(drive, &opened->identity_), "identify");
  if (s.ok() && opened->identity_.is_zoned == 0) s = opened->Explain(LEYDEN_E_NOT_ZONED, "open");
  if (s.ok()) s = opened->SetMode(options.mode);
  if (s.ok()) *device = std::move(opened);
  return s;
}

IOStatus Device::SetMode(Mode wanted) {
  Mode has = Mode::kNone;
  if (identity_.region == LEYDEN_REGION_SELECTIVE) has = Mode::kSelective;
  if (identity_.region == LEYDEN_REGION_FULL) has = Mode::kFull;
  if (wanted != Mode::kAuto && wanted != Mode::kNone && wanted != has) {
    return IOStatus::InvalidArgument(
        image_ + ": mode " + ModeName(wanted) + " on a drive of region " + ModeName(has),
        std::string("say mode:auto, or make a drive with --set device.buffer.region=") + ModeName(wanted));
  }
  mode_ = wanted == Mode::kAuto ? has : wanted;
  return IOStatus::OK();
}

Device::~Device() { Close().PermitUncheckedError(); }

IOStatus Device::Close() {
  if (drive_ == nullptr) return IOStatus::OK();
  leyden_drive* drive = drive_;
  drive_ = nullptr;
  return Explain(leyden_close(drive), "close");
}

// Two zones of metadata while one takes over from the other, and one each for logs and small files.
bool Device::has_areas() const {
  return mode_ != Mode::kNone && identity_.zrwa_max >= 4 && identity_.zrwa_size_bytes >= block_bytes();
}

uint32_t Device::active_max() const {
  uint32_t most = identity_.zone_count;
  if (identity_.active_max != 0) most = std::min(most, identity_.active_max);
  if (identity_.open_max != 0) most = std::min(most, identity_.open_max);
  return most;
}

IOStatus Device::Read(uint64_t offset, size_t n, char* buffer) const {
  const uint64_t block = block_bytes();
  static thread_local std::string scratch;
  const uint64_t most = std::max(block, identity_.transfer_max_bytes / block * block);
  while (n > 0) {
    const uint64_t skip = offset % block;
    const uint64_t span = std::min(most, (skip + n + block - 1) / block * block);
    const uint64_t got = std::min<uint64_t>(span - skip, n);
    Begin();
    const bool whole = skip == 0 && got == span;
    if (!whole && scratch.size() < span) scratch.resize(span);
    char* into = whole ? buffer : scratch.data();
    IOStatus s = Explain(leyden_read(drive_, offset - skip, into, span), "read");
    if (!s.ok()) return s;
    if (!whole) memcpy(buffer, into + skip, got);
    offset += got;
    buffer += got;
    n -= got;
  }
  return IOStatus::OK();
}

IOStatus Device::Write(uint64_t offset, const char* data, size_t n, Durability durability) {
  uint32_t flags = 0;
  if (durability == Durability::kAcknowledged && mode_ == Mode::kSelective) flags = LEYDEN_PLP;
  if (durability == Durability::kAcknowledged && mode_ == Mode::kNone) flags = LEYDEN_FUA;
  const uint64_t block = block_bytes();
  const size_t most = std::max(block, std::min<uint64_t>(identity_.transfer_max_bytes, 1U << 20) / block * block);
  while (n > 0) {
    const size_t part = std::min(n, most);
    Begin();
    IOStatus s = Explain(leyden_write(drive_, offset, data, part, flags), "write");
    if (!s.ok()) return s;
    offset += part;
    data += part;
    n -= part;
  }
  return IOStatus::OK();
}

IOStatus Device::Flush() {
  Begin();
  return Explain(leyden_flush(drive_), "flush");
}

IOStatus Device::Report(std::vector<leyden_zone>* zones) const {
  zones->resize(identity_.zone_count);
  uint32_t first = 0;
  while (first < identity_.zone_count) {
    uint32_t described = 0;
    IOStatus s = Explain(leyden_zone_report(drive_, first, identity_.zone_count - first, zones->data() + first,
                                             sizeof(leyden_zone), &described),
                          "report zones");
    if (!s.ok()) return s;
    if (described == 0) return Damaged("the zone report ends early");
    first += described;
  }
  return IOStatus::OK();
}

IOStatus Device::Describe(uint32_t zone, leyden_zone* description) const {
  uint32_t described = 0;
  return Explain(leyden_zone_report(drive_, zone, 1, description, sizeof *description, &described),
                 "report zone " + std::to_string(zone));
}

IOStatus Device::Reset(uint32_t zone) {
  Begin();
  return Explain(leyden_zone_reset(drive_, zone), "reset zone " + std::to_string(zone));
}
IOStatus Device::Finish(uint32_t zone) {
  Begin();
  return Explain(leyden_zone_finish(drive_, zone), "finish zone " + std::to_string(zone));
}
IOStatus Device::OpenArea(uint32_t zone) {
  Begin();
  return Explain(leyden_zone_open(drive_, zone, LEYDEN_ZONE_ZRWA), "open zone " + std::to_string(zone));
}
IOStatus Device::CommitArea(uint64_t end) {
  Begin();
  return Explain(leyden_zrwa_commit(drive_, end), "commit");
}

IOStatus Device::Damaged(const std::string& what) const {
  return IOStatus::Corruption(image_ + ": " + what, "look with leyden-fs check; restore the image from a copy");
}
IOStatus Device::Full(const std::string& what) const {
  return IOStatus::NoSpace(image_ + ": " + what, "delete files, or make a larger drive");
}

}  // namespace leyden_fs
