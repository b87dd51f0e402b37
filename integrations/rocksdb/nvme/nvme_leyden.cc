// The functions of leyden.h that the file system uses, on a zoned NVMe namespace of any host: by passthrough commands, so that
// a write takes Selective-PLP's bit along (section 4.2: command dword 3, bit 0). It takes the place of libleyden.so.
//
// A namespace does not say what its capacitors protect: one with a volatile write cache is taken for a selective one. Of a
// drive that protects nothing say mode:none.

#include <errno.h>
#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "leyden.h"

namespace {

constexpr uint8_t kFlush = 0x00, kWrite = 0x01, kRead = 0x02, kIdentify = 0x06, kZoneSend = 0x79, kZoneReceive = 0x7a;
constexpr uint32_t kZns = 2;
constexpr size_t kPage = 4096, kDescriptor = 64;
// Linux's driver takes 128 pieces of memory for a command, and a program's pages may be a piece each.
constexpr uint64_t kTransferMost = 64 * kPage;
constexpr uint32_t kFinish = 0x02, kOpen = 0x03, kReset = 0x04, kFlushArea = 0x11;
constexpr uint32_t kWithArea = 1U << 9, kPartial = 1U << 16, kFua = 1U << 30;

thread_local std::string last_error;

leyden_status Fail(leyden_status status, const std::string& what) {
  last_error = what;
  return status;
}

template <typename T>
T At(const std::vector<uint8_t>& page, size_t offset) {
  T value;
  memcpy(&value, &page[offset], sizeof value);  // NVMe's numbers are little-endian, as Linux on PCs is
  return value;
}

leyden_status Ended(int result, const char* what) {
  if (result == 0) return LEYDEN_OK;
  if (result > 0) return Fail(result & 0x7ff, std::string(what) + ": the drive says so");
  const bool is_gone = errno == ENODEV || errno == ENXIO || errno == ESHUTDOWN;
  return Fail(is_gone ? LEYDEN_E_GONE : LEYDEN_E_IO, std::string(what) + ": " + strerror(errno));
}

}  // namespace

struct leyden_drive {
  int file = -1;
  uint32_t namespace_id = 0;
  leyden_identity identity{};

  // A command of the namespace, at a block, with so many bytes of data.
  nvme_passthru_cmd Command(uint8_t opcode, uint64_t offset, void* data, size_t bytes) const {
    nvme_passthru_cmd command{};
    const uint64_t block = offset / identity.block_bytes;
    command.opcode = opcode;
    command.nsid = namespace_id;
    command.addr = reinterpret_cast<uint64_t>(data);
    command.data_len = static_cast<uint32_t>(bytes);
    command.cdw10 = static_cast<uint32_t>(block);
    command.cdw11 = static_cast<uint32_t>(block >> 32);
    return command;
  }

  leyden_status Do(nvme_passthru_cmd command, const char* what) const {
    return Ended(ioctl(file, NVME_IOCTL_IO_CMD, &command), what);
  }

  leyden_status Zone(uint32_t zone, uint32_t action, const char* what) const {
    nvme_passthru_cmd command = Command(kZoneSend, zone * identity.zone_size_bytes, nullptr, 0);
    command.cdw13 = action;
    return Do(command, what);
  }

  leyden_status Identify(uint32_t structure, bool of_namespace, uint32_t set, std::vector<uint8_t>* page) const {
    page->assign(kPage, 0);
    nvme_admin_cmd command{};
    command.opcode = kIdentify;
    command.nsid = of_namespace ? namespace_id : 0;
    command.addr = reinterpret_cast<uint64_t>(page->data());
    command.data_len = kPage;
    command.cdw10 = structure;
    command.cdw11 = set << 24;
    return Ended(ioctl(file, NVME_IOCTL_ADMIN_CMD, &command), "identify");
  }

  leyden_status Learn();
};

