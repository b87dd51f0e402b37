#include "trace.h"

#include <time.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace leyden_fs {

using rocksdb::FileOptions;
using rocksdb::FileSystem;
using rocksdb::FileSystemWrapper;
using rocksdb::FSRandomAccessFile;
using rocksdb::FSRandomAccessFileOwnerWrapper;
using rocksdb::FSReadRequest;
using rocksdb::FSSequentialFile;
using rocksdb::FSSequentialFileOwnerWrapper;
using rocksdb::FSWritableFile;
using rocksdb::FSWritableFileOwnerWrapper;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Logger;
using rocksdb::Slice;

namespace {

uint64_t ThreadNs() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1000000000U + static_cast<uint64_t>(t.tv_nsec);
}

// What a thread has done several times over, and is not written yet.
struct Run {
  uint64_t sequence;
  uint64_t work_ns;
  uint64_t count;
  uint64_t bytes;
};

struct Thread {
  uint32_t number;
  uint64_t ended_ns;
  // By operation and file. Reads of several files between two other operations are one run each, for a compaction
  // takes its blocks from all of its inputs in turn.
  std::map<std::pair<char, uint64_t>, Run> runs;
};

}  // namespace

class Trace {
 public:
  explicit Trace(FILE* file) : file_(file) {}
  ~Trace() { End().PermitUncheckedError(); }

  IOStatus End() {
    std::lock_guard<std::mutex> lock(mu_);
    if (file_ == nullptr) return IOStatus::OK();
    for (auto& t : threads_) Write(&t.second);
    const bool failed = fprintf(file_, "end\n") < 0 || ferror(file_) != 0;
    const bool closed = fclose(file_) == 0;
    file_ = nullptr;
    return failed || !closed ? IOStatus::IOError("the trace could not be written") : IOStatus::OK();
  }

  // Whether a thread that did `op` to `file` may do it again in the same line.
  static bool Gathers(char op) { return op == 'a' || op == 'r'; }

  // A call that has begun when its thread had used `began_ns` of a processor, and ends now.
  void Note(char op, uint64_t file, uint64_t bytes, uint64_t began_ns, const std::string& name = "") {
    std::lock_guard<std::mutex> lock(mu_);
    if (file_ == nullptr) return;
    Thread* t = This();
    const uint64_t work = began_ns > t->ended_ns ? began_ns - t->ended_ns : 0;
    const bool goes_on = t->runs.empty() || (Gathers(op) && t->runs.begin()->first.first == op &&
                                             (op == 'r' || t->runs.begin()->first.second == file));
    if (!goes_on) Write(t);
    auto added = t->runs.emplace(std::make_pair(op, file), Run{sequence_, 0, 0, 0});
    if (added.second) sequence_++;
    Run& run = added.first->second;
    run.work_ns += work;
    run.count++;
    run.bytes += bytes;
    if (!Gathers(op)) {
      name_ = name;
      Write(t);
    }
    t->ended_ns = ThreadNs();
  }

  // What a thread used of a processor in a call that is left out is no time of its own.
  void LeaveOut(uint64_t began_ns) {
    std::lock_guard<std::mutex> lock(mu_);
    if (file_ == nullptr) return;
    This()->ended_ns += ThreadNs() - began_ns;
  }

  // Numbers are never used again; a file keeps its own when its name changes.
  uint64_t Created(const std::string& path) {
    std::lock_guard<std::mutex> lock(mu_);
    return files_[path] = next_file_++;
  }
  uint64_t Opened(const std::string& path) {
    std::lock_guard<std::mutex> lock(mu_);
    auto known = files_.emplace(path, next_file_);
    if (known.second) next_file_++;
    return known.first->second;
  }
  uint64_t Removed(const std::string& path) {
    const uint64_t file = Opened(path);
    std::lock_guard<std::mutex> lock(mu_);
    files_.erase(path);
    return file;
  }
  uint64_t Renamed(const std::string& from, const std::string& to) {
    const uint64_t file = Removed(from);
    std::lock_guard<std::mutex> lock(mu_);
    return files_[to] = file;
  }

 private:
  Thread* This() {
    static thread_local const Trace* of = nullptr;
    static thread_local uint32_t number = 0;
    if (of != this) {
      of = this;
      number = static_cast<uint32_t>(threads_.size());
      threads_[number] = Thread{number, ThreadNs(), {}};
    }
    return &threads_[number];
  }

