// Tells RocksDB about URIs that begin with "leyden:", when this library is loaded.

#include "file_system.h"
#include "rocksdb/utilities/object_registry.h"

namespace {

rocksdb::FileSystem* Make(const std::string& uri, std::unique_ptr<rocksdb::FileSystem>* guard, std::string* message) {
  const rocksdb::Status s = leyden_fs::OpenFileSystem(uri, guard);
  // RocksDB prints this text as the reason.
  if (!s.ok()) *message = s.ToString();
  return guard->get();
}

[[maybe_unused]] const bool kIsRegistered = [] {
  rocksdb::ObjectLibrary::Default()->AddFactory<rocksdb::FileSystem>(
      rocksdb::ObjectLibrary::PatternEntry("leyden", false).AddSeparator(":"), Make);
  return true;
}();

}  // namespace
