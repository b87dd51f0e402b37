// Files in protected zones, whose bytes are durable when they are appended.
//
// Each append becomes a record in the stream's current zone: which file, where in it, and the bytes. No metadata
// record is needed, because on mounting the zones are read again. Many files share a stream.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "inode.h"
#include "log_zone.h"

namespace leyden_fs {

// What a record in a log zone says.
struct LogRecord {
  uint64_t sequence;
  uint64_t inode;
  Extent extent;
  // The file was cut to `extent.file_offset`. In the metadata log, because zones come and go.
  bool is_cut;
};

class LogStream {
 public:
  // Gets a zone for the stream, and the salt of its records.
  using ZoneSource = std::function<IOStatus(uint32_t* zone, uint32_t* salt)>;

  // `sequence` numbers the records of all streams of a file system.
  LogStream(Device* device, LogProtection protection, std::atomic<uint64_t>* sequence)
      : device_(device), protection_(protection), sequence_(sequence) {}

  // Writes bytes of a file as one record, as many as the zone takes. `placed` is told where they are, before any later
  // record can be written.
  IOStatus Write(const Inode& inode, uint64_t file_offset, const char* data, size_t n, const ZoneSource& source,
                 const std::function<void(const Extent&)>& placed);
  IOStatus Sync();
  IOStatus End();
  // Copies bytes that are in memory only; false if these are on the drive.
  bool ReadPending(uint64_t offset, size_t n, char* buffer);

  // The records of a zone, added to `records`.
  static IOStatus Scan(const Device& device, const leyden_zone& zone, uint32_t salt,
                       std::vector<LogRecord>* records, uint64_t* end);

 private:
  IOStatus NeedRoom(size_t payload, const ZoneSource& source);

  Device* const device_;
  const LogProtection protection_;
  std::atomic<uint64_t>* const sequence_;
  std::mutex mu_;
  std::unique_ptr<LogZone> log_;
};

}  // namespace leyden_fs
