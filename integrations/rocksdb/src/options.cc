#include "options.h"

#include <cmath>
#include <cstdlib>

namespace leyden_fs {
namespace {

IOStatus Wrong(const std::string& uri, const std::string& what) {
  return IOStatus::InvalidArgument(uri + ": " + what,
                                   "write leyden:IMAGE?mode:auto|none|selective|full,order:sound|published,"
                                   "plp:on|off,metadata:protected|volatile,format:off|empty,speed:X,"
                                   "access:write|read,control:off|on,at_cut:fail|die,"
                                   "kill_in_plain_reclaim:N,kill_in_log_reclaim:N,"
                                   "record:FILE,trace:FILE");
}

// Sets `*flag` by which of two words `value` is.
bool Choice(const std::string& value, const char* yes, const char* no, bool* flag) {
  if (value != yes && value != no) return false;
  *flag = value == yes;
  return true;
}

bool SetMode(const std::string& value, Mode* mode) {
  for (Mode m : {Mode::kAuto, Mode::kNone, Mode::kSelective, Mode::kFull}) {
    if (value == ModeName(m)) {
      *mode = m;
      return true;
    }
  }
  return false;
}

bool SetSpeed(const std::string& value, double* speed) {
  char* end = nullptr;
  *speed = strtod(value.c_str(), &end);
  return !value.empty() && *end == '\0' && std::isfinite(*speed) && *speed >= 0;
}

bool SetCount(const std::string& value, uint64_t* count) {
  if (value.empty() || value.size() > 9 || value.find_first_not_of("0123456789") != std::string::npos) return false;
  *count = strtoull(value.c_str(), nullptr, 10);
  return true;
}

std::string Unless0(const char* name, uint64_t value) { return value == 0 ? "" : name + std::to_string(value); }

bool SetOption(const std::string& name, const std::string& value, Options* o) {
  if (name == "mode") return SetMode(value, &o->mode);
  if (name == "order") return Choice(value, "sound", "published", &o->flush_before_record);
  if (name == "plp") return Choice(value, "on", "off", &o->protect_logs);
  if (name == "metadata") return Choice(value, "protected", "volatile", &o->protect_metadata);
  if (name == "access") return Choice(value, "read", "write", &o->read_only);
  if (name == "format") return Choice(value, "empty", "off", &o->format_if_empty);
  if (name == "control") return Choice(value, "on", "off", &o->control);
  if (name == "at_cut") return Choice(value, "die", "fail", &o->die_at_cut);
  if (name == "kill_in_plain_reclaim") return SetCount(value, &o->kill_in_plain_reclaim);
  if (name == "kill_in_log_reclaim") return SetCount(value, &o->kill_in_log_reclaim);
  if (name == "speed") return SetSpeed(value, &o->speed);
  if (name == "record" && !value.empty()) {
    o->record = value;
    return true;
  }
  if (name == "trace" && !value.empty()) {
    o->trace = value;
    return true;
  }
  return false;
}

}  // namespace

const char* ModeName(Mode mode) {
  switch (mode) {
    case Mode::kNone: return "none";
    case Mode::kSelective: return "selective";
    case Mode::kFull: return "full";
    case Mode::kAuto: break;
  }
  return "auto";
}

std::string Options::Canonical() const {
  return std::string("mode:") + ModeName(mode) + (flush_before_record ? "" : ",order:published") +
         (protect_logs ? "" : ",plp:off") + (protect_metadata ? "" : ",metadata:volatile") +
         (read_only ? ",access:read" : "") + ",speed:" + std::to_string(speed) + (control ? ",control:on" : "") +
         (die_at_cut ? ",at_cut:die" : "") +
         Unless0(",kill_in_plain_reclaim:", kill_in_plain_reclaim) +
         Unless0(",kill_in_log_reclaim:", kill_in_log_reclaim) + (record.empty() ? "" : ",record:" + record) +
         (trace.empty() ? "" : ",trace:" + trace);
}

IOStatus ParseUri(const std::string& uri, Options* options) {
  static const std::string kScheme = "leyden:";
  if (uri.compare(0, kScheme.size(), kScheme) != 0) return Wrong(uri, "no URI of a Leyden image");
  const size_t mark = uri.find('?');
  options->image = uri.substr(kScheme.size(), mark == std::string::npos ? mark : mark - kScheme.size());
  if (options->image.compare(0, 2, "//") == 0) options->image.erase(0, 2);
  if (options->image.empty()) return Wrong(uri, "it names no image");
  size_t at = mark == std::string::npos ? uri.size() : mark + 1;
  while (at < uri.size()) {
    const size_t end = std::min(uri.find(',', at), uri.size());
    const std::string item = uri.substr(at, end - at);
    const size_t colon = item.find_first_of(":=");
    if (colon == std::string::npos || !SetOption(item.substr(0, colon), item.substr(colon + 1), options)) {
      return Wrong(uri, "\"" + item + "\" is no option");
    }
    at = end + 1;
  }
  if (options->is_served() && (options->speed != 0 || options->control || !options->record.empty())) {
    return Wrong(uri, "speed, control and record are the server's to choose (leyden serve)");
  }
  return IOStatus::OK();
}

}  // namespace leyden_fs
