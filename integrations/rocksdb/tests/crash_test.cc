// Power cuts at every command of random work, against a model of what was promised.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>

#include "counters.h"
#include "fake_leyden.h"
#include "file_system.h"
#include "tree.h"

namespace {

using namespace rocksdb;

const char kImage[] = "crash";
const IOOptions kIo;

// What a file must be: `bytes`, of which the first `promised` survive a power cut.
struct Promise {
  std::string bytes;
  size_t promised = 0;
};

// What a setup must reach, or it tests less than it says.
enum : unsigned { kNothing = 0, kReclaims = 1, kLogReclaims = 2, kRolls = 4, kNoSpace = 8 };

struct Setup {
  const char* name;
  fake::Shape shape;
  std::string options;
  bool must_lose;
  unsigned must_reach;
  // Records take little room where there are areas: the metadata log is full only after long work.
  int steps() const { return must_reach == kRolls && shape.areas > 0 ? 4000 : 700; }
  uint64_t stride() const { return must_lose ? 31 : steps() > 700 ? 67 : 5; }
};

struct Reached {
  uint64_t reclaims = leyden_fs::Counted().reclaimed_plain;
  uint64_t log_reclaims = leyden_fs::Counted().reclaimed_logs;
  uint64_t rolls = leyden_fs::Counted().rolls;
  uint64_t no_space = leyden_fs::Counted().no_space;
};

// What was done since `before` and had to be; the names of what was not are printed.
bool ReachedAll(const Setup& setup, const Reached& before) {
  const Reached now;
  const struct {
    unsigned what;
    const char* name;
    uint64_t times;
  } all[] = {
      {kReclaims, "reclaims", now.reclaims - before.reclaims},
      {kLogReclaims, "reclaims of logs", now.log_reclaims - before.log_reclaims},
      {kRolls, "rolled metadata logs", now.rolls - before.rolls},
      {kNoSpace, "writes without space", now.no_space - before.no_space},
  };
  bool right = true;
  printf("   ");
  for (const auto& it : all) {
    const bool missing = (setup.must_reach & it.what) != 0 && it.times == 0;
    printf(" %llu %s%s;", static_cast<unsigned long long>(it.times), it.name, missing ? " (NOT REACHED)" : "");
    right = right && !missing;
  }
  printf("\n");
  return right;
}

// Random work on a file system, and its model. Every operation that fails ends it: then the power is gone.
class Work {
 public:
  Work(const std::string& options, uint32_t region, uint64_t seed) : region_(region), random_(seed) {
    Status s = leyden_fs::OpenFileSystem(std::string("leyden:") + kImage + options, &fs_);
    if (!s.ok()) {
      printf("mount: %s\n", s.ToString().c_str());
      exit(1);
    }
    is_running_ = fs_->CreateDir("/db", kIo, nullptr).ok();
    pending_names_ = !is_running_;
  }

  // True if it ran to its end.
  bool Run(int steps) {
    for (int i = 0; is_running_ && i < steps; i++) Step();
    const bool ended = is_running_;
    files_.clear();
    fs_.reset();
    return ended;
  }

  // What is wrong with what is there now; empty if nothing is.
  std::string Check(FileSystem* fs);

 private:
  std::string RandomName() {
    static const char* const kNames[] = {"1.sst", "2.sst", "3.sst", "4.sst", "5.blob", "1.log", "2.log", "3.log",
                                         "MANIFEST-1", "CURRENT", "x.dbtmp", "LOG"};
    return std::string("/db/") + kNames[random_() % 12];
  }
  bool IsLog(const std::string& path) const { return leyden_fs::ClassOfPath(path) != leyden_fs::FileClass::kPlain; }
  // Remembers what was asked, for the case that the power fails in its midst.
  bool Ran(const IOStatus& s) {
    if (s.IsNoSpace()) return false;
    if (!s.ok()) {
      is_running_ = false;
    } else {
      pending_names_ = false;
      from_.clear();
      to_.clear();
    }
    return s.ok();
  }
  void Step();
  void Append(const std::string& path);
  void Sync(const std::string& path);
  void Create(const std::string& path);
  void Close(const std::string& path);
  void Truncate(const std::string& path);

