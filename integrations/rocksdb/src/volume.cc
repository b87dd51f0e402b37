// Names: what RocksDB does to paths, as entries of the metadata log.

#include "volume.h"

#include <ctime>

namespace leyden_fs {
namespace {

IOStatus Unmounted(const std::string& image) {
  return IOStatus::IOError(image + ": it is not mounted any more", "open the database again");
}

LogProtection LogProtectionOf(const Device& device, const Options& options) {
  if (!options.protect_logs) return LogProtection::kNever;
  return device.mode() == Mode::kNone ? LogProtection::kOnSync : LogProtection::kOnAppend;
}

}  // namespace

Volume::Volume(const Options& options, std::unique_ptr<Device> device)
    : options_(options),
      device_(std::move(device)),
      tree_(device_->identity().zone_size_bytes),
      metadata_(device_.get(), options.protect_metadata),
      zones_(device_.get()),
      log_stream_(device_.get(), LogProtectionOf(*device_, options), &log_sequence_),
      state_stream_(device_.get(), LogProtectionOf(*device_, options), &log_sequence_) {}

Volume::~Volume() { Unmount().PermitUncheckedError(); }

IOStatus Volume::Unmount() {
  std::unique_lock<std::shared_mutex> space(space_);
  if (!is_mounted_) return IOStatus::OK();
  is_mounted_ = false;
  IOStatus s = log_stream_.End();
  IOStatus t = state_stream_.End();
  if (s.ok()) s = t;
  t = metadata_.End();
  if (s.ok()) s = t;
  t = device_->Close();
  return s.ok() ? t : s;
}

IOStatus Volume::NoFile(const std::string& path) const {
  return IOStatus::PathNotFound(device_->image() + ": " + path + ": no such file or directory");
}

IOStatus Volume::NeedParent(const std::string& path) const {
  return tree_.IsDirectory(ParentPath(path)) ? IOStatus::OK() : NoFile(ParentPath(path));
}

IOStatus Volume::Record(const std::string& entries) {
  if (!is_mounted_) return Unmounted(device_->image());
  if (options_.read_only) return IOStatus::NotSupported(device_->image() + ": it is open for reading only");
  IOStatus s = tree_.Apply(entries);
  if (!s.ok()) return s;
  s = metadata_.Append(entries, tree_);
  // Until the record is durable a power cut brings the files back, and what they are made of must be there.
  if (!s.ok()) return s;
  for (const InodePtr& inode : tree_.TakeUnlinked()) {
    if (inode->handles == 0) Free(*inode);
  }
  zones_.Collect().PermitUncheckedError();
  return ReleaseDeadLogs();
}

void Volume::Free(const Inode& inode) {
  std::lock_guard<std::mutex> lock(inode.mu);
  for (const Extent& e : inode.extents.all()) zones_.SubtractLive(e);
}

IOStatus Volume::ReleaseDeadLogs() {
  for (uint32_t zone : zones_.DeadLogs()) {
    const std::string entries = entry::LogZone(zone, 0);
    IOStatus s = tree_.Apply(entries);
    if (s.ok()) s = metadata_.Append(entries, tree_);
    if (s.ok()) s = zones_.EndLog(zone);
    if (!s.ok()) return s;
  }
  return IOStatus::OK();
}

IOStatus Volume::Create(const std::string& path, InodePtr* inode) {
  return WithSpace([&] {
    std::lock_guard<std::mutex> lock(mu_);
    IOStatus s = NeedParent(path);
    if (!s.ok()) return s;
    if (tree_.IsDirectory(path)) return IOStatus::IOError(device_->image() + ": " + path + ": is a directory");
    const std::string entries =
        entry::File(path, tree_.NextInode(), ClassOfPath(path), static_cast<uint64_t>(time(nullptr)));
    // A file's extents come on top: what a long one needs.
    if (!metadata_.HasRoomFor(tree_, entries.size() + 64)) {
      return device_->Full("its zones are too small for the metadata of more files");
    }
    s = Record(entries);
    if (!s.ok()) return s;
    *inode = tree_.Find(path);
    (*inode)->handles++;
    return s;
  });
}

IOStatus Volume::Open(const std::string& path, InodePtr* inode) {
  std::lock_guard<std::mutex> lock(mu_);
  *inode = tree_.Find(path);
  if (*inode == nullptr) return NoFile(path);
  (*inode)->handles++;
  return IOStatus::OK();
}

void Volume::CloseInode(const InodePtr& inode) {
  std::shared_lock<std::shared_mutex> space(space_);
  std::lock_guard<std::mutex> lock(mu_);
  if (--inode->handles > 0 || inode->links > 0 || !is_mounted_) return;
  Free(*inode);
  zones_.Collect().PermitUncheckedError();
  ReleaseDeadLogs().PermitUncheckedError();
}

IOStatus Volume::Unlink(const std::string& path) {
  std::shared_lock<std::shared_mutex> space(space_);
  std::lock_guard<std::mutex> lock(mu_);
  if (tree_.IsDirectory(path)) return IOStatus::IOError(device_->image() + ": " + path + ": is a directory");
  if (tree_.Find(path) == nullptr) return NoFile(path);
  return Record(entry::Unlink(path));
}

IOStatus Volume::Rename(const std::string& from, const std::string& to) {
  std::shared_lock<std::shared_mutex> space(space_);
  std::lock_guard<std::mutex> lock(mu_);
  IOStatus s = NeedParent(to);
  if (!s.ok()) return s;
  if (tree_.names().count(from) == 0) return NoFile(from);
  if (from == to) return IOStatus::OK();
  const bool into_itself = to.compare(0, from.size() + 1, from + "/") == 0;
  if (from == "/" || tree_.IsDirectory(to) || into_itself ||
      (tree_.IsDirectory(from) && tree_.Find(to) != nullptr)) {
    return IOStatus::IOError(device_->image() + ": " + from + " cannot be renamed to " + to,
                             "only a file can be replaced, and only by a file");
  }
  return Record(entry::Rename(from, to));
}

IOStatus Volume::Link(const std::string& from, const std::string& to) {
  std::shared_lock<std::shared_mutex> space(space_);
  std::lock_guard<std::mutex> lock(mu_);
  IOStatus s = NeedParent(to);
  if (!s.ok()) return s;
  const InodePtr inode = tree_.Find(from);
  if (inode == nullptr) return NoFile(from);
  if (tree_.names().count(to) != 0) return IOStatus::IOError(device_->image() + ": " + to + ": exists");
  const std::string entries = entry::Link(to, inode->number);
  if (!metadata_.HasRoomFor(tree_, entries.size())) return device_->Full("too many names");
  return Record(entries);
}

IOStatus Volume::MakeDirectory(const std::string& path, bool may_exist) {
  std::shared_lock<std::shared_mutex> space(space_);
  std::lock_guard<std::mutex> lock(mu_);
  if (tree_.names().count(path) != 0) {
    if (may_exist && tree_.IsDirectory(path)) return IOStatus::OK();
    return IOStatus::IOError(device_->image() + ": " + path + ": exists");
  }
  // Parents, too: a database's path means something in the host's file system, and nothing here.
  std::string entries;
  for (std::string p = path; !tree_.IsDirectory(p); p = ParentPath(p)) {
    if (tree_.Find(p) != nullptr) return IOStatus::IOError(device_->image() + ": " + p + ": is a file");
    entries = entry::Directory(p) + entries;
  }
  if (!metadata_.HasRoomFor(tree_, entries.size())) return device_->Full("too many names");
  return Record(entries);
}

IOStatus Volume::RemoveDirectory(const std::string& path) {
  std::shared_lock<std::shared_mutex> space(space_);
  std::lock_guard<std::mutex> lock(mu_);
  if (!tree_.IsDirectory(path)) return NoFile(path);
  if (path == "/" || !tree_.Children(path).empty()) {
    return IOStatus::IOError(device_->image() + ": " + path + ": directory not empty");
  }
  return Record(entry::Unlink(path));
}

IOStatus Volume::List(const std::string& path, std::vector<std::string>* children) {
  std::lock_guard<std::mutex> lock(mu_);
  if (!tree_.IsDirectory(path)) return NoFile(path);
  *children = tree_.Children(path);
  return IOStatus::OK();
}

IOStatus Volume::Exists(const std::string& path, bool* is_directory) {
  std::lock_guard<std::mutex> lock(mu_);
  if (tree_.names().count(path) == 0) return IOStatus::NotFound(path);
  *is_directory = tree_.IsDirectory(path);
  return IOStatus::OK();
}

IOStatus Volume::Stat(const std::string& path, uint64_t* size, uint64_t* modified_s, uint64_t* links,
                      uint64_t* number) {
  std::lock_guard<std::mutex> lock(mu_);
  const InodePtr inode = tree_.Find(path);
  *size = *modified_s = *links = *number = 0;
  if (inode == nullptr) return tree_.IsDirectory(path) ? IOStatus::OK() : NoFile(path);
  *size = inode->Size();
  *modified_s = inode->modified_s;
  *links = inode->links;
  *number = inode->number;
  return IOStatus::OK();
}

VolumeInfo Volume::Info() {
  std::lock_guard<std::mutex> lock(mu_);
  VolumeInfo info{};
  info.uuid = metadata_.superblock().uuid;
  info.generation = metadata_.superblock().generation;
  info.mode = device_->mode();
  for (const InodePtr& f : tree_.Files()) {
    info.files++;
    info.file_bytes += f->Size();
  }
  info.free_bytes = zones_.FreeBytes();
  info.zones = device_->identity().zone_count;
  info.free_zones = zones_.FreeZones();
  info.log_zones = static_cast<uint32_t>(tree_.log_zones().size());
  info.has_areas = device_->has_areas();
  info.was_killed = device_->was_killed();
  info.cut_files = cut_files_;
  return info;
}

}  // namespace leyden_fs
