// RocksDB's own LOG. What finds no room is left out: a log of messages must not stop the database that it is about.

#pragma once

#include <functional>
#include <memory>

#include "file_objects.h"
#include "rocksdb/env.h"

namespace leyden_fs {

// `has_room` says whether the drive has more room than it needs to be opened again.
std::shared_ptr<rocksdb::Logger> MakeInfoLog(std::unique_ptr<FSWritableFile> file, std::function<bool()> has_room);

}  // namespace leyden_fs
