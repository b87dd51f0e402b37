// LevelDB under `leyden crashtest` (Debian: libleveldb-dev): a setup, a work, and a check that stays.
//
//     leveldb setup
//     leveldb work BATCHES [nosync]
//     leveldb check                   a line on standard input for each state, a line of answer
//
// Each batch puts three records and a counter; it is acknowledged when Write has returned.

#include <leveldb/db.h>
#include <leveldb/write_batch.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>

static std::string path() { return std::string(getenv("LEYDEN_MOUNT")) + "/leveldb"; }

static leveldb::Status open(bool create, std::unique_ptr<leveldb::DB>& db) {
  leveldb::Options options;
  options.create_if_missing = create;
  options.write_buffer_size = 64 << 10;  // tables are written and compacted within the run
  leveldb::DB* opened = nullptr;
  auto status = leveldb::DB::Open(options, path(), &opened);
  db.reset(opened);
  return status;
}

static std::string key(int number, int part) {
  char text[32];
  snprintf(text, sizeof text, "%06d.%d", number, part);
  return text;
}

static std::string value(int number) { return std::to_string(number) + " " + std::string(300, 'x'); }

static int fail(const leveldb::Status& status) {
  std::cerr << status.ToString() << "\n";
  return 1;
}

static int work(int batches, bool sync) {
  std::unique_ptr<leveldb::DB> db;
  if (auto status = open(false, db); !status.ok()) return fail(status);
  leveldb::WriteOptions options;
  options.sync = sync;
  std::ofstream acks(getenv("LEYDEN_ACK"));
  for (int number = 1; number <= batches; number++) {
    leveldb::WriteBatch batch;
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
  std::unique_ptr<leveldb::DB> db;
  if (auto status = open(false, db); !status.ok()) return "leveldb: " + status.ToString();
  leveldb::ReadOptions options;
  options.verify_checksums = true;
  std::string counter;
  auto status = db->Get(options, "counter", &counter);
  if (!status.ok()) return "leveldb: " + status.ToString();
  int last = atoi(counter.c_str());
  for (int number = 1; number <= last; number++)
    for (int part = 0; part < 3; part++) {
      std::string found;
      if (!db->Get(options, key(number, part), &found).ok() || found != value(number))
        return "record " + key(number, part) + " is wrong";
    }
  if (db->Get(options, key(last + 1, 0), &counter).ok()) return "a batch is there in part";
  if (last >= promised) return "ok";
  return "lost " + std::to_string(promised - last) + " acknowledged batches of " + std::to_string(promised);
}

int main(int count, char** args) {
  std::string what = count > 1 ? args[1] : "";
  if (what == "setup") {
    std::cout << "version LevelDB " << leveldb::kMajorVersion << "." << leveldb::kMinorVersion << "\n";
    std::unique_ptr<leveldb::DB> db;
    if (auto status = open(true, db); !status.ok()) return fail(status);
    leveldb::WriteOptions options;
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