// NVM Command Set 1.0 (figure 97), Base 2.0 (figure 275), ZNS 1.1 (figures 48 and 49), TP4076.
leyden_status leyden_drive::Learn() {
  std::vector<uint8_t> plain, zoned, controller, of_zones;
  leyden_status status = Identify(0x00, true, 0, &plain);
  if (status == LEYDEN_OK) status = Identify(0x01, false, 0, &controller);
  if (status != LEYDEN_OK) return status;
  // Of any other namespace this structure is an error. The file system asks whether it is zoned, and tells this.
  if (Identify(0x05, true, kZns, &zoned) != LEYDEN_OK) {
    last_error = "it is not zoned: name a zoned namespace";
    return LEYDEN_OK;
  }
  status = Identify(0x06, false, kZns, &of_zones);
  if (status != LEYDEN_OK) return status;
  const size_t format = plain[26] & 0xf;
  const uint64_t block = 1ULL << plain[128 + format * 4 + 2];
  const uint64_t most = controller[77] == 0 ? kTransferMost : std::min<uint64_t>(kPage << controller[77], kTransferMost);
  const auto limit = [&](size_t offset) { return At<uint32_t>(zoned, offset) + 1; };  // all ones: none
  identity.is_zoned = 1;
  identity.block_bytes = identity.unit_bytes = static_cast<uint32_t>(block);
  identity.capacity_bytes = At<uint64_t>(plain, 0) * block;
  identity.transfer_max_bytes = most;
  identity.region = (controller[525] & 1) != 0 ? LEYDEN_REGION_SELECTIVE : LEYDEN_REGION_FULL;
  identity.zone_size_bytes = At<uint64_t>(zoned, 2816 + format * 16) * block;
  identity.zone_count = static_cast<uint32_t>(identity.capacity_bytes / identity.zone_size_bytes);
  identity.active_max = limit(4);
  identity.open_max = limit(8);
  identity.append_max_bytes = of_zones[0] == 0 ? most : std::min<uint64_t>(kPage << of_zones[0], most);
  if ((At<uint16_t>(zoned, 2) & 2) != 0) {
    identity.zrwa_max = At<uint32_t>(zoned, 44);
    identity.zrwa_granularity_bytes = At<uint16_t>(zoned, 48) * block;
    identity.zrwa_size_bytes = At<uint16_t>(zoned, 50) * block;
  }
  identity.reads_across_zones = At<uint16_t>(zoned, 2) & 1;
  leyden_zone first{};
  uint32_t described = 0;
  status = leyden_zone_report(this, 0, 1, &first, sizeof first, &described);
  identity.zone_capacity_bytes = first.capacity_bytes;
  return status;
}

