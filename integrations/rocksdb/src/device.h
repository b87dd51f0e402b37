// The drive: leyden.h with RAII, statuses that name the image and a remedy, and how durable a write is.
//
// It knows nothing of files. Whoever writes says whether the data must survive a power cut from its
// acknowledgement on; which flag that takes follows from what the drive protects.

#pragma once

#include <leyden.h>

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "options.h"

namespace leyden_fs {

enum class Durability {
  kVolatile,      // until the next Flush
  kAcknowledged,  // survives a power cut when the write has returned
};

// What a reclaim copies.
enum class Reclaim { kNone, kPlain, kLogs };

class Device {
 public:
  // Opens the image. Fails if it is not zoned, or does not protect what `options.mode` relies on.
  static IOStatus Open(const Options& options, std::unique_ptr<Device>* device);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const std::string& image() const { return image_; }
  const leyden_identity& identity() const { return identity_; }
  uint64_t block_bytes() const { return identity_.block_bytes; }
  uint64_t zone_capacity() const { return identity_.zone_capacity_bytes; }
  uint64_t ZoneStart(uint32_t zone) const { return zone * identity_.zone_size_bytes; }
  uint32_t ZoneOf(uint64_t offset) const { return static_cast<uint32_t>(offset / identity_.zone_size_bytes); }
  // kNone, kSelective or kFull.
  Mode mode() const { return mode_; }
  bool was_killed() const { return was_killed_; }
  // Whether logs can be written in Zone Random Write Areas: enough of them, and protected.
  bool has_areas() const;
  // Zones that can be active at once, and be written without closing others.
  uint32_t active_max() const;

  // Reads any bytes within one zone.
  IOStatus Read(uint64_t offset, size_t n, char* buffer) const;
  // Writes whole blocks.
  IOStatus Write(uint64_t offset, const char* data, size_t n, Durability durability);
  IOStatus Flush();
  IOStatus Report(std::vector<leyden_zone>* zones) const;
  IOStatus Describe(uint32_t zone, leyden_zone* description) const;
  IOStatus Reset(uint32_t zone);
  IOStatus Finish(uint32_t zone);
  IOStatus OpenArea(uint32_t zone);
  IOStatus CommitArea(uint64_t end);
  // Brings the drive to rest. Every call after it fails.
  IOStatus Close();

  // A reclaim of that begins; or it has ended. The first command after its end counts as one of its own: a reset that came too
  // early shows only there.
  void Reclaims(Reclaim what) { after_ = reclaims_.exchange(what); }

  // A status about damage of this image.
  IOStatus Damaged(const std::string& what) const;
  IOStatus Full(const std::string& what) const;

 private:
  Device(std::string image, leyden_drive* drive) : image_(std::move(image)), drive_(drive) {}
  IOStatus Explain(leyden_status status, const std::string& doing) const;
  // Called before each command: may be the one at which an option ends this process.
  void Begin() const;
  IOStatus SetMode(Mode wanted);

  const std::string image_;
  leyden_drive* drive_;
  leyden_identity identity_{};
  Mode mode_ = Mode::kNone;
  bool was_killed_ = false;
  bool dies_at_cut_ = false;
  std::atomic<Reclaim> reclaims_{Reclaim::kNone};
  // The reclaim that has just ended, until a command has come.
  mutable std::atomic<Reclaim> after_{Reclaim::kNone};
  // Commands of reclaims of plain files, and of logs, until this process is killed; 0: it is not.
  mutable std::atomic<uint64_t> until_plain_kill_{0};
  mutable std::atomic<uint64_t> until_log_kill_{0};
};

}  // namespace leyden_fs