  const uint32_t region_;
  std::mt19937_64 random_;
  std::unique_ptr<FileSystem> fs_;
  std::map<std::string, Promise> model_;
  std::map<std::string, bool> is_log_;
  std::map<std::string, std::unique_ptr<FSWritableFile>> files_;
  bool is_running_ = true;
  // The operation under way: names it changes (from_ and to_), bytes it adds or takes.
  bool pending_names_ = false;
  std::string from_, to_;
  std::string growing_;
  std::string adding_;
  size_t cutting_ = SIZE_MAX;
};

void Work::Create(const std::string& path) {
  pending_names_ = true;
  to_ = path;
  files_.erase(path);
  if (!is_running_) return;
  std::unique_ptr<FSWritableFile> file;
  if (!Ran(fs_->NewWritableFile(path, FileOptions(), &file, nullptr))) return;
  model_[path] = Promise();
  is_log_[path] = IsLog(path);
  files_[path] = std::move(file);
}

void Work::Append(const std::string& path) {
  const size_t n = random_() % 8 == 0 ? random_() % 30000 : random_() % 1500;
  std::string data(n, '\0');
  for (char& c : data) c = static_cast<char>(random_());
  growing_ = path;
  adding_ = data;
  IOStatus s = files_[path]->Append(data, kIo, nullptr);
  if (s.IsNoSpace()) {
    // Some of it may be there.
    Promise& p = model_[path];
    const size_t now = files_[path]->GetFileSize(kIo, nullptr);
    p.bytes += data.substr(0, now - p.bytes.size());
  } else if (Ran(s)) {
    model_[path].bytes += data;
  } else {
    return;
  }
  growing_.clear();
  if (is_log_[path] && region_ != 0) model_[path].promised = model_[path].bytes.size();
}

void Work::Sync(const std::string& path) {
  if (Ran(files_[path]->Sync(kIo, nullptr))) model_[path].promised = model_[path].bytes.size();
}

void Work::Close(const std::string& path) {
  if (Ran(files_[path]->Close(kIo, nullptr))) model_[path].promised = model_[path].bytes.size();
  files_.erase(path);
}

void Work::Truncate(const std::string& path) {
  Promise& p = model_[path];
  const size_t size = random_() % (p.bytes.size() + 1);
  growing_ = path;
  adding_.clear();
  cutting_ = size;
  if (!Ran(files_[path]->Truncate(size, kIo, nullptr))) return;
  growing_.clear();
  cutting_ = SIZE_MAX;
  p.bytes.resize(size);
  p.promised = std::min(p.promised, size);
}

void Work::Step() {
  const std::string path = RandomName();
  const bool exists = model_.count(path) != 0;
  const bool open = files_.count(path) != 0;
  const uint64_t dice = random_() % 20;
  if (!exists) {
    Create(path);
  } else if (open && dice < 11) {
    Append(path);
  } else if (open && dice < 14) {
    Sync(path);
  } else if (open && dice < 16) {
    Close(path);
  } else if (open && dice == 16) {
    Truncate(path);
  } else if (dice < 18) {
    pending_names_ = true;
    from_ = path;
    files_.erase(path);
    if (Ran(fs_->DeleteFile(path, kIo, nullptr))) model_.erase(path);
  } else if (!open) {
    const std::string to = RandomName();
    if (files_.count(to) != 0 || to == path) return;
    pending_names_ = true;
    from_ = path;
    to_ = to;
    if (!Ran(fs_->RenameFile(path, to, kIo, nullptr))) return;
    model_[to] = model_[path];
    is_log_[to] = is_log_[path];
    model_.erase(path);
  }
}

std::string Work::Check(FileSystem* fs) {
  std::vector<std::string> names;
  IOStatus s = fs->GetChildren("/db", kIo, &names, nullptr);
  if (!s.ok()) return pending_names_ && model_.empty() ? "" : "the directory is gone";
  std::map<std::string, std::string> found;
  for (const std::string& name : names) {
    Status r = ReadFileToString(fs, "/db/" + name, &found["/db/" + name]);
    if (!r.ok()) return name + " cannot be read: " + r.ToString();
  }
  for (const auto& m : model_) {
    const bool unsettled = pending_names_ && (m.first == from_ || m.first == to_);
    auto f = found.find(m.first);
    if (f == found.end()) {
      if (unsettled) continue;
      return m.first + " is gone";
    }
    std::string whole = m.second.bytes;
    size_t least = m.second.promised;
    if (m.first == growing_) {
      whole += adding_;
      least = std::min(least, cutting_);
    }
    const std::string& is = f->second;
    const bool right = is.size() >= least && is.size() <= whole.size() && whole.compare(0, is.size(), is) == 0;
    if (!right && !unsettled) {
      return m.first + " has " + std::to_string(is.size()) + " bytes, promised were " + std::to_string(least) +
             " of " + std::to_string(whole.size());
    }
  }
  for (const auto& f : found) {
    const bool unsettled = pending_names_ && (f.first == from_ || f.first == to_);
    if (model_.count(f.first) == 0 && !unsettled) return f.first + " is back";
  }
  return "";
}

// Cuts the power at every so-manyth command of a run; the findings.
int Explore(const Setup& setup, uint64_t seed, uint64_t* cuts) {
  const std::string image = std::string("leyden:") + kImage;
  const std::string format = setup.options.empty() ? "?format:empty" : setup.options + ",format:empty";
  int findings = 0;
  for (uint64_t at = 1;; at += setup.stride()) {
    fake::Make(kImage, setup.shape);
    {
      std::unique_ptr<FileSystem> fs;
      Status s = leyden_fs::OpenFileSystem(image + format, &fs);
      if (!s.ok()) {
        printf("format: %s\n", s.ToString().c_str());
        return -1;
      }
    }
    auto work = std::make_unique<Work>(setup.options, setup.shape.region, seed);
    fake::CutAfter(kImage, at, seed * 1000003 + at);
    const bool ended = work->Run(setup.steps());
    if (ended) return findings;
    std::string wrong = fake::IsOn(kImage) ? "something failed without a power cut" : "";
    fake::Restore(kImage);
    // Twice: mounting writes, and what it writes must be right, too.
    for (int mount = 0; mount < 2 && wrong.empty(); mount++) {
      std::unique_ptr<FileSystem> fs;
      Status s = leyden_fs::OpenFileSystem(image + setup.options, &fs);
      wrong = s.ok() ? work->Check(fs.get()) : s.ToString();
    }
    (*cuts)++;
    if (!wrong.empty()) {
      if (findings == 0) {
        printf("  %s, seed %llu, cut %llu: %s\n", setup.name, static_cast<unsigned long long>(seed),
               static_cast<unsigned long long>(at), wrong.c_str());
      }
      findings++;
    }
  }
}

}  // namespace

