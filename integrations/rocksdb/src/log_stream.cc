#include "log_stream.h"

#include <algorithm>

#include "codec.h"

namespace leyden_fs {
namespace {

constexpr uint32_t kData = 16;

constexpr size_t kHeadBytes = 16;
// The longest piece of a file in one record: what is torn is thrown away as a whole.
constexpr size_t kPieceBytes = 1 << 20;
// Less is not worth a record at the end of a zone.
constexpr size_t kLeastBytes = 512;

std::string Head(uint64_t inode, uint64_t offset) {
  std::string head;
  PutU64(&head, inode);
  PutU64(&head, offset);
  return head;
}

}  // namespace

IOStatus LogStream::NeedRoom(size_t payload, const ZoneSource& source) {
  if (log_ != nullptr && log_->Room() >= payload) return IOStatus::OK();
  uint32_t zone = 0;
  uint32_t salt = 0;
  if (log_ != nullptr) {
    IOStatus s = log_->End();
    if (!s.ok()) return s;
    log_.reset();
  }
  IOStatus s = source(&zone, &salt);
  return s.ok() ? LogZone::Begin(device_, zone, salt, protection_, &log_) : s;
}

IOStatus LogStream::Write(const Inode& inode, uint64_t file_offset, const char* data, size_t n,
                          const ZoneSource& source, const std::function<void(const Extent&)>& placed) {
  std::lock_guard<std::mutex> lock(mu_);
  IOStatus s = NeedRoom(kHeadBytes + std::min(n, kLeastBytes), source);
  if (!s.ok()) return s;
  Extent extent{file_offset, 0, std::min({n, kPieceBytes, log_->Room() - kHeadBytes})};
  s = log_->Append(kData, ++*sequence_, Head(inode.number, file_offset), data, extent.length, &extent.device_offset);
  if (s.ok()) placed(extent);
  return s;
}

IOStatus LogStream::Sync() {
  std::lock_guard<std::mutex> lock(mu_);
  return log_ == nullptr ? IOStatus::OK() : log_->Sync();
}

IOStatus LogStream::End() {
  std::lock_guard<std::mutex> lock(mu_);
  if (log_ == nullptr) return IOStatus::OK();
  IOStatus s = log_->End();
  log_.reset();
  return s;
}

bool LogStream::ReadPending(uint64_t offset, size_t n, char* buffer) {
  std::lock_guard<std::mutex> lock(mu_);
  if (log_ == nullptr || device_->ZoneOf(offset) != log_->zone()) return false;
  const uint64_t from = log_->pending_offset();
  if (offset + n <= from) return false;
  log_->ReadPending(std::max(offset, from), offset + n - std::max(offset, from),
                    buffer + (std::max(offset, from) - offset));
  if (offset >= from) return true;
  // The rest is on the drive, and stays there.
  return device_->Read(offset, from - offset, buffer).ok();
}

IOStatus LogStream::Scan(const Device& device, const leyden_zone& zone, uint32_t salt,
                         std::vector<LogRecord>* records, uint64_t* end) {
  return ScanLogZone(
      device, zone, salt,
      [&](const Record& r) {
        Decoder in(r.payload, r.length);
        LogRecord record{};
        record.sequence = r.sequence;
        record.inode = in.U64();
        record.extent.file_offset = in.U64();
        record.extent.device_offset = r.payload_offset + kHeadBytes;
        record.extent.length = r.length - kHeadBytes;
        if (!in.ok() || r.kind != kData) return device.Damaged("a log zone holds no log");
        records->push_back(record);
        return IOStatus::OK();
      },
      end);
}

}  // namespace leyden_fs
