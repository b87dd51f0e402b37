// What the file systems of this process have done, for tests that must reach it.

#pragma once

#include <atomic>
#include <cstdint>

namespace leyden_fs {

struct Counters {
  // Zones whose data was copied elsewhere, plain ones and those of logs.
  std::atomic<uint64_t> reclaimed_plain{0};
  std::atomic<uint64_t> reclaimed_logs{0};
  // Metadata logs that were full, and begun anew in another zone.
  std::atomic<uint64_t> rolls{0};
  // Work that found no space, not even after a reclaim.
  std::atomic<uint64_t> no_space{0};
};

inline Counters& Counted() {
  static Counters counters;
  return counters;
}

}  // namespace leyden_fs
