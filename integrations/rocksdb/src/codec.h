// Numbers and texts as bytes, and their checksum. Everything on the drive is little-endian.

#pragma once

#include <cstdint>
#include <string>

namespace leyden_fs {

// CRC-32C (Castagnoli), as RFC 3720 has it.
uint32_t Crc32c(const char* data, size_t n, uint32_t seed = 0);
// The same on processors that have no instruction for it.
uint32_t Crc32cByTables(const char* data, size_t n, uint32_t seed = 0);

void PutU8(std::string* out, uint8_t value);
void PutU32(std::string* out, uint32_t value);
void PutU64(std::string* out, uint64_t value);
void PutText(std::string* out, const std::string& text);

// Takes values from the front of a text. After the first one that is not there, `ok` is false and every
// further value is 0 or empty: so callers need to look once, at the end.
class Decoder {
 public:
  Decoder(const char* data, size_t n) : data_(data), left_(n) {}
  uint8_t U8();
  uint32_t U32();
  uint64_t U64();
  std::string Text();
  bool ok() const { return ok_; }
  bool empty() const { return left_ == 0; }

 private:
  uint64_t Number(size_t bytes);

  const char* data_;
  size_t left_;
  bool ok_ = true;
};

}  // namespace leyden_fs
