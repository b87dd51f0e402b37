#include "info_log.h"

#include <sys/time.h>

#include <cstdarg>
#include <cstdio>
#include <ctime>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace leyden_fs {
namespace {

// As many bytes are gathered before they go to the file, unless RocksDB flushes earlier.
constexpr size_t kGatherBytes = 64 << 10;

// RocksDB's own `EnvLogger` ends the process if it is used after its file has failed once.
class InfoLog : public rocksdb::Logger {
 public:
  InfoLog(std::unique_ptr<FSWritableFile> file, std::function<bool()> has_room)
      : file_(std::move(file)), has_room_(std::move(has_room)) {}
  ~InfoLog() override { InfoLog::CloseImpl().PermitUncheckedError(); }

  using Logger::Logv;
  void Logv(const char* format, va_list arguments) override {
    const std::string line = Head() + Message(format, arguments) + "\n";
    std::lock_guard<std::mutex> lock(mu_);
    gathered_ += line;
    if (gathered_.size() >= kGatherBytes) Write();
  }
  void Flush() override {
    std::lock_guard<std::mutex> lock(mu_);
    Write();
  }
  size_t GetLogFileSize() const override {
    std::lock_guard<std::mutex> lock(mu_);
    return written_ + gathered_.size();
  }

 protected:
  rocksdb::Status CloseImpl() override {
    std::lock_guard<std::mutex> lock(mu_);
    if (file_ == nullptr) return rocksdb::Status::OK();
    Write();
    IOStatus s = file_->Close(IOOptions(), nullptr);
    file_.reset();
    return s.IsNoSpace() ? rocksdb::Status::OK() : rocksdb::Status(s);
  }

 private:
  static std::string Head() {
    timeval now{};
    gettimeofday(&now, nullptr);
    const time_t seconds = now.tv_sec;
    tm t{};
    localtime_r(&seconds, &t);
    char head[80];
    snprintf(head, sizeof head, "%04d/%02d/%02d-%02d:%02d:%02d.%06d %llu ", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
             t.tm_hour, t.tm_min, t.tm_sec, static_cast<int>(now.tv_usec),
             static_cast<unsigned long long>(std::hash<std::thread::id>()(std::this_thread::get_id())));
    return head;
  }
  static std::string Message(const char* format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    const int length = vsnprintf(nullptr, 0, format, arguments);
    std::string message(length < 0 ? 0 : static_cast<size_t>(length), '\0');
    if (length > 0) vsnprintf(message.data(), message.size() + 1, format, again);
    va_end(again);
    return message;
  }
  // With `mu_` held.
  void Write() {
    if (file_ != nullptr && !gathered_.empty() && has_room_() && file_->Append(gathered_, IOOptions(), nullptr).ok()) {
      written_ += gathered_.size();
    }
    gathered_.clear();
  }

  mutable std::mutex mu_;
  std::unique_ptr<FSWritableFile> file_;
  const std::function<bool()> has_room_;
  std::string gathered_;
  size_t written_ = 0;
};

}  // namespace

std::shared_ptr<rocksdb::Logger> MakeInfoLog(std::unique_ptr<FSWritableFile> file, std::function<bool()> has_room) {
  return std::make_shared<InfoLog>(std::move(file), std::move(has_room));
}

}  // namespace leyden_fs