  // In the order in which they began.
  void Write(Thread* t) {
    std::map<uint64_t, std::pair<std::pair<char, uint64_t>, Run>> runs;
    for (const auto& r : t->runs) runs.emplace(r.second.sequence, r);
    for (const auto& r : runs) {
      const Run& run = r.second.second;
      fprintf(file_, "%llu %u %llu %c %llu %llu %llu%s%s\n", static_cast<unsigned long long>(run.sequence), t->number,
              static_cast<unsigned long long>(run.work_ns), r.second.first.first,
              static_cast<unsigned long long>(r.second.first.second), static_cast<unsigned long long>(run.count),
              static_cast<unsigned long long>(run.bytes), name_.empty() ? "" : " ", name_.c_str());
      name_.clear();
    }
    t->runs.clear();
  }

  std::mutex mu_;
  FILE* file_;
  uint64_t sequence_ = 0;
  uint64_t next_file_ = 0;
  std::map<std::string, uint64_t> files_;
  std::map<uint32_t, Thread> threads_;
  // Of the line that is written next.
  std::string name_;
};

namespace {

using TracePtr = std::shared_ptr<Trace>;

// Whoever reads a file that nobody has noted as made finds it with size 0 in the trace: it was there before.
class TracedRandom : public FSRandomAccessFileOwnerWrapper {
 public:
  TracedRandom(std::unique_ptr<FSRandomAccessFile>&& target, TracePtr trace, uint64_t file)
      : FSRandomAccessFileOwnerWrapper(std::move(target)), trace_(std::move(trace)), file_(file) {}
  IOStatus Read(uint64_t offset, size_t n, const IOOptions& options, Slice* result, char* scratch,
                IODebugContext* dbg) const override {
    const uint64_t began = ThreadNs();
    IOStatus s = FSRandomAccessFileOwnerWrapper::Read(offset, n, options, result, scratch, dbg);
    if (s.ok()) trace_->Note('r', file_, result->size(), began);
    return s;
  }
  IOStatus MultiRead(FSReadRequest* requests, size_t count, const IOOptions& options, IODebugContext* dbg) override {
    const uint64_t began = ThreadNs();
    IOStatus s = FSRandomAccessFileOwnerWrapper::MultiRead(requests, count, options, dbg);
    for (size_t i = 0; i < count; i++) trace_->Note('r', file_, requests[i].result.size(), began);
    return s;
  }

 private:
  const TracePtr trace_;
  const uint64_t file_;
};

class TracedSequential : public FSSequentialFileOwnerWrapper {
 public:
  TracedSequential(std::unique_ptr<FSSequentialFile>&& target, TracePtr trace, uint64_t file)
      : FSSequentialFileOwnerWrapper(std::move(target)), trace_(std::move(trace)), file_(file) {}
  IOStatus Read(size_t n, const IOOptions& options, Slice* result, char* scratch, IODebugContext* dbg) override {
    const uint64_t began = ThreadNs();
    IOStatus s = FSSequentialFileOwnerWrapper::Read(n, options, result, scratch, dbg);
    if (s.ok()) trace_->Note('r', file_, result->size(), began);
    return s;
  }

 private:
  const TracePtr trace_;
  const uint64_t file_;
};

class TracedWritable : public FSWritableFileOwnerWrapper {
 public:
  TracedWritable(std::unique_ptr<FSWritableFile>&& target, TracePtr trace, uint64_t file)
      : FSWritableFileOwnerWrapper(std::move(target)), trace_(std::move(trace)), file_(file) {}
  IOStatus Append(const Slice& data, const IOOptions& options, IODebugContext* dbg) override {
    return Noted('a', data.size(), [&] { return FSWritableFileOwnerWrapper::Append(data, options, dbg); });
  }
  IOStatus Append(const Slice& data, const IOOptions& options, const rocksdb::DataVerificationInfo& info,
                  IODebugContext* dbg) override {
    return Noted('a', data.size(), [&] { return FSWritableFileOwnerWrapper::Append(data, options, info, dbg); });
  }
  IOStatus Sync(const IOOptions& options, IODebugContext* dbg) override {
    return Noted('s', 0, [&] { return FSWritableFileOwnerWrapper::Sync(options, dbg); });
  }
  IOStatus Fsync(const IOOptions& options, IODebugContext* dbg) override {
    return Noted('s', 0, [&] { return FSWritableFileOwnerWrapper::Fsync(options, dbg); });
  }
  IOStatus Close(const IOOptions& options, IODebugContext* dbg) override {
    return Noted('x', 0, [&] { return FSWritableFileOwnerWrapper::Close(options, dbg); });
  }

 private:
  template <typename Call>
  IOStatus Noted(char op, uint64_t bytes, const Call& call) {
    const uint64_t began = ThreadNs();
    IOStatus s = call();
    if (s.ok()) trace_->Note(op, file_, bytes, began);
    return s;
  }

