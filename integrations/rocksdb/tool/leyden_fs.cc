// leyden-fs: makes, shows, checks and copies the file systems that the RocksDB plugin keeps on images.

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "file_system.h"
#include "volume.h"

namespace {

using namespace leyden_fs;
using rocksdb::FileOptions;
using rocksdb::FileSystem;
using rocksdb::IOOptions;
using rocksdb::Slice;
using rocksdb::Status;

const IOOptions kIo;
constexpr size_t kPieceBytes = 1 << 20;

const char kUsage[] =
    "leyden-fs: file systems that the RocksDB plugin keeps on zoned images\n"
    "\n"
    "  leyden-fs mkfs IMAGE [--force]      make one; --force gives up what is there\n"
    "  leyden-fs info IMAGE                what it is and what is free\n"
    "  leyden-fs ls IMAGE [DIRECTORY]      files with their sizes, and what is in directories\n"
    "  leyden-fs check IMAGE               read everything, metadata and data, and change nothing\n"
    "  leyden-fs export IMAGE FROM TO      copy a file or directory to the host\n"
    "  leyden-fs import IMAGE FROM TO      copy a file of the host to the image\n"
    "\n"
    "IMAGE is a file, or a URI: leyden:IMAGE?OPTIONS. Exit status: 0, 1 for a failure, 2 for a wrong call.\n";

int Report(const Status& s) {
  if (s.ok()) return 0;
  fprintf(stderr, "leyden-fs: %s\n", s.ToString().c_str());
  return 1;
}

std::string UriOf(const std::string& image, bool read_only) {
  std::string uri = image.compare(0, 7, "leyden:") == 0 ? image : "leyden:" + image;
  if (read_only) uri += uri.find('?') == std::string::npos ? "?access:read" : ",access:read";
  return uri;
}

Status Mount(const std::string& image, std::unique_ptr<Volume>* volume) {
  Options options;
  IOStatus s = ParseUri(UriOf(image, true), &options);
  return s.ok() ? Volume::Mount(options, volume) : s;
}

// Calls `visit` for everything in `directory` and below; sizes of directories are 0.
Status Walk(FileSystem* fs, const std::string& directory,
            const std::function<Status(const std::string&, bool, uint64_t)>& visit) {
  std::vector<std::string> names;
  Status s = fs->GetChildren(directory, kIo, &names, nullptr);
  for (size_t i = 0; s.ok() && i < names.size(); i++) {
    const std::string path = NormalPath(directory + "/" + names[i]);
    bool is_directory = false;
    uint64_t size = 0;
    s = fs->IsDirectory(path, kIo, &is_directory, nullptr);
    if (s.ok()) s = fs->GetFileSize(path, kIo, &size, nullptr);
    if (s.ok()) s = visit(path, is_directory, size);
    if (s.ok() && is_directory) s = Walk(fs, path, visit);
  }
  return s;
}

// Reads a file to its end, and hands on its bytes.
Status ReadFile(FileSystem* fs, const std::string& path, const std::function<Status(const Slice&)>& take) {
  std::unique_ptr<rocksdb::FSSequentialFile> file;
  uint64_t size = 0;
  uint64_t done = 0;
  Status s = fs->GetFileSize(path, kIo, &size, nullptr);
  if (s.ok()) s = fs->NewSequentialFile(path, FileOptions(), &file, nullptr);
  std::string buffer(kPieceBytes, '\0');
  while (s.ok()) {
    Slice piece;
    s = file->Read(buffer.size(), kIo, &piece, buffer.data(), nullptr);
    if (!s.ok() || piece.empty()) break;
    done += piece.size();
    s = take(piece);
  }
  if (s.ok() && done != size) s = Status::Corruption(path + ": it ends early");
  return s;
}

int MakeFs(const std::string& image, bool force) {
  Options options;
  Status s = ParseUri(UriOf(image, false), &options);
  if (s.ok()) s = Volume::Format(options, force);
  return Report(s);
}

int Info(const std::string& image) {
  std::unique_ptr<Volume> volume;
  Status s = Mount(image, &volume);
  if (!s.ok()) return Report(s);
  const VolumeInfo info = volume->Info();
  auto number = [](uint64_t n) { return static_cast<unsigned long long>(n); };
  printf("uuid        %s\n", info.uuid.c_str());
  printf("format      %u\n", kFormatVersion);
  printf("mode        %s\n", ModeName(info.mode));
  printf("logs        %s\n", info.has_areas ? "in Zone Random Write Areas" : "in whole blocks");
  printf("mounts      %llu snapshots of the metadata\n", number(info.generation));
  printf("files       %llu, %llu bytes\n", number(info.files), number(info.file_bytes));
  printf("zones       %u: %u free, %u of logs\n", info.zones, info.free_zones, info.log_zones);
  printf("free        %llu bytes\n", number(info.free_bytes));
  return 0;
}

int List(const std::string& image, const std::string& directory) {
  std::unique_ptr<FileSystem> fs;
  Status s = OpenFileSystem(UriOf(image, true), &fs);
  if (s.ok()) {
    s = Walk(fs.get(), NormalPath(directory), [](const std::string& path, bool is_directory, uint64_t size) {
      printf("%12llu %s%s\n", static_cast<unsigned long long>(size), path.c_str(), is_directory ? "/" : "");
      return Status::OK();
    });
  }
  return Report(s);
}

int Check(const std::string& image) {
  std::vector<std::string> cut;
  {
    std::unique_ptr<Volume> volume;
    Status s = Mount(image, &volume);
    if (!s.ok()) return Report(s);
    cut = volume->Info().cut_files;
  }
  for (const std::string& c : cut) fprintf(stderr, "leyden-fs: %s: data is lost: %s\n", image.c_str(), c.c_str());
  std::unique_ptr<FileSystem> fs;
  Status s = OpenFileSystem(UriOf(image, true), &fs);
  unsigned long long files = 0;
  unsigned long long bytes = 0;
  if (s.ok()) {
    s = Walk(fs.get(), "/", [&](const std::string& path, bool is_directory, uint64_t size) {
      if (is_directory) return Status::OK();
      files++;
      bytes += size;
      return ReadFile(fs.get(), path, [](const Slice&) { return Status::OK(); });
    });
  }
  if (!s.ok()) return Report(s);
  printf("%s: %llu files, %llu bytes: %s\n", image.c_str(), files, bytes, cut.empty() ? "whole" : "DATA IS LOST");
  return cut.empty() ? 0 : 1;
}

Status ExportFile(FileSystem* fs, const std::string& from, const std::string& to) {
  // A link there, dangling or not, is not followed.
  const int made = open(to.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
  if (made < 0 && errno == EEXIST) return Status::IOError(to + ": exists already", "name another file");
  if (made < 0) return Status::IOError(to, strerror(errno));
  FILE* out = fdopen(made, "wb");
  Status s = ReadFile(fs, from, [&](const Slice& piece) {
    const bool written = fwrite(piece.data(), 1, piece.size(), out) == piece.size();
    return written ? Status::OK() : Status::IOError(to + ": cannot be written");
  });
  if (fclose(out) != 0 && s.ok()) s = Status::IOError(to + ": cannot be written");
  if (!s.ok()) remove(to.c_str());
  return s;
}

int Export(const std::string& image, const std::string& from, const std::string& to) {
  std::unique_ptr<FileSystem> fs;
  Status s = OpenFileSystem(UriOf(image, true), &fs);
  bool is_directory = false;
  if (s.ok()) s = fs->IsDirectory(from, kIo, &is_directory, nullptr);
  if (s.ok() && !is_directory) return Report(ExportFile(fs.get(), from, to));
  FileSystem* host = FileSystem::Default().get();
  if (s.ok()) s = host->CreateDir(to, kIo, nullptr);
  const std::string root = NormalPath(from);
  if (s.ok()) {
    s = Walk(fs.get(), root, [&](const std::string& path, bool is_dir, uint64_t) {
      const std::string name = path.substr(root == "/" ? 1 : root.size() + 1);
      // An image of a stranger's may hold any name.
      if (("/" + name + "/").find("/../") != std::string::npos) return Status::Corruption(path, "leads out of its folder");
      const std::string target = to + "/" + name;
      if (is_dir) return Status(host->CreateDir(target, kIo, nullptr));
      return ExportFile(fs.get(), path, target);
    });
  }
  return Report(s);
}

int Import(const std::string& image, const std::string& from, const std::string& to) {
  std::unique_ptr<FileSystem> fs;
  std::unique_ptr<rocksdb::FSWritableFile> file;
  Status s = OpenFileSystem(UriOf(image, false), &fs);
  if (s.ok() && fs->FileExists(to, kIo, nullptr).ok()) s = Status::IOError(to + ": exists already");
  if (s.ok()) s = fs->CreateDirIfMissing(ParentPath(NormalPath(to)), kIo, nullptr);
  // Under another name until it is whole.
  const std::string partial = to + ".partial";
  if (s.ok()) s = fs->NewWritableFile(partial, FileOptions(), &file, nullptr);
  if (s.ok()) {
    s = ReadFile(FileSystem::Default().get(), from,
                 [&](const Slice& piece) { return Status(file->Append(piece, kIo, nullptr)); });
    if (s.ok()) s = file->Close(kIo, nullptr);
    file.reset();
    if (s.ok()) s = fs->RenameFile(partial, to, kIo, nullptr);
    if (!s.ok()) fs->DeleteFile(partial, kIo, nullptr).PermitUncheckedError();
  }
  return Report(s);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> a(argv + 1, argv + argc);
  const std::string command = a.empty() ? "" : a[0];
  if (command == "--help" || command == "help") {
    fputs(kUsage, stdout);
    return 0;
  }
  if (command == "mkfs" && a.size() == 2) return MakeFs(a[1], false);
  if (command == "mkfs" && a.size() == 3 && (a[1] == "--force" || a[2] == "--force")) {
    return MakeFs(a[1] == "--force" ? a[2] : a[1], true);
  }
  if (command == "info" && a.size() == 2) return Info(a[1]);
  if (command == "ls" && (a.size() == 2 || a.size() == 3)) return List(a[1], a.size() == 3 ? a[2] : "/");
  if (command == "check" && a.size() == 2) return Check(a[1]);
  if (command == "export" && a.size() == 4) return Export(a[1], a[2], a[3]);
  if (command == "import" && a.size() == 4) return Import(a[1], a[2], a[3]);
  fputs(kUsage, stderr);
  return 2;
}