// With an argument: only setups with that in their name.
int main(int argc, char** argv) {
  fake::Shape selective;
  fake::Shape no_areas;
  no_areas.areas = 0;
  no_areas.zones = 48;
  fake::Shape full = selective;
  full.region = 2;
  fake::Shape none = no_areas;
  none.region = 0;
  // So small that space must be reclaimed, and runs out.
  fake::Shape small;
  small.zones = 10;
  fake::Shape small_none = small;
  small_none.region = small_none.areas = 0;
  const Setup setups[] = {
      {"selective", selective, "", false, kRolls},
      {"selective, no areas", no_areas, "", false, kRolls},
      {"full", full, "", false, kRolls},
      {"none", none, "", false, kRolls},
      {"selective, small", small, "", false, kReclaims | kLogReclaims | kNoSpace},
      {"none, small", small_none, "", false, kReclaims | kLogReclaims | kRolls | kNoSpace},
      {"published order", selective, "?order:published", true, kNothing},
      {"no PLP flag on logs", selective, "?plp:off", true, kNothing},
      {"metadata not flushed", selective, "?metadata:volatile", true, kNothing},
      {"published order, none", none, "?order:published", true, kNothing},
  };
  int failures = 0;
  for (const Setup& setup : setups) {
    if (argc > 1 && std::string(setup.name).find(argv[1]) == std::string::npos) continue;
    int findings = 0;
    uint64_t cuts = 0;
    const Reached before;
    for (uint64_t seed = 1; seed <= (setup.must_lose ? 2 : 4); seed++) {
      const int found = Explore(setup, seed, &cuts);
      if (found < 0) return 1;
      findings += found;
    }
    const bool right = (findings > 0) == setup.must_lose;
    printf("%-24s %6llu cuts, %5d lost something: %s\n", setup.name, static_cast<unsigned long long>(cuts), findings,
           right ? "as it must be" : "WRONG");
    const bool reached = ReachedAll(setup, before);
    if (!right || !reached) failures++;
  }
  return failures == 0 ? 0 : 1;
}