  const TracePtr trace_;
  const uint64_t file_;
};

// RocksDB's LOG, which is left out: only the time is taken out that writing it costs.
class UntracedLog : public Logger {
 public:
  UntracedLog(std::shared_ptr<Logger> target, TracePtr trace)
      : Logger(target->GetInfoLogLevel()), target_(std::move(target)), trace_(std::move(trace)) {}
  ~UntracedLog() override { Close().PermitUncheckedError(); }

  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    const uint64_t began = ThreadNs();
    target_->Logv(format, arguments);
    trace_->LeaveOut(began);
  }
  void Flush() override {
    const uint64_t began = ThreadNs();
    target_->Flush();
    trace_->LeaveOut(began);
  }
  size_t GetLogFileSize() const override { return target_->GetLogFileSize(); }

 protected:
  rocksdb::Status CloseImpl() override { return target_->Close(); }

 private:
  const std::shared_ptr<Logger> target_;
  const TracePtr trace_;
};

class TracedFileSystem : public FileSystemWrapper {
 public:
  TracedFileSystem(const std::shared_ptr<FileSystem>& target, TracePtr trace)
      : FileSystemWrapper(target), trace_(std::move(trace)) {}

  static const char* kClassName() { return "traced"; }
  const char* Name() const override { return kClassName(); }
  std::string GetId() const override { return target_->GetId(); }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions& options,
                             std::unique_ptr<FSSequentialFile>* result, IODebugContext* dbg) override {
    IOStatus s = target_->NewSequentialFile(path, options, result, dbg);
    if (s.ok()) result->reset(new TracedSequential(std::move(*result), trace_, trace_->Opened(path)));
    return s;
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions& options,
                               std::unique_ptr<FSRandomAccessFile>* result, IODebugContext* dbg) override {
    IOStatus s = target_->NewRandomAccessFile(path, options, result, dbg);
    if (s.ok()) result->reset(new TracedRandom(std::move(*result), trace_, trace_->Opened(path)));
    return s;
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    const uint64_t began = ThreadNs();
    IOStatus s = target_->NewWritableFile(path, options, result, dbg);
    if (s.ok()) Made(path, result, began);
    return s;
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path, const FileOptions& options,
                             std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    const uint64_t began = ThreadNs();
    IOStatus s = target_->ReuseWritableFile(path, old_path, options, result, dbg);
    if (!s.ok()) return s;
    trace_->Note('d', trace_->Removed(old_path), 0, began);
    Made(path, result, ThreadNs());
    return s;
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    IOStatus s = target_->ReopenWritableFile(path, options, result, dbg);
    if (s.ok()) result->reset(new TracedWritable(std::move(*result), trace_, trace_->Opened(path)));
    return s;
  }
  IOStatus NewLogger(const std::string& path, const IOOptions& options, std::shared_ptr<Logger>* result,
                     IODebugContext* dbg) override {
    IOStatus s = target_->NewLogger(path, options, result, dbg);
    if (s.ok()) result->reset(new UntracedLog(std::shared_ptr<Logger>(std::move(*result)), trace_));
    return s;
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions& options, IODebugContext* dbg) override {
    const uint64_t began = ThreadNs();
    IOStatus s = target_->DeleteFile(path, options, dbg);
    if (s.ok()) trace_->Note('d', trace_->Removed(path), 0, began);
    return s;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& options,
                      IODebugContext* dbg) override {
    const uint64_t began = ThreadNs();
    IOStatus s = target_->RenameFile(from, to, options, dbg);
    if (s.ok()) trace_->Note('n', trace_->Renamed(from, to), 0, began, to);
    return s;
  }

 private:
  void Made(const std::string& path, std::unique_ptr<FSWritableFile>* result, uint64_t began) {
    const uint64_t file = trace_->Created(path);
    trace_->Note('c', file, 0, began, path);
    result->reset(new TracedWritable(std::move(*result), trace_, file));
  }

  const TracePtr trace_;
};

}  // namespace

IOStatus BeginTrace(const std::string& path, std::shared_ptr<Trace>* trace) {
  FILE* file = fopen(path.c_str(), "wx");
  if (file == nullptr) {
    const std::string remedy = errno == EEXIST ? "name a new file" : "name a file in a folder that can be written";
    return IOStatus::IOError(path + ": " + strerror(errno), remedy);
  }
  fprintf(file, "leyden-files 1\n");
  *trace = std::make_shared<Trace>(file);
  return IOStatus::OK();
}

IOStatus EndTrace(Trace* trace) { return trace->End(); }

std::unique_ptr<FileSystem> Traced(std::unique_ptr<FileSystem> target, std::shared_ptr<Trace> trace) {
  return std::unique_ptr<FileSystem>(
      new TracedFileSystem(std::shared_ptr<FileSystem>(std::move(target)), std::move(trace)));
}

}  // namespace leyden_fs
