// A file system in an image: mounted once per process, however many `FileSystem` objects use it.
//
// Order of locks: `space_` (shared by whatever uses extents, exclusive to move them), then a file's `writing`, then a
// stream, then `mu_` (names and metadata log), then an inode, then zones.

#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>
#include <vector>

#include "device.h"
#include "log_stream.h"
#include "metadata_log.h"
#include "tree.h"
#include "zones.h"

namespace leyden_fs {

// A file that is open for writing.
struct Writer {
  std::mutex writing;
  bool has_zone = false;
  uint32_t zone = 0;
  int lifetime = 0;
  Urgency urgency = Urgency::kPlain;
  // As many bytes as the file will have, as far as its writer has said.
  uint64_t expected_bytes = 0;
};

struct VolumeInfo {
  std::string uuid;
  Mode mode;
  uint64_t generation, files, file_bytes, free_bytes;
  uint32_t zones, free_zones, log_zones;
  bool has_areas, was_killed;
  // Files that were longer in the metadata than what the drive still holds. Never any in the sound order.
  std::vector<std::string> cut_files;
};

class Volume {
 public:
  static IOStatus Mount(const Options& options, std::unique_ptr<Volume>* volume);
  // Makes a file system. Fails if there is one, or other data, unless `force`.
  static IOStatus Format(const Options& options, bool force);
  ~Volume();

  // Ends everything orderly. Whatever is called afterwards fails.
  IOStatus Unmount();

  // Names.
  IOStatus Create(const std::string& path, InodePtr* inode);
  IOStatus Open(const std::string& path, InodePtr* inode);
  void CloseInode(const InodePtr& inode);
  IOStatus Unlink(const std::string& path);
  IOStatus Rename(const std::string& from, const std::string& to);
  IOStatus Link(const std::string& from, const std::string& to);
  IOStatus MakeDirectory(const std::string& path, bool may_exist);
  IOStatus RemoveDirectory(const std::string& path);
  IOStatus List(const std::string& path, std::vector<std::string>* children);
  IOStatus Exists(const std::string& path, bool* is_directory);
  IOStatus Stat(const std::string& path, uint64_t* size, uint64_t* modified_s, uint64_t* links, uint64_t* number);
  VolumeInfo Info();
  uint64_t FreeBytes() { return zones_.FreeBytes(); }
  // Whether tables still find free zones.
  bool HasFreeZones() { return zones_.HasFree(); }

  // Data. Bytes are readable when `Append` has returned; see FileClass for when they are durable.
  IOStatus Append(Inode* inode, Writer* writer, const char* data, size_t n);
  IOStatus Sync(Inode* inode, Writer* writer);
  IOStatus Truncate(Inode* inode, Writer* writer, uint64_t size);
  // `*got` is less than `n` at the end of the file only.
  IOStatus Read(const Inode& inode, uint64_t offset, size_t n, char* buffer, size_t* got);
  // Ends a writer: its data is synced, its zone free for others.
  IOStatus CloseWriter(Inode* inode, Writer* writer);

 private:
  Volume(const Options& options, std::unique_ptr<Device> device);

  // Mounting.
  IOStatus Load();
  IOStatus LoadLogs(const std::vector<leyden_zone>& reported, std::map<uint32_t, uint64_t>* ends);
  IOStatus ApplyLogs(std::vector<LogRecord> records);
  IOStatus CutLostExtents(const std::vector<leyden_zone>& reported);
  std::vector<ZoneUse> Uses() const;

  // Runs `work`, and again after reclaiming space as long as that helps.
  IOStatus WithSpace(const std::function<IOStatus()>& work);
  bool Reclaim(std::set<uint32_t>* tried);
  IOStatus ReclaimPlain(uint32_t zone, bool* moved);
  IOStatus CopyExtents(Inode* inode, uint32_t zone, ExtentList* moved, std::vector<Extent>* added);
  IOStatus ReclaimLog(uint32_t zone);

  // All with `mu_` held.
  IOStatus Record(const std::string& entries);
  void Free(const Inode& inode);
  IOStatus ReleaseDeadLogs();
  IOStatus NeedParent(const std::string& path) const;
  IOStatus NoFile(const std::string& path) const;

  // With `space_` held.
  LogStream* StreamOf(const Inode& inode);
  LogStream::ZoneSource SourceFor(const Inode& inode, Urgency urgency);
  IOStatus AppendPlain(Inode* inode, Writer* writer, const char* data, size_t n, size_t* done);
  IOStatus AppendLog(Inode* inode, const char* data, size_t n, size_t* done, Urgency urgency);
  IOStatus WriteBlocks(Inode* inode, Writer* writer, const std::string& bytes, size_t payload, size_t* done);
  IOStatus WriteTail(Inode* inode, Writer* writer);
  IOStatus SyncPlain(Inode* inode, Writer* writer);
  std::vector<std::pair<InodePtr, uint64_t>> UnrecordedFiles();
  IOStatus ReadExtent(const Inode& inode, const Extent& extent, char* buffer);

  const Options options_;
  const std::unique_ptr<Device> device_;
  std::shared_mutex space_;
  bool is_mounted_ = false;
  std::mutex mu_;
  Tree tree_;
  MetadataLog metadata_;
  Zones zones_;
  std::atomic<uint64_t> log_sequence_{0};
  LogStream log_stream_;
  LogStream state_stream_;
  // Zones that the streams fill, by the class of their files.
  std::map<FileClass, uint32_t> filling_;
  std::vector<std::string> cut_files_;
};

}  // namespace leyden_fs
