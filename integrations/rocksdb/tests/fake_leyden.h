// A drive in memory behind the functions of leyden.h, for tests of what is above them.
//
// It keeps the header's word and no more: at a power cut every zone loses all that was not promised to be kept, or a
// random part of it. It refuses whatever the header says is refused, so that the layers above cannot lean on more.

#pragma once

#include <cstdint>
#include <string>

namespace fake {

struct Shape {
  uint32_t region = 1;  // LEYDEN_REGION_SELECTIVE
  uint32_t zones = 24;
  uint64_t zone_bytes = 16 * 4096;
  uint32_t active_max = 8;
  uint64_t area_bytes = 4 * 4096;
  uint32_t areas = 4;
  bool is_zoned = true;
};

// Makes a drive that `leyden_open` finds at `path`, in place of any that was there.
void Make(const std::string& path, const Shape& shape);
// Cuts the power in the midst of the `n`th command from now on that changes something.
void CutAfter(const std::string& path, uint64_t n, uint64_t seed);
// Cuts it now.
void Cut(const std::string& path, uint64_t seed);
bool IsOn(const std::string& path);
void Restore(const std::string& path);
// Commands that changed something.
uint64_t Commands(const std::string& path);
uint64_t Flushes(const std::string& path);
// What leyden_open fails with from now on; 0 for not at all.
void FailOpen(const std::string& path, int32_t status);
// A byte of the medium, beyond the drive's control.
char& Byte(const std::string& path, uint64_t offset);

}  // namespace fake
