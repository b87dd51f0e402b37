// What a URI says: leyden:IMAGE?NAME:VALUE,NAME:VALUE; leyden:unix:PATH?... of a drive that is served.

#pragma once

#include <cstdint>
#include <string>

#include "rocksdb/io_status.h"

namespace leyden_fs {

using rocksdb::IOStatus;

// What of the drive's write buffer the file system relies on.
enum class Mode { kAuto, kNone, kSelective, kFull };

const char* ModeName(Mode mode);

struct Options {
  std::string image;
  // kAuto: what the drive has. Anything else must be what the drive has, or kNone.
  Mode mode = Mode::kAuto;
  // Flush the drive before the metadata record of a synced file. The published host code does not.
  bool flush_before_record = true;
  // Protect log data. Without it the file system acknowledges as if it did: for study only.
  bool protect_logs = true;
  // Protect metadata. The same.
  bool protect_metadata = true;
  // Make a file system if all zones are empty.
  bool format_if_empty = false;
  // Change nothing: neither names nor data can be written.
  bool read_only = false;
  // Share of real time at which the drive runs; 0 for no latency.
  double speed = 0;
  // The image answers `leyden cut`, `restore` and `status`.
  bool control = false;
  // A command that finds the drive without power kills this process: so a machine and its drive go together.
  bool die_at_cut = false;
  // Kill this process before the nth command of reclaims of plain files, or of logs, counted from the mount; 0: never. For
  // tests.
  uint64_t kill_in_plain_reclaim = 0;
  uint64_t kill_in_log_reclaim = 0;
  // A file to record the drive's commands in; empty for none.
  std::string record;
  // A file to write down what the file system is asked for; empty for none.
  std::string trace;

  // The image is not a file but the address of a served drive.
  bool is_served() const { return image.compare(0, 5, "unix:") == 0; }

  // The options as one text: two mounts of one image must agree in it.
  std::string Canonical() const;
};

// Reads a URI. RocksDB takes an "=" in it as the beginning of an option map, so values follow a colon; an "="
// is taken, too, where it gets here.
IOStatus ParseUri(const std::string& uri, Options* options);

}  // namespace leyden_fs
