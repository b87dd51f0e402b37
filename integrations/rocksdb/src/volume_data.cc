// Data: appends, syncs and reads.
//
// The order that makes a synced file durable: its blocks are written; the drive is flushed; only then its extents go
// into the metadata log, which is durable at once. The other way round a power cut finds a file whose data it has
// taken, while the log that could replace it is deleted already (the published host code does so).

#include <algorithm>

#include "volume.h"

namespace leyden_fs {

LogStream* Volume::StreamOf(const Inode& inode) {
  return inode.file_class == FileClass::kLog ? &log_stream_ : &state_stream_;
}

LogStream::ZoneSource Volume::SourceFor(const Inode& inode, Urgency urgency) {
  const FileClass file_class = inode.file_class;
  if (urgency == Urgency::kPlain) urgency = file_class == FileClass::kLog ? Urgency::kLog : Urgency::kState;
  return [this, file_class, urgency](uint32_t* zone, uint32_t* salt) {
    std::lock_guard<std::mutex> lock(mu_);
    auto filled = filling_.find(file_class);
    if (filled != filling_.end()) {
      zones_.Release(filled->second);
      filling_.erase(filled);
      ReleaseDeadLogs().PermitUncheckedError();
    }
    IOStatus s = zones_.TakeForLog(urgency, zone);
    if (!s.ok()) return s;
    // A salt that no zone has now, nor the one had before: the sequence never goes back.
    *salt = static_cast<uint32_t>(++log_sequence_ * 2654435761U) | 1U;
    filling_[file_class] = *zone;
    // Before the first record in it, or a power cut would leave records that nobody looks for.
    return Record(entry::LogZone(*zone, *salt));
  };
}

IOStatus Volume::Append(Inode* inode, Writer* writer, const char* data, size_t n) {
  size_t done = 0;
  return WithSpace([&] {
    if (inode->file_class == FileClass::kLog && !zones_.MayLog(n - done)) {
      return device_->Full("there is no room to flush more of the logs");
    }
    if (inode->file_class != FileClass::kPlain) return AppendLog(inode, data, n, &done, Urgency::kPlain);
    std::lock_guard<std::mutex> lock(writer->writing);
    return AppendPlain(inode, writer, data, n, &done);
  });
}

IOStatus Volume::AppendLog(Inode* inode, const char* data, size_t n, size_t* done, Urgency urgency) {
  while (*done < n) {
    IOStatus s = StreamOf(*inode)->Write(*inode, inode->Size(), data + *done, n - *done, SourceFor(*inode, urgency),
                                         [&](const Extent& e) {
                                           zones_.AddLive(e);
                                           std::lock_guard<std::mutex> lock(inode->mu);
                                           inode->extents.Append(e.device_offset, e.length);
                                           *done += e.length;
                                         });
    if (!s.ok()) return s;
  }
  return IOStatus::OK();
}

IOStatus Volume::AppendPlain(Inode* inode, Writer* writer, const char* data, size_t n, size_t* done) {
  const size_t block = device_->block_bytes();
  std::string tail;
  {
    std::lock_guard<std::mutex> lock(inode->mu);
    tail = inode->tail;
  }
  const size_t left = n - *done;
  if (tail.size() + left < block) {
    std::lock_guard<std::mutex> lock(inode->mu);
    inode->tail.append(data + *done, left);
    *done = n;
    return IOStatus::OK();
  }
  std::string bytes = tail;
  bytes.append(data + *done, left);
  const size_t whole = bytes.size() / block * block;
  const std::string rest = bytes.substr(whole);
  bytes.resize(whole);
  size_t written = 0;
  IOStatus s = WriteBlocks(inode, writer, bytes, whole, &written);
  // The first block took the old tail with it.
  if (written > 0) *done += written - tail.size();
  if (!s.ok()) return s;
  std::lock_guard<std::mutex> lock(inode->mu);
  inode->tail = rest;
  *done = n;
  return s;
}

// Writes blocks, of which the first `payload` bytes belong to the file; `*done` counts these.
IOStatus Volume::WriteBlocks(Inode* inode, Writer* writer, const std::string& bytes, size_t payload, size_t* done) {
  size_t at = 0;
  while (at < bytes.size()) {
    if (!writer->has_zone) {
      const uint64_t size = inode->Size();
      const uint64_t expected = writer->expected_bytes > size ? writer->expected_bytes - size : 0;
      IOStatus s = zones_.Acquire(std::max<uint64_t>(expected, bytes.size() - at), writer->lifetime,
                                  writer->urgency, &writer->zone);
      if (!s.ok()) return s;
      writer->has_zone = true;
    }
    size_t written = 0;
    uint64_t offset = 0;
    IOStatus s = zones_.Write(writer->zone, bytes.data() + at, bytes.size() - at, &written, &offset);
    if (!s.ok()) return s;
    if (written == 0) {
      zones_.Release(writer->zone);
      writer->has_zone = false;
      continue;
    }
    const uint64_t length = std::min(written, payload - at);
    zones_.AddLive({0, offset, length});
    std::lock_guard<std::mutex> lock(inode->mu);
    inode->extents.Append(offset, length);
    inode->tail.clear();
    at += written;
    *done = std::min(at, payload);
  }
  return IOStatus::OK();
}

// Fills the last block up. What comes later begins with a block, and an extent, of its own.
IOStatus Volume::WriteTail(Inode* inode, Writer* writer) {
  std::string bytes;
  {
    std::lock_guard<std::mutex> lock(inode->mu);
    bytes = inode->tail;
  }
  if (bytes.empty()) return IOStatus::OK();
  const size_t payload = bytes.size();
  bytes.resize(device_->block_bytes());
  size_t done = 0;
  return WriteBlocks(inode, writer, bytes, payload, &done);
}

IOStatus Volume::Sync(Inode* inode, Writer* writer) {
  return WithSpace([&] {
    return inode->file_class == FileClass::kPlain ? SyncPlain(inode, writer) : StreamOf(*inode)->Sync();
  });
}

IOStatus Volume::SyncPlain(Inode* inode, Writer* writer) {
  uint64_t size = 0;
  {
    std::lock_guard<std::mutex> lock(writer->writing);
    IOStatus s = WriteTail(inode, writer);
    if (!s.ok()) return s;
    size = inode->Size();
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (inode->recorded_size == size || inode->links == 0) return IOStatus::OK();
  }
  std::vector<std::pair<InodePtr, uint64_t>> flushed;
  if (options_.flush_before_record) {
    flushed = UnrecordedFiles();
    IOStatus s = device_->Flush();
    if (!s.ok()) return s;
  }
  std::lock_guard<std::mutex> lock(mu_);
  std::string entries;
  auto add = [&](const Inode& file, uint64_t end) {
    if (file.links == 0 || file.recorded_size >= end) return;
    std::lock_guard<std::mutex> guard(file.mu);
    ExtentList list = file.extents;
    list.Truncate(end);
    if (list.size() > file.recorded_size) entries += entry::Extents(file.number, file.recorded_size, list.all());
  };
  add(*inode, size);
  for (const auto& f : flushed) {
    if (f.first.get() != inode) add(*f.first, f.second);
  }
  return entries.empty() ? IOStatus::OK() : Record(entries);
}

// Other open files, with what they have in zones: the flush makes it durable, too. So RocksDB's LOG, which is never
// synced, tells after a power cut what happened before the last table.
std::vector<std::pair<InodePtr, uint64_t>> Volume::UnrecordedFiles() {
  std::lock_guard<std::mutex> lock(mu_);
  std::vector<std::pair<InodePtr, uint64_t>> files;
  for (const InodePtr& f : tree_.Files()) {
    if (f->file_class != FileClass::kPlain || f->handles == 0) continue;
    std::lock_guard<std::mutex> guard(f->mu);
    if (f->extents.size() > f->recorded_size) files.emplace_back(f, f->extents.size());
  }
  return files;
}

IOStatus Volume::CloseWriter(Inode* inode, Writer* writer) {
  IOStatus s = Sync(inode, writer);
  std::shared_lock<std::shared_mutex> space(space_);
  std::lock_guard<std::mutex> lock(writer->writing);
  if (writer->has_zone) zones_.Release(writer->zone);
  writer->has_zone = false;
  return s;
}

IOStatus Volume::Truncate(Inode* inode, Writer* writer, uint64_t size) {
  for (uint64_t now = inode->Size(); now < size; now = inode->Size()) {
    const std::string zeroes(std::min<uint64_t>(size - now, 1 << 20), '\0');
    IOStatus s = Append(inode, writer, zeroes.data(), zeroes.size());
    if (!s.ok()) return s;
  }
  return WithSpace([&] {
    std::lock_guard<std::mutex> writing(writer->writing);
    if (inode->Size() <= size) return IOStatus::OK();
    std::lock_guard<std::mutex> lock(mu_);
    std::vector<Extent> freed;
    {
      std::lock_guard<std::mutex> file(inode->mu);
      const uint64_t in_extents = inode->extents.size();
      inode->tail.resize(size > in_extents ? size - in_extents : 0);
      freed = inode->extents.Truncate(size);
    }
    IOStatus s;
    if (inode->links > 0 && inode->file_class != FileClass::kPlain) {
      s = Record(entry::Cut(inode->number, ++log_sequence_, size));
    } else if (inode->links > 0 && inode->recorded_size > size) {
      s = Record(entry::Extents(inode->number, size, {}));
    }
    if (!s.ok()) return s;
    for (const Extent& e : freed) zones_.SubtractLive(e);
    return zones_.Collect();
  });
}

IOStatus Volume::Read(const Inode& inode, uint64_t offset, size_t n, char* buffer, size_t* got) {
  std::shared_lock<std::shared_mutex> space(space_);
  if (!is_mounted_) return IOStatus::IOError(device_->image() + ": it is not mounted any more");
  *got = 0;
  while (*got < n) {
    Extent extent{};
    {
      std::lock_guard<std::mutex> lock(inode.mu);
      extent = inode.extents.Find(offset + *got);
      if (extent.length == 0) {
        const uint64_t at = offset + *got;
        const uint64_t end = inode.extents.size() + inode.tail.size();
        if (at >= end) break;
        const size_t rest = std::min<uint64_t>(n - *got, end - at);
        inode.tail.copy(buffer + *got, rest, at - inode.extents.size());
        *got += rest;
        break;
      }
    }
    extent.length = std::min<uint64_t>(extent.length, n - *got);
    IOStatus s = ReadExtent(inode, extent, buffer + *got);
    if (!s.ok()) return s;
    *got += extent.length;
  }
  return IOStatus::OK();
}

IOStatus Volume::ReadExtent(const Inode& inode, const Extent& extent, char* buffer) {
  if (inode.file_class != FileClass::kPlain &&
      StreamOf(inode)->ReadPending(extent.device_offset, extent.length, buffer)) {
    return IOStatus::OK();
  }
  return device_->Read(extent.device_offset, extent.length, buffer);
}

}  // namespace leyden_fs
