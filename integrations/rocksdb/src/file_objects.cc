#include "file_objects.h"

#include <algorithm>
#include <cstring>

namespace leyden_fs {
namespace {

IOStatus ReadInto(const OpenFile& file, uint64_t offset, size_t n, Slice* result, char* scratch) {
  size_t got = 0;
  IOStatus s = Guarded([&] { return file.volume().Read(file.inode(), offset, n, scratch, &got); });
  *result = Slice(scratch, s.ok() ? got : 0);
  return s;
}

class SequentialFile : public FSSequentialFile {
 public:
  explicit SequentialFile(std::unique_ptr<OpenFile> file) : file_(std::move(file)) {}
  IOStatus Read(size_t n, const IOOptions&, Slice* result, char* scratch, IODebugContext*) override {
    IOStatus s = ReadInto(*file_, at_, n, result, scratch);
    at_ += result->size();
    return s;
  }
  IOStatus PositionedRead(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                          IODebugContext*) override {
    return ReadInto(*file_, offset, n, result, scratch);
  }
  IOStatus Skip(uint64_t n) override {
    at_ = std::min(at_ + n, std::max(at_, file_->inode().Size()));
    return IOStatus::OK();
  }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }

 private:
  const std::unique_ptr<OpenFile> file_;
  uint64_t at_ = 0;
};

class RandomAccessFile : public FSRandomAccessFile {
 public:
  explicit RandomAccessFile(std::unique_ptr<OpenFile> file) : file_(std::move(file)) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions&, Slice* result, char* scratch,
                IODebugContext*) const override {
    return ReadInto(*file_, offset, n, result, scratch);
  }
  // There is no cache between the drive and the file to read ahead into. RocksDB's own prefetch buffer takes over
  // when this says so.
  IOStatus Prefetch(uint64_t, size_t, const IOOptions&, IODebugContext*) override {
    return IOStatus::NotSupported("Prefetch");
  }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }
  size_t GetUniqueId(char* id, size_t max_size) const override { return file_->UniqueId(id, max_size); }

 private:
  const std::unique_ptr<OpenFile> file_;
};

class WritableFile : public FSWritableFile {
 public:
  WritableFile(std::unique_ptr<OpenFile> file, const FileOptions& options)
      : FSWritableFile(options), file_(std::move(file)) {}
  ~WritableFile() override { CloseOnce().PermitUncheckedError(); }

  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions&, IODebugContext*) override {
    return Guarded([&] {
      writer_.lifetime = static_cast<int>(write_hint_);
      writer_.expected_bytes = preallocation_block_size();
      writer_.urgency = io_priority_ == rocksdb::Env::IO_HIGH ? Urgency::kFlush : Urgency::kPlain;
      return file_->volume().Append(&file_->inode(), &writer_, data.data(), data.size());
    });
  }
  using FSWritableFile::PositionedAppend;
  IOStatus PositionedAppend(const Slice& data, uint64_t offset, const IOOptions& options,
                            IODebugContext* dbg) override {
    if (offset != file_->inode().Size()) return IOStatus::NotSupported("PositionedAppend not at the end of the file");
    return Append(data, options, dbg);
  }
  IOStatus Truncate(uint64_t size, const IOOptions&, IODebugContext*) override {
    return Guarded([&] { return file_->volume().Truncate(&file_->inode(), &writer_, size); });
  }
  // What is appended can be read at once; there is nothing to hand on.
  IOStatus Flush(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions&, IODebugContext*) override {
    return Guarded([&] { return file_->volume().Sync(&file_->inode(), &writer_); });
  }
  IOStatus RangeSync(uint64_t, uint64_t, const IOOptions& options, IODebugContext* dbg) override {
    return strict_bytes_per_sync_ ? Sync(options, dbg) : IOStatus::OK();
  }
  bool IsSyncThreadSafe() const override { return true; }
  // Space is taken as it is written; the size only says which zone suits.
  IOStatus Allocate(uint64_t, uint64_t, const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return CloseOnce(); }
  uint64_t GetFileSize(const IOOptions&, IODebugContext*) override { return file_->inode().Size(); }
  IOStatus InvalidateCache(size_t, size_t) override { return IOStatus::OK(); }
  size_t GetUniqueId(char* id, size_t max_size) const override { return file_->UniqueId(id, max_size); }

 private:
  IOStatus CloseOnce() {
    if (is_closed_) return IOStatus::OK();
    is_closed_ = true;
    return Guarded([&] { return file_->volume().CloseWriter(&file_->inode(), &writer_); });
  }

  const std::unique_ptr<OpenFile> file_;
  Writer writer_;
  bool is_closed_ = false;
};

}  // namespace

size_t OpenFile::UniqueId(char* id, size_t max_size) const {
  if (max_size < 16) return 0;
  const uint64_t words[2] = {inode_->number, reinterpret_cast<uintptr_t>(volume_.get())};
  memcpy(id, words, sizeof words);
  return sizeof words;
}

std::unique_ptr<FSSequentialFile> MakeSequentialFile(std::unique_ptr<OpenFile> file) {
  return std::unique_ptr<FSSequentialFile>(new SequentialFile(std::move(file)));
}
std::unique_ptr<FSRandomAccessFile> MakeRandomAccessFile(std::unique_ptr<OpenFile> file) {
  return std::unique_ptr<FSRandomAccessFile>(new RandomAccessFile(std::move(file)));
}
std::unique_ptr<FSWritableFile> MakeWritableFile(std::unique_ptr<OpenFile> file, const FileOptions& options) {
  return std::unique_ptr<FSWritableFile>(new WritableFile(std::move(file), options));
}

}  // namespace leyden_fs
