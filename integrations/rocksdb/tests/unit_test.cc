// What each layer promises to the one above it, on the drive in memory.

#include <leyden.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>

#include "codec.h"
#include "fake_leyden.h"
#include "file_system.h"
#include "inode.h"
#include "options.h"
#include "tree.h"

namespace {

using namespace rocksdb;
using leyden_fs::OpenFileSystem;

int failures = 0;
const IOOptions kIo;

#define CHECK(condition)                                                \
  do {                                                                  \
    if (!(condition)) {                                                 \
      printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
      failures++;                                                       \
    }                                                                   \
  } while (false)

using Fs = std::unique_ptr<FileSystem>;

Status Mount(const std::string& options, Fs* fs) { return OpenFileSystem("leyden:unit" + options, fs); }

Fs Fresh(const fake::Shape& shape = fake::Shape(), const std::string& options = "?format:empty") {
  fake::Make("unit", shape);
  Fs fs;
  Status s = Mount(options, &fs);
  if (!s.ok()) printf("%s\n", s.ToString().c_str());
  CHECK(s.ok());
  return fs;
}

std::string Pattern(size_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(n, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

std::string Content(FileSystem* fs, const std::string& path) {
  std::string text;
  Status s = ReadFileToString(fs, path, &text);
  return s.ok() ? text : "(" + s.ToString() + ")";
}

IOStatus Put(FileSystem* fs, const std::string& path, const std::string& text) {
  return WriteStringToFile(fs, text, path, true);
}

bool Says(const Status& s, const std::string& word) { return s.ToString().find(word) != std::string::npos; }

void Codec() {
  // RFC 3720, B.4.
  CHECK(leyden_fs::Crc32c(std::string(32, '\0').data(), 32) == 0x8a9136aaU);
  CHECK(leyden_fs::Crc32c("123456789", 9) == 0xe3069283U);
  CHECK(leyden_fs::Crc32cByTables("123456789", 9) == 0xe3069283U);
  std::string text;
  for (size_t n = 0; n < 100; n++, text.push_back(static_cast<char>(n * 37))) {
    CHECK(leyden_fs::Crc32c(text.data(), n, 7) == leyden_fs::Crc32cByTables(text.data(), n, 7));
  }
  leyden_fs::Decoder in("\x05\0\0\0ab", 6);
  CHECK(in.Text().empty() && !in.ok());
}

void Paths() {
  CHECK(leyden_fs::NormalPath("a//b/./c/") == "/a/b/c");
  CHECK(leyden_fs::NormalPath("/a/../b") == "/b");
  CHECK(leyden_fs::NormalPath("..") == "/");
  CHECK(leyden_fs::ParentPath("/a") == "/");
  CHECK(leyden_fs::ClassOfPath("/db/000012.log") == leyden_fs::FileClass::kLog);
  CHECK(leyden_fs::ClassOfPath("/db/MANIFEST-000001") == leyden_fs::FileClass::kState);
  CHECK(leyden_fs::ClassOfPath("/db/000012.sst") == leyden_fs::FileClass::kPlain);
  CHECK(leyden_fs::ClassOfPath("/db/LOG") == leyden_fs::FileClass::kPlain);
}

void Extents() {
  leyden_fs::ExtentList list(1000);
  list.Append(100, 50);
  list.Append(150, 50);  // goes on
  list.Append(900, 100);
  list.Append(1000, 10);  // contiguous, but another zone
  CHECK(list.all().size() == 3 && list.size() == 210);
  CHECK(list.Find(60).device_offset == 160 && list.Find(60).length == 40);
  CHECK(list.Find(210).length == 0);
  list.Move({50, 5000, 100});
  CHECK(list.size() == 210 && list.Find(49).device_offset == 149 && list.Find(50).device_offset == 5000);
  CHECK(list.Find(150).device_offset == 950);
  CHECK(list.Truncate(120).size() == 3 && list.size() == 120);
}

void Uris() {
  leyden_fs::Options o;
  CHECK(leyden_fs::ParseUri("leyden:a.img?mode:selective,order:published,speed:0.5", &o).ok());
  CHECK(o.image == "a.img" && !o.flush_before_record && o.speed == 0.5);
  for (const char* bad : {"leyden:", "leyden:?mode:none", "posix:a", "leyden:a?mode:half", "leyden:a?speed:-1",
                          "leyden:a?speed:x", "leyden:a?fast", "leyden:a?plp:on,,"}) {
    leyden_fs::Options ignored;
    IOStatus s = leyden_fs::ParseUri(bad, &ignored);
    CHECK(s.IsInvalidArgument() && Says(s, "leyden:IMAGE?"));
  }
}

// Names as RocksDB uses them.
void Names() {
  Fs fs = Fresh();
  CHECK(!Put(fs.get(), "/db/a.sst", "x").ok());  // no directory
  CHECK(fs->CreateDirIfMissing("/x/db", kIo, nullptr).ok() && fs->CreateDirIfMissing("/x/db", kIo, nullptr).ok());
  CHECK(!fs->CreateDir("/x/db", kIo, nullptr).ok());
  CHECK(Put(fs.get(), "/x/db/a.sst", "one").ok() && Put(fs.get(), "/x/db/b.sst", "two").ok());
  CHECK(fs->RenameFile("/x/db/a.sst", "/x/db/b.sst", kIo, nullptr).ok());
  CHECK(Content(fs.get(), "/x/db/b.sst") == "one" && fs->FileExists("/x/db/a.sst", kIo, nullptr).IsNotFound());
  CHECK(fs->LinkFile("/x/db/b.sst", "/x/c.sst", kIo, nullptr).ok());
  uint64_t links = 0;
  bool same = false;
  CHECK(fs->NumFileLinks("/x/c.sst", kIo, &links, nullptr).ok() && links == 2);
  CHECK(fs->AreFilesSame("/x/c.sst", "/x/db/b.sst", kIo, &same, nullptr).ok() && same);
  CHECK(!fs->LinkFile("/x/db/b.sst", "/x/c.sst", kIo, nullptr).ok());
  CHECK(fs->DeleteFile("/x/db/b.sst", kIo, nullptr).ok() && Content(fs.get(), "/x/c.sst") == "one");
  CHECK(fs->RenameFile("/x", "/y", kIo, nullptr).ok() && Content(fs.get(), "/y/c.sst") == "one");
  CHECK(!fs->RenameFile("/y", "/y/z", kIo, nullptr).ok() && !fs->RenameFile("/none", "/z", kIo, nullptr).ok());
  CHECK(!fs->DeleteDir("/y", kIo, nullptr).ok() && fs->DeleteDir("/y/db", kIo, nullptr).ok());
  std::vector<std::string> children;
  CHECK(fs->GetChildren("/y", kIo, &children, nullptr).ok() && children == std::vector<std::string>{"c.sst"});
  CHECK(fs->GetChildren("/none", kIo, &children, nullptr).IsPathNotFound());
  fs.reset();
  CHECK(Mount("", &fs).ok() && Content(fs.get(), "/y/c.sst") == "one");
  CHECK(fs->NumFileLinks("/y/c.sst", kIo, &links, nullptr).ok() && links == 1);
}

// A deleted file can be read as long as it is open.
void DeletedWhileOpen() {
  Fs fs = Fresh();
  const std::string text = Pattern(100000, 1);
  CHECK(Put(fs.get(), "/a.sst", text).ok());
  std::unique_ptr<FSRandomAccessFile> file;
  CHECK(fs->NewRandomAccessFile("/a.sst", FileOptions(), &file, nullptr).ok());
  CHECK(fs->DeleteFile("/a.sst", kIo, nullptr).ok());
  for (int i = 0; i < 40; i++) {
    CHECK(Put(fs.get(), "/b.sst", Pattern(60000, 2)).ok() && fs->DeleteFile("/b.sst", kIo, nullptr).ok());
  }
  std::string scratch(text.size(), '\0');
  Slice got;
  CHECK(file->Read(0, text.size(), kIo, &got, scratch.data(), nullptr).ok() && got == Slice(text));
}

void TruncateAndReuse() {
  for (const char* path : {"/a.sst", "/a.log"}) {
    Fs fs = Fresh();
    const std::string text = Pattern(20000, 3);
    CHECK(Put(fs.get(), path, text).ok());
    CHECK(fs->Truncate(path, 5000, kIo, nullptr).ok() && Content(fs.get(), path) == text.substr(0, 5000));
    CHECK(fs->Truncate(path, 6000, kIo, nullptr).ok());
    CHECK(Content(fs.get(), path) == text.substr(0, 5000) + std::string(1000, '\0'));
    std::unique_ptr<FSWritableFile> file;
    CHECK(fs->ReopenWritableFile(path, FileOptions(), &file, nullptr).ok());
    CHECK(file->Append("more", kIo, nullptr).ok() && file->Close(kIo, nullptr).ok());
    fs.reset();
    CHECK(Mount("", &fs).ok());
    CHECK(Content(fs.get(), path) == text.substr(0, 5000) + std::string(1000, '\0') + "more");
    CHECK(fs->ReuseWritableFile("/b.log", path, FileOptions(), &file, nullptr).ok());
    CHECK(file->Append("new", kIo, nullptr).ok() && file->Close(kIo, nullptr).ok());
    CHECK(Content(fs.get(), "/b.log") == "new" && !fs->FileExists(path, kIo, nullptr).ok());
  }
}

void Locks() {
  Fs fs = Fresh();
  FileLock* lock = nullptr;
  FileLock* other = nullptr;
  CHECK(fs->LockFile("/LOCK", kIo, &lock, nullptr).ok() && !fs->LockFile("/LOCK", kIo, &other, nullptr).ok());
  CHECK(fs->UnlockFile(lock, kIo, nullptr).ok() && fs->LockFile("/LOCK", kIo, &lock, nullptr).ok());
  CHECK(fs->UnlockFile(lock, kIo, nullptr).ok());
}

// More open files than the drive has active zones, in any order: none waits, and none gets another's bytes.
void ManyOpenFiles() {
  Fs fs = Fresh();
  std::vector<std::unique_ptr<FSWritableFile>> files(30);
  std::vector<std::string> texts(30);
  for (int round = 0; round < 5; round++) {
    for (size_t i = 0; i < files.size(); i++) {
      const std::string path = "/" + std::to_string(i) + (i % 5 == 0 ? ".log" : ".sst");
      if (round == 0) CHECK(fs->NewWritableFile(path, FileOptions(), &files[i], nullptr).ok());
      const std::string piece = Pattern(3000, i * 10 + static_cast<size_t>(round));
      texts[i] += piece;
      CHECK(files[i]->Append(piece, kIo, nullptr).ok());
      if (i % 3 == 0) CHECK(files[i]->Sync(kIo, nullptr).ok());
    }
  }
  for (auto& f : files) CHECK(f->Close(kIo, nullptr).ok());
  files.clear();
  fs.reset();
  CHECK(Mount("", &fs).ok());
  for (size_t i = 0; i < texts.size(); i++) {
    CHECK(Content(fs.get(), "/" + std::to_string(i) + (i % 5 == 0 ? ".log" : ".sst")) == texts[i]);
  }
}

// A put takes no flush and no block of its own; a synced table takes one flush.
void Costs() {
  Fs fs = Fresh();
  std::unique_ptr<FSWritableFile> log;
  CHECK(fs->NewWritableFile("/1.log", FileOptions(), &log, nullptr).ok());
  const uint64_t flushes = fake::Flushes("unit");
  for (int i = 0; i < 50; i++) CHECK(log->Append(Pattern(925, 1), kIo, nullptr).ok() && log->Sync(kIo, nullptr).ok());
  CHECK(fake::Flushes("unit") == flushes);
  // 50 of 976 bytes fit a zone of 65536 without padding, and 50 blocks do not.
  Fs again;
  CHECK(Mount("?format:empty", &again).IsBusy() || again != nullptr);
  uint64_t free_bytes = 0;
  // Two zones hold metadata and one the log; seven are kept for opening a database.
  CHECK(fs->GetFreeSpace("/", kIo, &free_bytes, nullptr).ok() && free_bytes == (24 - 2 - 1 - 7) * 65536);
  CHECK(Put(fs.get(), "/1.sst", Pattern(10000, 2)).ok() && fake::Flushes("unit") == flushes + 1);
}

// Fills up, deletes, and fills up again: what was whole stays whole, and there is always a way out.
void Full() {
  for (uint32_t region : {1U, 0U}) {
    fake::Shape shape;
    shape.region = region;
    shape.areas = region == 0 ? 0 : 4;
    shape.zones = 14;
    Fs fs = Fresh(shape);
    CHECK(Put(fs.get(), "/keep.sst", Pattern(50000, 7)).ok() && Put(fs.get(), "/KEEP.log", Pattern(9000, 8)).ok());
    CHECK(Put(fs.get(), "/MANIFEST-1", Pattern(500, 9)).ok());
    size_t least = SIZE_MAX;
    for (int round = 0; round < 100; round++) {
      size_t whole = 0;
      IOStatus s;
      for (; whole < 200; whole++) {
        // Pieces that leave every zone half dead when every second one is deleted.
        const std::string path = "/" + std::to_string(whole) + (whole % 7 == 6 ? ".log" : ".sst");
        s = Put(fs.get(), path, Pattern(9000, whole));
        if (!s.ok()) break;
      }
      CHECK(s.IsNoSpace() && Says(s, "delete files"));
      if (round > 0) least = std::min(least, whole);
      CHECK(Content(fs.get(), "/keep.sst") == Pattern(50000, 7) && Content(fs.get(), "/KEEP.log") == Pattern(9000, 8));
      for (size_t i = 0; i < whole; i++) {
        const std::string path = "/" + std::to_string(i) + (i % 7 == 6 ? ".log" : ".sst");
        CHECK(Content(fs.get(), path) == Pattern(9000, i));
      }
      if (round % 10 == 9) {
        fs.reset();
        CHECK(Mount("", &fs).ok());
      }
      // Only every second one: so zones are half full of what lives, and must be copied.
      for (size_t i = 0; i <= whole; i++) {
        const std::string path = "/" + std::to_string(i) + (i % 7 == 6 ? ".log" : ".sst");
        if ((i % 2 == 0 || round % 2 == 1) && fs->FileExists(path, kIo, nullptr).ok()) {
          CHECK(fs->DeleteFile(path, kIo, nullptr).ok());
        }
      }
    }
    // 12 zones for data, 3 of which plain files must leave: 9 * 65536 bytes are 48 files of three blocks.
    CHECK(least >= 30);
    CHECK(Content(fs.get(), "/MANIFEST-1") == Pattern(500, 9));
  }
}

struct Database {
  // With tables of half a megabyte, or what is wrong.
  explicit Database(Fs fs, size_t buffer_bytes) : fs(std::move(fs)), env(NewCompositeEnv(this->fs)) {
    rocksdb::Options options;
    options.env = env.get();
    options.create_if_missing = true;
    options.compression = kNoCompression;
    options.write_buffer_size = buffer_bytes;
    options.target_file_size_base = 512 << 10;
    options.max_bytes_for_level_base = 2 << 20;
    DB* opened = nullptr;
    status = DB::Open(options, "/db", &opened);
    db.reset(opened);
  }
  ~Database() {
    if (db != nullptr) db->Close().PermitUncheckedError();
  }
  std::shared_ptr<FileSystem> fs;
  std::unique_ptr<Env> env;
  std::unique_ptr<DB> db;
  Status status;
};

std::string Key(int number) { return "k" + std::to_string(number); }

// RocksDB itself fills its drive and loses its power; it is opened again, has everything, and can delete.
void FullDatabase() {
  for (const auto& shape : {std::make_pair(1U, 512U << 10), {0U, 512U << 10}, {1U, 4U << 20}}) {
    fake::Shape drive;
    drive.zones = 40;
    drive.zone_bytes = 1 << 20;
    drive.active_max = 14;
    drive.region = shape.first;
    drive.areas = shape.first == 1 ? 4 : 0;
    Fs fs = Fresh(drive);
    WriteOptions sync;
    sync.sync = true;
    int put = 0;
    {
      Database full(std::move(fs), shape.second);
      CHECK(full.status.ok());
      Status s;
      for (; s.ok(); put++) s = full.db->Put(sync, Key(put), Pattern(4000, put));
      put--;
      CHECK(put > 4000 && (s.IsNoSpace() || s.IsIncomplete()) && Says(s, "delete files"));
      // RocksDB writes to its LOG that there is no space: that must not be what ends it.
      CHECK(!full.db->Put(sync, "more", "x").ok());
      fake::Cut("unit", 5);
    }
    fake::Restore("unit");
    CHECK(Mount("", &fs).ok());
    {
      Database again(std::move(fs), shape.second);
      if (!again.status.ok()) printf("%s\n", again.status.ToString().c_str());
      CHECK(again.status.ok());
      if (!again.status.ok()) return;
      int missing = 0;
      std::string value;
      for (int i = 0; i < put; i++) {
        missing += !again.db->Get(ReadOptions(), Key(i), &value).ok() || value != Pattern(4000, i);
      }
      CHECK(missing == 0);
      CHECK(again.db->DeleteRange(sync, again.db->DefaultColumnFamily(), "k", "l").ok());
    }
    CHECK(Mount("", &fs).ok());
    {
      Database emptied(std::move(fs), shape.second);
      CHECK(emptied.status.ok());
      // Whether RocksDB compacts depends on what it has seen of the drive ("Compaction too large"); this does not.
      CHECK(DeleteFilesInRange(emptied.db.get(), emptied.db->DefaultColumnFamily(), nullptr, nullptr).ok());
      CHECK(emptied.db->Put(sync, "k1", "new").ok());
    }
    CHECK(Mount("", &fs).ok());
    uint64_t free_bytes = 0;
    CHECK(fs->GetFreeSpace("/", kIo, &free_bytes, nullptr).ok() && free_bytes > (4 << 20));
  }
}

// Many threads on a drive that is nearly full, so that zones are copied beneath readers.
void Threads() {
  fake::Shape shape;
  shape.zones = 20;
  Fs fs = Fresh(shape);
  const std::string kept = Pattern(90000, 1);
  CHECK(Put(fs.get(), "/kept.sst", kept).ok());
  std::atomic<int> wrong{0};
  std::atomic<int> full{0};
  auto work = [&](uint64_t number) {
    std::mt19937_64 random(number);
    std::vector<std::string> mine;
    for (uint64_t i = 0; i < 300; i++) {
      const std::string path = "/" + std::to_string(number) + "-" + std::to_string(i) + (i % 5 == 0 ? ".log" : ".sst");
      IOStatus s = Put(fs.get(), path, Pattern(i * 37 % 20000, i));
      if (s.IsNoSpace()) full++;
      if (!s.ok() && !s.IsNoSpace()) wrong++;
      if (s.ok() && Content(fs.get(), path) != Pattern(i * 37 % 20000, i)) wrong++;
      if (Content(fs.get(), "/kept.sst") != kept) wrong++;
      mine.push_back(path);
      while (mine.size() > 8 || (!s.ok() && !mine.empty())) {
        const size_t which = random() % mine.size();
        if (fs->FileExists(mine[which], kIo, nullptr).ok() && !fs->DeleteFile(mine[which], kIo, nullptr).ok()) wrong++;
        mine.erase(mine.begin() + static_cast<ptrdiff_t>(which));
      }
    }
  };
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; t++) threads.emplace_back(work, t);
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
  CHECK(full < 600);
}

// More names than a metadata zone can hold are refused while there is still a way back.
void TooManyNames() {
  fake::Shape shape;
  Fs fs = Fresh(shape);
  IOStatus s;
  int made = 0;
  for (; made < 5000; made++) {
    s = Put(fs.get(), "/file-with-a-long-name-" + std::to_string(made) + ".sst", "");
    if (!s.ok()) break;
  }
  CHECK(s.IsNoSpace() && made > 100 && made < 5000);
  for (int i = 0; i < made; i++) {
    CHECK(fs->DeleteFile("/file-with-a-long-name-" + std::to_string(i) + ".sst", kIo, nullptr).ok());
  }
  CHECK(Put(fs.get(), "/again.sst", "x").ok());
}

void BadImages() {
  Fs fs;
  fake::Make("unit", fake::Shape());
  Status s = Mount("", &fs);
  CHECK(s.IsNotFound() && Says(s, "leyden-fs mkfs unit"));
  CHECK(OpenFileSystem("leyden:none", &fs).IsNotFound());
  fake::FailOpen("unit", LEYDEN_E_IN_USE);
  s = Mount("", &fs);
  CHECK(s.IsBusy() && Says(s, "unit: open") && Says(s, "close the other program"));
  fake::FailOpen("unit", LEYDEN_E_FOREIGN);
  CHECK(Mount("", &fs).IsInvalidArgument());
  fake::FailOpen("unit", LEYDEN_E_DAMAGED);
  CHECK(Mount("", &fs).IsCorruption());

  fake::Shape shape;
  shape.is_zoned = false;
  fake::Make("unit", shape);
  s = Mount("", &fs);
  CHECK(s.IsInvalidArgument() && Says(s, "zoned drive"));
  shape = fake::Shape();
  shape.region = LEYDEN_REGION_NONE;
  shape.areas = 0;
  fake::Make("unit", shape);
  s = Mount("?mode:selective,format:empty", &fs);
  CHECK(s.IsInvalidArgument() && Says(s, "device.buffer.region=selective"));
  shape = fake::Shape();
  shape.active_max = 4;
  fake::Make("unit", shape);
  s = Mount("?format:empty", &fs);
  CHECK(s.IsInvalidArgument() && Says(s, "max_active"));
  shape = fake::Shape();
  shape.zone_bytes = 4 * 4096;
  fake::Make("unit", shape);
  s = Mount("?format:empty", &fs);
  CHECK(s.IsNoSpace() && Says(s, "too small for metadata"));

  fs = Fresh();
  CHECK(Mount("?order:published", &fs).IsBusy());
  // Not ours: there is data, and no superblock.
  fs.reset();
  fake::Byte("unit", 12) ^= 1;
  fake::Byte("unit", 65536 + 12) ^= 1;
  s = Mount("", &fs);
  CHECK(s.IsInvalidArgument() && Says(s, "hold no Leyden file system"));
}

// Every bit of the metadata counts: flipped, it is found or makes no difference, and never takes the process along.
// A database must not see the error, only the end: db_stress believes a put that has failed.
void DiesAtCut() {
  Fs fs;
  for (const char* option : {"", ",at_cut:fail", ",at_cut:die"}) {
    fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      fake::Make("unit", fake::Shape());
      const Status mounted = Mount(std::string("?format:empty") + option, &fs);
      fake::Cut("unit", 1);
      _exit(mounted.ok() && !Put(fs.get(), "/1.log", "x").ok() ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    CHECK(strcmp(option, ",at_cut:die") == 0 ? is_killed : WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
}

// What a program does twice is one line; reads of several files in turn are one line each; RocksDB's LOG is left out, and
// what comes after the file system is closed is not written.
void Traces() {
  const std::string path = "unit.files";
  unlink(path.c_str());
  Fs fs = Fresh(fake::Shape(), "?format:empty,trace:" + path);
  std::shared_ptr<Logger> info;
  CHECK(fs->NewLogger("/LOG", kIo, &info, nullptr).ok());
  info->SetInfoLogLevel(InfoLogLevel::INFO_LEVEL);
  std::unique_ptr<FSWritableFile> log;
  CHECK(fs->NewWritableFile("/1.log", FileOptions(), &log, nullptr).ok());
  for (int i = 0; i < 3; i++) {
    CHECK(log->Append("0123456789", kIo, nullptr).ok());
    Log(info, "append %d", i);
    info->Flush();
  }
  CHECK(info->Close().ok());
  info.reset();
  uint64_t logged = 0;
  CHECK(fs->GetFileSize("/LOG", kIo, &logged, nullptr).ok() && logged > 0);
  CHECK(Put(fs.get(), "/2.sst", "table").ok());
  std::unique_ptr<FSRandomAccessFile> files[2];
  CHECK(fs->NewRandomAccessFile("/1.log", FileOptions(), &files[0], nullptr).ok());
  CHECK(fs->NewRandomAccessFile("/2.sst", FileOptions(), &files[1], nullptr).ok());
  char scratch[4];
  Slice got;
  for (int i = 0; i < 6; i++) CHECK(files[i % 2]->Read(0, 4, kIo, &got, scratch, nullptr).ok());
  std::thread([&] { CHECK(fs->RenameFile("/2.sst", "/3.sst", kIo, nullptr).ok()); }).join();
  CHECK(log->Close(kIo, nullptr).ok());
  CHECK(fs->DeleteFile("/3.sst", kIo, nullptr).ok());
  log.reset();
  files[0].reset();
  files[1].reset();
  fs.reset();
  std::string text;
  CHECK(ReadFileToString(FileSystem::Default().get(), path, &text).ok());
  std::string lines;
  for (size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) {
    unsigned long long sequence, work, file, count, bytes;
    unsigned thread;
    char op;
    char name[16] = "";
    const std::string line = text.substr(at, text.find('\n', at) - at);
    if (sscanf(line.c_str(), "%llu %u %llu %c %llu %llu %llu %15s", &sequence, &thread, &work, &op, &file, &count,
               &bytes, name) < 7) {
      lines += line + ";";
      continue;
    }
    lines += std::to_string(sequence) + " " + std::to_string(thread) + " " + op + " " + std::to_string(file) + " " +
             std::to_string(count) + " " + std::to_string(bytes) + name + ";";
  }
  const std::string expected =
      "leyden-files 1;0 0 c 0 1 0/1.log;1 0 a 0 3 30;2 0 c 1 1 0/2.sst;3 0 a 1 1 5;4 0 s 1 1 0;"
      "7 1 n 1 1 0/3.sst;5 0 r 0 3 12;6 0 r 1 3 12;8 0 x 0 1 0;9 0 d 1 1 0;end;";
  if (lines != expected) printf("%s\n", lines.c_str());
  CHECK(lines == expected);
  Fs other;
  const Status again = Mount("?trace:" + path, &other);
  CHECK(Says(again, path) && Says(again, "name a new file"));
  unlink(path.c_str());
}

void FlippedBits() {
  uint64_t found = 0;
  uint64_t unharmed = 0;
  Fresh();
  uint64_t used = 0;
  for (uint64_t at = 0; at < used || at == 0; at++) {
    Fs fs = Fresh();
    CHECK(Put(fs.get(), "/a.sst", "table").ok() && Put(fs.get(), "/1.log", "log").ok());
    CHECK(fs->CreateDir("/d", kIo, nullptr).ok());
    fs.reset();
    // The log is in one of the first two zones.
    const uint64_t zone = fake::Byte("unit", 4) != 0 || fake::Byte("unit", 12) != 0 ? 0 : 65536;
    if (at == 0) {
      for (uint64_t i = 0; i < 65536; i++) {
        if (fake::Byte("unit", zone + i) != 0) used = i;
      }
    }
    fake::Byte("unit", zone + at) ^= static_cast<char>(1 << (at % 8));
    Status s = Mount("", &fs);
    if (s.ok()) {
      const bool whole = Content(fs.get(), "/a.sst") == "table" && Content(fs.get(), "/1.log") == "log" &&
                         fs->FileExists("/d", kIo, nullptr).ok();
      if (!whole) printf("bit of byte %llu\n", static_cast<unsigned long long>(at));
      CHECK(whole);
      unharmed++;
    } else {
      CHECK(s.IsCorruption() || s.IsInvalidArgument() || s.IsNotSupported());
      found++;
    }
  }
  CHECK(found > 50 && unharmed < found / 5);
}

}  // namespace

int main() {
  const struct {
    const char* name;
    void (*run)();
  } tests[] = {{"codec", Codec},
               {"paths", Paths},
               {"extents", Extents},
               {"uris", Uris},
               {"names", Names},
               {"deleted while open", DeletedWhileOpen},
               {"truncate and reuse", TruncateAndReuse},
               {"locks", Locks},
               {"many open files", ManyOpenFiles},
               {"costs", Costs},
               {"full", Full},
               {"full database", FullDatabase},
               {"threads", Threads},
               {"too many names", TooManyNames},
               {"bad images", BadImages},
               {"dies at cut", DiesAtCut},
               {"traces", Traces},
               {"flipped bits", FlippedBits}};
  for (const auto& t : tests) {
    const int before = failures;
    t.run();
    printf("%-20s %s\n", t.name, failures == before ? "ok" : "FAILED");
  }
  return failures == 0 ? 0 : 1;
}
