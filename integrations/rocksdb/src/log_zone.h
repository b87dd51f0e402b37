// A zone of records, each with a sequence number and a checksum.
//
// Where the drive has Zone Random Write Areas, records share blocks: with every record the last block is
// written anew in the area, which is protected. So a small record is durable when it is appended, and takes
// no more room than its bytes. Otherwise every append fills its last block up with zeroes.

#pragma once

#include <functional>
#include <memory>
#include <string>

#include "device.h"

namespace leyden_fs {

// How a log's records become durable.
enum class LogProtection {
  kOnAppend,  // when Append has returned
  kOnSync,    // when Sync has returned: drives that protect nothing
  kNever,     // not at all, though Sync says so: for study
};

struct Record {
  uint32_t kind;
  uint64_t sequence;
  // Where `payload` lies on the drive.
  uint64_t payload_offset;
  const char* payload;
  size_t length;
};

// A zone that is being filled. Callers serialize.
class LogZone {
 public:
  static constexpr size_t kHeaderBytes = 28;
  // Where the salt stands in it.
  static constexpr size_t kSaltAt = 12;

  // Takes over an empty zone. Its records carry `salt`, so that no other zone's are taken for them.
  static IOStatus Begin(Device* device, uint32_t zone, uint32_t salt, LogProtection protection,
                        std::unique_ptr<LogZone>* log);

  uint32_t zone() const { return zone_; }
  // The longest payload that still fits.
  size_t Room() const;
  // Adds a record of `head` and `data` together; `*data_offset` becomes where `data` lies on the drive. After a
  // failure that may have written a part, every later call fails.
  IOStatus Append(uint32_t kind, uint64_t sequence, const std::string& head, const char* data, size_t n,
                  uint64_t* data_offset);
  // Makes all records durable.
  IOStatus Sync();
  // Makes all records durable, and ends the zone: it takes no resources of the drive any more.
  IOStatus End();
  // Bytes from here on are in memory only.
  uint64_t pending_offset() const { return start_ + tail_start_; }
  // Copies pending bytes.
  void ReadPending(uint64_t offset, size_t n, char* buffer) const;

 private:
  LogZone(Device* device, uint32_t zone, uint32_t salt, LogProtection protection);
  IOStatus WriteTail(Durability durability);

  Device* const device_;
  const uint32_t zone_;
  const uint32_t salt_;
  const LogProtection protection_;
  const bool in_area_;
  const uint64_t start_;
  // Everything from `tail_start_` on, a multiple of the block: not on the drive yet, or to be written again.
  uint64_t tail_start_ = 0;
  std::string tail_;
  bool is_volatile_ = false;
  IOStatus failed_;
};

// Gives the records of a zone to `visit`, in order, up to a record that a power cut has torn, or the end.
// `*end` becomes how many bytes of the zone they take. Corruption if something is neither.
IOStatus ScanLogZone(const Device& device, const leyden_zone& zone, uint32_t salt,
                     const std::function<IOStatus(const Record&)>& visit, uint64_t* end);

// Ends a zone that another process has filled up to `end`: commits its area and finishes it.
IOStatus EndOldLogZone(Device* device, uint32_t zone, uint64_t end);

}  // namespace leyden_fs
