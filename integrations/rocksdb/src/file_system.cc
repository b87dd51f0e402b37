#include "file_system.h"

#include <cstdlib>
#include <map>
#include <mutex>
#include <set>

#include "file_objects.h"
#include "info_log.h"
#include "trace.h"

namespace leyden_fs {
namespace {

using rocksdb::Customizable;
using rocksdb::FileLock;
using rocksdb::FileSystem;
using rocksdb::FSDirectory;
using rocksdb::Status;

// Names are durable when the call that changes them returns.
class Directory : public FSDirectory {
 public:
  IOStatus Fsync(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
  IOStatus Close(const IOOptions&, IODebugContext*) override { return IOStatus::OK(); }
};

class Lock : public FileLock {
 public:
  explicit Lock(std::string p) : path(std::move(p)) {}
  const std::string path;
};

// A mounted image, and the files that are locked in it.
struct Mounted {
  std::shared_ptr<Trace> trace;
  std::unique_ptr<Volume> volume;
  std::string options;
  std::mutex mu;
  std::set<std::string> locks;
};

// Images that are mounted in this process.
class Mounts {
 public:
  // Programs such as db_bench leave without destroying their file system: the image is closed all the same.
  ~Mounts() {
    for (auto& m : mounts_) {
      auto mounted = m.second.lock();
      if (mounted == nullptr) continue;
      if (mounted->trace != nullptr) EndTrace(mounted->trace.get()).PermitUncheckedError();
      mounted->volume->Unmount().PermitUncheckedError();
    }
  }
  IOStatus Get(const Options& options, std::shared_ptr<Mounted>* mounted);

 private:
  std::mutex mu_;
  std::map<std::string, std::weak_ptr<Mounted>> mounts_;
};

IOStatus Mounts::Get(const Options& options, std::shared_ptr<Mounted>* mounted) {
  std::string name = options.image;
  if (char* real = realpath(options.image.c_str(), nullptr)) {
    name = real;
    free(real);
  }
  std::lock_guard<std::mutex> lock(mu_);
  *mounted = mounts_[name].lock();
  if (*mounted != nullptr) {
    if ((*mounted)->options == options.Canonical()) return IOStatus::OK();
    return IOStatus::Busy(options.image + ": this program has it open with other options: " + (*mounted)->options,
                          "use the same URI everywhere");
  }
  auto fresh = std::make_shared<Mounted>();
  fresh->options = options.Canonical();
  IOStatus s = Volume::Mount(options, &fresh->volume);
  if (s.ok() && !options.trace.empty()) s = BeginTrace(options.trace, &fresh->trace);
  if (!s.ok()) return s;
  mounts_[name] = fresh;
  *mounted = fresh;
  return s;
}

Mounts& AllMounts() {
  static Mounts mounts;
  return mounts;
}

class LeydenFileSystem : public FileSystem {
 public:
  LeydenFileSystem(std::string uri, std::shared_ptr<Mounted> mounted)
      : uri_(std::move(uri)), mounted_(std::move(mounted)), volume_(mounted_, mounted_->volume.get()) {}

  static const char* kClassName() { return "leyden"; }
  const char* Name() const override { return kClassName(); }
  std::string GetId() const override { return uri_; }