extern "C" {

uint32_t leyden_abi_version(void) { return LEYDEN_ABI_VERSION; }
const char* leyden_last_error(void) { return last_error.c_str(); }

const char* leyden_status_name(leyden_status status) {
  switch (status) {
    case LEYDEN_OK: return "Success";
    case LEYDEN_NVME_INVALID_FIELD: return "Invalid Field in Command";
    case LEYDEN_NVME_NOT_READY: return "Namespace Not Ready";
    case LEYDEN_NVME_ZONE_INVALID_WRITE: return "Zone Invalid Write";
    case LEYDEN_NVME_TOO_MANY_ACTIVE: return "Too Many Active Zones";
    case LEYDEN_NVME_TOO_MANY_OPEN: return "Too Many Open Zones";
    default: return status > 0 ? "NVMe status" : "Failure";
  }
}

leyden_status leyden_connect(const char*, const leyden_connect_options*, leyden_drive** drive) {
  *drive = nullptr;
  return Fail(LEYDEN_E_NOT_FOUND, "it is no NVMe namespace: name one, as /dev/ng0n1");
}

leyden_status leyden_open(const char* path, const leyden_open_options* how, leyden_open_report* report,
                          leyden_drive** drive) {
  *drive = nullptr;
  if (how != nullptr && (how->flags != 0 || how->record_path != nullptr)) {
    return Fail(LEYDEN_E_ARGUMENT, "control and record are options of leyden serve: leave them out");
  }
  leyden_drive opened;
  opened.file = open(path, O_RDWR | O_CLOEXEC);
  if (opened.file < 0) {
    const leyden_status status = errno == ENOENT ? LEYDEN_E_NOT_FOUND : LEYDEN_E_IO;
    return Fail(status, std::string(strerror(errno)) + ": `nvme list` has the namespaces");
  }
  const int id = ioctl(opened.file, NVME_IOCTL_ID);
  opened.namespace_id = id > 0 ? static_cast<uint32_t>(id) : 0;
  const leyden_status status =
      id > 0 ? opened.Learn() : Fail(LEYDEN_E_FOREIGN, "it is no NVMe namespace: name one, as /dev/ng0n1");
  if (status != LEYDEN_OK) {
    close(opened.file);
    return status;
  }
  if (report != nullptr) report->was_killed = 0;
  *drive = new leyden_drive(opened);
  return LEYDEN_OK;
}

leyden_status leyden_close(leyden_drive* drive) {
  if (drive == nullptr) return LEYDEN_OK;
  const leyden_status status = leyden_flush(drive);
  close(drive->file);
  delete drive;
  return status;
}

leyden_status leyden_identify(leyden_drive* drive, leyden_identity* identity) {
  const uint32_t size = std::min<uint32_t>(identity->size, sizeof *identity);
  memcpy(reinterpret_cast<char*>(identity) + sizeof size, reinterpret_cast<char*>(&drive->identity) + sizeof size,
         size - sizeof size);
  return LEYDEN_OK;
}

leyden_status leyden_read(leyden_drive* drive, uint64_t offset, void* buffer, size_t length) {
  nvme_passthru_cmd command = drive->Command(kRead, offset, buffer, length);
  command.cdw12 = static_cast<uint32_t>(length / drive->identity.block_bytes - 1);
  return drive->Do(command, "read");
}

leyden_status leyden_write(leyden_drive* drive, uint64_t offset, const void* buffer, size_t length, uint32_t flags) {
  nvme_passthru_cmd command = drive->Command(kWrite, offset, const_cast<void*>(buffer), length);
  command.cdw3 = (flags & LEYDEN_PLP) != 0 ? 1 : 0;
  command.cdw12 = static_cast<uint32_t>(length / drive->identity.block_bytes - 1);
  if ((flags & LEYDEN_FUA) != 0) command.cdw12 |= kFua;
  return drive->Do(command, "write");
}

leyden_status leyden_flush(leyden_drive* drive) { return drive->Do(drive->Command(kFlush, 0, nullptr, 0), "flush"); }

leyden_status leyden_zone_report(leyden_drive* drive, uint32_t first, uint32_t count, leyden_zone* zones, size_t stride,
                                 uint32_t* described) {
  *described = 0;
  const uint64_t block = drive->identity.block_bytes, zone_bytes = drive->identity.zone_size_bytes;
  const uint64_t room = drive->identity.transfer_max_bytes / kDescriptor - 1;
  std::vector<uint8_t> page((std::min<uint64_t>(count, room) + 1) * kDescriptor);
  nvme_passthru_cmd command = drive->Command(kZoneReceive, first * zone_bytes, page.data(), page.size());
  command.cdw12 = static_cast<uint32_t>(page.size() / 4 - 1);
  command.cdw13 = kPartial;
  const leyden_status status = drive->Do(command, "report zones");
  if (status != LEYDEN_OK) return status;
  *described = static_cast<uint32_t>(std::min<uint64_t>(At<uint64_t>(page, 0), page.size() / kDescriptor - 1));
  for (uint32_t i = 0; i < *described; i++) {
    const size_t at = (i + 1) * kDescriptor;
    leyden_zone zone{};
    zone.zone = first + i;
    zone.state = page[at + 1] >> 4;
    zone.attributes = (page[at + 2] & 8) != 0 ? LEYDEN_ZONE_HAS_ZRWA : 0;
    zone.capacity_bytes = At<uint64_t>(page, at + 8) * block;
    zone.start_bytes = At<uint64_t>(page, at + 16) * block;
    const uint64_t pointer = At<uint64_t>(page, at + 24);
    const bool has_pointer = zone.state >= LEYDEN_ZONE_EMPTY && zone.state <= LEYDEN_ZONE_CLOSED;
    zone.write_pointer_bytes = has_pointer ? pointer * block : LEYDEN_NO_OFFSET;
    // How much of a full zone was written nobody says: the rest reads as zeroes.
    zone.held_bytes = has_pointer ? zone.write_pointer_bytes - zone.start_bytes : zone.capacity_bytes;
    if ((zone.attributes & LEYDEN_ZONE_HAS_ZRWA) != 0 && has_pointer) {
      const uint64_t area = zone.held_bytes + drive->identity.zrwa_size_bytes;
      zone.held_bytes = std::min(area, zone.capacity_bytes);
    }
    memcpy(reinterpret_cast<char*>(zones) + i * stride, &zone, std::min(stride, sizeof zone));
  }
  return LEYDEN_OK;
}

leyden_status leyden_zone_open(leyden_drive* drive, uint32_t zone, uint32_t flags) {
  return drive->Zone(zone, kOpen | ((flags & LEYDEN_ZONE_ZRWA) != 0 ? kWithArea : 0), "open a zone");
}

leyden_status leyden_zone_finish(leyden_drive* drive, uint32_t zone) {
  return drive->Zone(zone, kFinish, "finish a zone");
}

leyden_status leyden_zone_reset(leyden_drive* drive, uint32_t zone) { return drive->Zone(zone, kReset, "reset a zone"); }

leyden_status leyden_zrwa_commit(leyden_drive* drive, uint64_t end) {
  nvme_passthru_cmd command = drive->Command(kZoneSend, end - drive->identity.block_bytes, nullptr, 0);
  command.cdw13 = kFlushArea;
  return drive->Do(command, "commit an area");
}

}  // extern "C"
