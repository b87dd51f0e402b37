// Zones: what each is used for, how much of it lives, and which one the next data goes to.
//
// Zones are never waited for: where the drive's limit of active zones is reached, a zone that is being written is
// shared. So no order of opening and closing files can lock up.

#pragma once

#include <deque>
#include <mutex>
#include <set>
#include <vector>

#include "device.h"
#include "inode.h"

namespace leyden_fs {

enum class ZoneUse : uint8_t {
  kMetadata,
  kFree,   // nothing in it lives; to be reset before use unless it is empty
  kLog,    // records of logs
  kPlain,  // extents of plain files
  kLost,   // read-only or offline: the drive does not take writes
};

// Who asks for a zone, from the least to the most urgent: each may take zones that the ones before must leave. A flush
// is a table that takes the place of logs; it is urgent while the database is being opened.
enum class Urgency { kPlain, kFlush, kLog, kState, kReclaim };

class Zones {
 public:
  explicit Zones(Device* device) : device_(device) {}

  // Begins with what the drive reports: `use` of each zone by its number.
  // With `read_only` the drive is left as it is.
  IOStatus Load(const std::vector<leyden_zone>& zones, const std::vector<ZoneUse>& use, bool read_only);

  // A zone for a log: empty. Its stream is its writer, and releases it.
  IOStatus TakeForLog(Urgency urgency, uint32_t* zone);
  // A zone for a file of `expected` bytes whose writer says it lives as long as `lifetime`.
  IOStatus Acquire(uint64_t expected, int lifetime, Urgency urgency, uint32_t* zone);
  // The writer of a file leaves its zone.
  void Release(uint32_t zone);
  // Writes whole blocks to a plain zone: as many as fit. `*written` bytes are at `*offset`; 0 if it is full.
  IOStatus Write(uint32_t zone, const char* data, size_t n, size_t* written, uint64_t* offset);

  // What of a zone lives. A zone of which nothing does, and which nobody writes, is free after the next `Collect`.
  void AddLive(const Extent& extent);
  void SubtractLive(const Extent& extent);
  // Ends a log zone's use as one, and resets it.
  IOStatus EndLog(uint32_t zone);
  // Whether so many bytes more of logs can be flushed to tables when the database is opened again.
  bool MayLog(uint64_t bytes);
  // Takes no more data in a plain zone.
  void Retire(uint32_t zone);
  // Resets plain zones in which nothing lives.
  IOStatus Collect();

  // Log zones in which nothing lives, and that no stream fills.
  std::vector<uint32_t> DeadLogs();
  // The zone whose copying frees the most, leaving out `except`; false if that is hardly anything.
  bool Victim(const std::set<uint32_t>& except, uint32_t* zone);
  ZoneUse Use(uint32_t zone);
  uint64_t FreeBytes();
  uint32_t FreeZones();
  bool HasFree();
  uint64_t LiveBytes(uint32_t zone);

 private:
  struct Zone {
    ZoneUse use = ZoneUse::kFree;
    bool is_empty = true;
    bool is_finished = false;
    uint64_t written = 0;
    uint64_t live = 0;
    uint32_t writers = 0;
    int lifetime = 0;
    std::mutex writing;
  };
  uint64_t Room(const Zone& z) const { return z.is_finished ? 0 : device_->zone_capacity() - z.written; }
  uint64_t LiveIn(const Zone& z, const Extent& extent) const;
  size_t MustLeave(Urgency urgency) const;
  bool IsActive(const Zone& z) const { return z.use == ZoneUse::kPlain && z.written > 0 && Room(z) > 0; }
  IOStatus TakeFree(Urgency urgency, uint32_t* zone);
  // The idle zone that fits best, or the one with the most room; null if there is none.
  Zone* FindIdle(uint64_t at_least, int lifetime, uint32_t* zone);
  Zone* FindLargest(bool idle, uint32_t* zone);
  bool FinishSmallest();

  Device* const device_;
  std::mutex mu_;
  std::deque<Zone> zones_;
  std::deque<uint32_t> free_;
  std::set<uint32_t> dying_;
  uint32_t active_ = 0;
  // Bytes of logs that live, and those that were logged since mounting.
  uint64_t logged_ = 0;
  uint64_t since_mount_ = 0;
  // No log was written since mounting: tables that are flushed are those of the logs that were found.
  bool is_recovering_ = true;
};

}  // namespace leyden_fs