  IOStatus NewSequentialFile(const std::string& path, const FileOptions&, std::unique_ptr<FSSequentialFile>* result,
                             IODebugContext*) override {
    return WithOpen(path, [&](std::unique_ptr<OpenFile> f) { *result = MakeSequentialFile(std::move(f)); });
  }
  IOStatus NewRandomAccessFile(const std::string& path, const FileOptions&,
                               std::unique_ptr<FSRandomAccessFile>* result, IODebugContext*) override {
    return WithOpen(path, [&](std::unique_ptr<OpenFile> f) { *result = MakeRandomAccessFile(std::move(f)); });
  }
  IOStatus NewWritableFile(const std::string& path, const FileOptions& options,
                           std::unique_ptr<FSWritableFile>* result, IODebugContext*) override {
    return Guarded([&] {
      InodePtr inode;
      IOStatus s = volume_->Create(NormalPath(path), &inode);
      if (s.ok()) *result = MakeWritableFile(std::make_unique<OpenFile>(volume_, inode), options);
      return s;
    });
  }
  IOStatus ReopenWritableFile(const std::string& path, const FileOptions& options,
                              std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    IOStatus s =
        WithOpen(path, [&](std::unique_ptr<OpenFile> f) { *result = MakeWritableFile(std::move(f), options); });
    return s.IsPathNotFound() ? NewWritableFile(path, options, result, dbg) : s;
  }
  IOStatus ReuseWritableFile(const std::string& path, const std::string& old_path, const FileOptions& options,
                             std::unique_ptr<FSWritableFile>* result, IODebugContext* dbg) override {
    // Zones are not written in place: nothing is gained by keeping the old blocks.
    IOStatus s = RenameFile(old_path, path, IOOptions(), dbg);
    return s.ok() ? NewWritableFile(path, options, result, dbg) : s;
  }
  IOStatus NewLogger(const std::string& path, const IOOptions&, std::shared_ptr<rocksdb::Logger>* result,
                     IODebugContext* dbg) override {
    std::unique_ptr<FSWritableFile> file;
    IOStatus s = NewWritableFile(path, FileOptions(), &file, dbg);
    if (s.ok()) *result = MakeInfoLog(std::move(file), [volume = volume_] { return volume->HasFreeZones(); });
    return s;
  }
  IOStatus NewDirectory(const std::string& path, const IOOptions&, std::unique_ptr<FSDirectory>* result,
                        IODebugContext*) override {
    return Guarded([&] {
      bool is_directory = false;
      IOStatus s = volume_->Exists(NormalPath(path), &is_directory);
      if (s.ok() && !is_directory) s = IOStatus::IOError(path + ": not a directory");
      if (s.IsNotFound()) s = IOStatus::PathNotFound(path + ": no such directory");
      if (s.ok()) result->reset(new Directory);
      return s;
    });
  }
  IOStatus FileExists(const std::string& path, const IOOptions&, IODebugContext*) override {
    bool is_directory = false;
    return Guarded([&] { return volume_->Exists(NormalPath(path), &is_directory); });
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions&, bool* is_directory, IODebugContext*) override {
    return Guarded([&] { return volume_->Exists(NormalPath(path), is_directory); });
  }
  IOStatus GetChildren(const std::string& path, const IOOptions&, std::vector<std::string>* result,
                       IODebugContext*) override {
    return Guarded([&] { return volume_->List(NormalPath(path), result); });
  }
  IOStatus DeleteFile(const std::string& path, const IOOptions&, IODebugContext*) override {
    return Guarded([&] { return volume_->Unlink(NormalPath(path)); });
  }
  IOStatus Truncate(const std::string& path, size_t size, const IOOptions& options, IODebugContext* dbg) override {
    std::unique_ptr<FSWritableFile> file;
    IOStatus s =
        WithOpen(path, [&](std::unique_ptr<OpenFile> f) { file = MakeWritableFile(std::move(f), FileOptions()); });
    if (s.ok()) s = file->Truncate(size, options, dbg);
    if (s.ok()) s = file->Close(options, dbg);
    return s;
  }
  IOStatus CreateDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return Guarded([&] { return volume_->MakeDirectory(NormalPath(path), false); });
  }
  IOStatus CreateDirIfMissing(const std::string& path, const IOOptions&, IODebugContext*) override {
    return Guarded([&] { return volume_->MakeDirectory(NormalPath(path), true); });
  }
  IOStatus DeleteDir(const std::string& path, const IOOptions&, IODebugContext*) override {
    return Guarded([&] { return volume_->RemoveDirectory(NormalPath(path)); });
  }
  IOStatus GetFileSize(const std::string& path, const IOOptions&, uint64_t* size, IODebugContext*) override {
    Attributes a;
    IOStatus s = Stat(path, &a);
    if (s.ok()) *size = a.size;
    return s;
  }
  IOStatus GetFileModificationTime(const std::string& path, const IOOptions&, uint64_t* time_s,
                                   IODebugContext*) override {
    Attributes a;
    IOStatus s = Stat(path, &a);
    if (s.ok()) *time_s = a.modified_s;
    return s;
  }
  IOStatus NumFileLinks(const std::string& path, const IOOptions&, uint64_t* count, IODebugContext*) override {
    Attributes a;
    IOStatus s = Stat(path, &a);
    if (s.ok()) *count = a.links;
    return s;
  }
  IOStatus AreFilesSame(const std::string& first, const std::string& second, const IOOptions&, bool* same,
                        IODebugContext*) override {
    Attributes a;
    Attributes b;
    IOStatus s = Stat(first, &a);
    if (s.ok()) s = Stat(second, &b);
    if (s.ok()) *same = a.number == b.number;
    return s;
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions&, IODebugContext*) override {
    return Guarded([&] { return volume_->Rename(NormalPath(from), NormalPath(to)); });
  }
  IOStatus LinkFile(const std::string& from, const std::string& to, const IOOptions&, IODebugContext*) override {
    return Guarded([&] { return volume_->Link(NormalPath(from), NormalPath(to)); });
  }
  // Other processes are kept out by the image itself, which one process at a time can open.
  IOStatus LockFile(const std::string& path, const IOOptions& options, FileLock** lock, IODebugContext* dbg) override {
    *lock = nullptr;
    const std::string normal = NormalPath(path);
    std::unique_ptr<FSWritableFile> file;
    IOStatus s = ReopenWritableFile(normal, FileOptions(), &file, dbg);
    if (s.ok()) s = file->Close(options, dbg);
    if (!s.ok()) return s;
    std::lock_guard<std::mutex> guard(mounted_->mu);
    if (!mounted_->locks.insert(normal).second) {
      return IOStatus::IOError(path + ": locked already by this process", "close the other database object");
    }
    *lock = new Lock(normal);
    return s;
  }
  IOStatus UnlockFile(FileLock* lock, const IOOptions&, IODebugContext*) override {
    std::unique_ptr<Lock> held(static_cast<Lock*>(lock));
    std::lock_guard<std::mutex> guard(mounted_->mu);
    mounted_->locks.erase(held->path);
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions& options, std::string* path, IODebugContext* dbg) override {
    *path = "/rocksdbtest";
    return CreateDirIfMissing(*path, options, dbg);
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions&, std::string* absolute,
                           IODebugContext*) override {
    *absolute = NormalPath(path);
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string&, const IOOptions&, uint64_t* free_bytes, IODebugContext*) override {
    *free_bytes = volume_->FreeBytes();
    return IOStatus::OK();
  }
  FileOptions OptimizeForLogWrite(const FileOptions& options, const rocksdb::DBOptions& db) const override {
    FileOptions o = FileSystem::OptimizeForLogWrite(options, db);
    o.use_mmap_writes = false;
    return o;
  }
  void SanitizeFileOptions(FileOptions* options) const override {
    options->use_mmap_reads = options->use_mmap_writes = false;
    options->use_direct_reads = options->use_direct_writes = false;
  }

