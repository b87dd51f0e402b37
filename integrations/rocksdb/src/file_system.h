// RocksDB's FileSystem, on a Leyden image.

#pragma once

#include <memory>
#include <string>

#include "rocksdb/file_system.h"

namespace leyden_fs {

// Opens leyden:IMAGE?OPTIONS. File systems of one image in one process share it, if they agree in their options.
rocksdb::Status OpenFileSystem(const std::string& uri, std::unique_ptr<rocksdb::FileSystem>* file_system);

}  // namespace leyden_fs
