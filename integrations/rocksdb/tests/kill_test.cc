// A database on a real image, killed at random moments: every acknowledged put must be there, at sync=0 too.
//
//   kill_test IMAGE ROUNDS [OPTIONS]

#include <leyden.h>
#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "file_system.h"

namespace {

using namespace rocksdb;

std::string Key(uint64_t n) { return "key" + std::to_string(n % 5000); }
std::string Value(uint64_t n) { return std::to_string(n) + std::string(100 + n * 37 % 900, static_cast<char>('a' + n % 26)); }

std::unique_ptr<DB> OpenDb(const std::string& uri, std::unique_ptr<Env>* env) {
  std::unique_ptr<FileSystem> fs;
  Status s = leyden_fs::OpenFileSystem(uri, &fs);
  DB* db = nullptr;
  if (s.ok()) {
    *env = NewCompositeEnv(std::shared_ptr<FileSystem>(std::move(fs)));
    rocksdb::Options options;
    options.env = env->get();
    options.create_if_missing = true;
    options.write_buffer_size = 1 << 20;
    options.target_file_size_base = 1 << 20;
    s = DB::Open(options, "/db", &db);
  }
  if (!s.ok()) fprintf(stderr, "open: %s\n", s.ToString().c_str());
  return std::unique_ptr<DB>(db);
}

// Puts number after number, and tells each that is acknowledged.
[[noreturn]] void Child(const std::string& uri, uint64_t from, int out) {
  std::unique_ptr<Env> env;
  std::unique_ptr<DB> db = OpenDb(uri, &env);
  if (db == nullptr) _exit(3);
  for (uint64_t n = from;; n++) {
    if (!db->Put(WriteOptions(), Key(n), Value(n)).ok()) _exit(4);
    if (write(out, &n, sizeof n) != sizeof n) _exit(5);
  }
}

// Puts after `acked` may be there or not; of a key the newest acknowledged one must be.
int Missing(DB* db, uint64_t acked) {
  int missing = 0;
  for (uint64_t n = acked; n > 0 && n + 5000 > acked; n--) {
    std::string value;
    Status s = db->Get(ReadOptions(), Key(n), &value);
    const uint64_t is = s.ok() ? strtoull(value.c_str(), nullptr, 10) : 0;
    if (is < n || value != Value(is) || is % 5000 != n % 5000) {
      if (missing++ == 0) {
        fprintf(stderr, "put %llu of %llu: %s %llu\n", static_cast<unsigned long long>(n),
                static_cast<unsigned long long>(acked), s.ToString().c_str(), static_cast<unsigned long long>(is));
      }
    }
  }
  return missing;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string image = argv[1];
  const int rounds = atoi(argv[2]);
  const std::string uri = "leyden:" + image + (argc > 3 ? argv[3] : "");
  remove(image.c_str());
  const char* settings[] = {"device.zoned.zrwa.count=4"};
  if (leyden_create(image.c_str(), "devices/zns", settings, 1) != LEYDEN_OK) {
    fprintf(stderr, "%s\n", leyden_last_error());
    return 1;
  }
  {
    // In a child, because a drive is useless after a fork.
    const pid_t pid = fork();
    if (pid == 0) {
      std::unique_ptr<FileSystem> fs;
      _exit(leyden_fs::OpenFileSystem(uri + (argc > 3 ? ",format:empty" : "?format:empty"), &fs).ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(pid, &status, 0);
  }
  std::mt19937 random(1);
  uint64_t acked = 0;
  for (int round = 0; round < rounds; round++) {
    int ends[2];
    if (pipe(ends) != 0) return 1;
    const pid_t pid = fork();
    if (pid == 0) Child(uri, acked + 1, ends[1]);
    close(ends[1]);
    const uint64_t stop = acked + 1 + random() % 6000;
    uint64_t n = 0;
    while (read(ends[0], &n, sizeof n) == sizeof n && (acked = n) < stop) {
    }
    kill(pid, SIGKILL);
    while (read(ends[0], &n, sizeof n) == sizeof n) acked = n;
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    if (!WIFSIGNALED(status)) {
      fprintf(stderr, "round %d: the child ended by itself: %d\n", round, WEXITSTATUS(status));
      return 1;
    }
    const pid_t checker = fork();
    if (checker == 0) {
      std::unique_ptr<Env> env;
      std::unique_ptr<DB> db = OpenDb(uri, &env);
      if (db == nullptr) _exit(1);
      const int missing = Missing(db.get(), acked);
      db.reset();
      env.reset();
      _exit(missing == 0 ? 0 : 1);
    }
    waitpid(checker, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      printf("round %d, %llu puts: acknowledged puts are lost\n", round, static_cast<unsigned long long>(acked));
      return 1;
    }
  }
  printf("%d kills, %llu puts at sync=0: nothing acknowledged is lost\n", rounds, static_cast<unsigned long long>(acked));
  return 0;
}