 private:
  struct Attributes {
    uint64_t size = 0, modified_s = 0, links = 0, number = 0;
  };

  template <typename Use>
  IOStatus WithOpen(const std::string& path, const Use& use) {
    return Guarded([&] {
      InodePtr inode;
      IOStatus s = volume_->Open(NormalPath(path), &inode);
      if (s.ok()) use(std::make_unique<OpenFile>(volume_, inode));
      return s;
    });
  }
  IOStatus Stat(const std::string& path, Attributes* a) {
    return Guarded([&] { return volume_->Stat(NormalPath(path), &a->size, &a->modified_s, &a->links, &a->number); });
  }

  const std::string uri_;
  const std::shared_ptr<Mounted> mounted_;
  const std::shared_ptr<Volume> volume_;
};

}  // namespace

Status OpenFileSystem(const std::string& uri, std::unique_ptr<FileSystem>* file_system) {
  return Guarded([&] {
    Options options;
    IOStatus s = ParseUri(uri, &options);
    if (!s.ok()) return s;
    std::shared_ptr<Mounted> mounted;
    s = AllMounts().Get(options, &mounted);
    if (!s.ok()) return s;
    file_system->reset(new LeydenFileSystem(uri, mounted));
    if (mounted->trace != nullptr) *file_system = Traced(std::move(*file_system), mounted->trace);
    return s;
  });
}

}  // namespace leyden_fs
