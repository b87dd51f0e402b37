// RocksDB under `leyden crashtest` (Debian: librocksdb-dev): a setup, a work, and a check that stays.
//
//     rocksdb setup
//     rocksdb work BATCHES [nosync]
//     rocksdb check                   a line on standard input for each state, a line of answer
//
// Each batch puts three records and a counter; it is acknowledged when Write has returned.

#include <rocksdb/db.h>
#include <rocksdb/version.h>
#include <rocksdb/write_batch.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

static std::string path() { return std::string(getenv("LEYDEN_MOUNT")) + "/rocksdb"; }

static rocksdb::Status open(bool create, std::unique_ptr<rocksdb::DB>& db) {
  rocksdb::Options options;
  options.create_if_missing = create;
  options.paranoid_checks = true;
  options.write_buffer_size = 64 << 10;  // tables are written and compacted within the run
  rocksdb::DB* opened = nullptr;
  auto status = rocksdb::DB::Open(options, path(), &opened);
  db.reset(opened);
  return status;
}

static std::string key(int number, int part) {
  char text[32];
  snprintf(text, sizeof text, "%06d.%d", number, part);
  return text;
}

static std::string value(int number) { return std::to_string(number) + " " + std::string(300, 'x'); }

static int fail(const rocksdb::Status& status) {
  std::cerr << status.ToString() << "\n";
  return 1;
}

static int work(int batches, bool sync) {
  std::unique_ptr<rocksdb::DB> db;
  if (auto status = open(false, db); !status.ok()) return fail(status);
  rocksdb::WriteOptions options;
  options.sync = sync;
  std::ofstream acks(getenv("LEYDEN_ACK"));
  for (int number = 1; number <= batches; number++) {
    rocksdb::WriteBatch batch;
    for (int part = 0; part < 3; part++) batch.Put(key(number, part), value(number));
    batch.Put("counter", std::to_string(number));
    if (auto status = db->Write(options, &batch); !status.ok()) return fail(status);
    acks << "ack " << number << std::endl;
  }
  _exit(0);  // as a program that is killed
}

static std::string verdict() {
  int promised = 0;
  std::ifstream acks(getenv("LEYDEN_ACKS"));
  for (std::string line; std::getline(acks, line);) promised++;
  std::unique_ptr<rocksdb::DB> db;
  if (auto status = open(false, db); !status.ok()) return "rocksdb: " + status.ToString();
  std::string counter;
  auto status = db->Get({}, "counter", &counter);
  if (!status.ok()) return "rocksdb: " + status.ToString();
  int last = atoi(counter.c_str());
  for (int number = 1; number <= last; number++)
    for (int part = 0; part < 3; part++) {
      std::string found;
      if (!db->Get({}, key(number, part), &found).ok() || found != value(number))
        return "record " + key(number, part) + " is wrong";
    }
  if (db->Get({}, key(last + 1, 0), &counter).ok()) return "a batch is there in part";
  if (auto checked = db->VerifyChecksum(); !checked.ok()) return "rocksdb: " + checked.ToString();
  if (last >= promised) return "ok";
  return "lost " + std::to_string(promised - last) + " acknowledged batches of " + std::to_string(promised);
}

int main(int count, char** args) {
  std::string what = count > 1 ? args[1] : "";
  if (what == "setup") {
    std::cout << "version RocksDB " << rocksdb::GetRocksVersionAsString() << "\n";
    std::unique_ptr<rocksdb::DB> db;
    if (auto status = open(true, db); !status.ok()) return fail(status);
    rocksdb::WriteOptions options;
    options.sync = true;
    auto status = db->Put(options, "counter", "0");
    return status.ok() ? 0 : fail(status);
  }
  if (what == "work" && count > 2) return work(atoi(args[2]), count < 4);
  if (what == "check") {
    for (std::string line; std::getline(std::cin, line);) std::cout << verdict() << std::endl;
    return 0;
  }
  return 2;
}
