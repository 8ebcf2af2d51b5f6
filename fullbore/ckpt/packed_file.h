#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/ckpt/byte_source.h"

struct ZSTD_CCtx_s;  // of zstd.h

namespace fullbore {

/// A file in blocks of at most 1 MiB, each compressed without loss: the bytes of its elements are
/// regrouped, all first bytes, then all second ones, ..., because exponents are alike and mantissas
/// are not (Alted 2010, "Why modern CPUs are starving", the shuffle filter of Blosc), and then packed
/// by zstd. Little endian:
///   8 bytes "FBPACK1\n"; per block u32 bytes, u32 element width, u32 packed bytes, the zstd frame.
inline constexpr std::string_view kPackedSuffix = ".fbz";

/// Where bytes go; Failure ends the writing.
using ByteSink = std::function<Status(std::string_view bytes)>;

class Packer {
 public:
  explicit Packer(ByteSink sink);
  ~Packer();
  Packer(const Packer&) = delete;
  Packer& operator=(const Packer&) = delete;

  /// Packs bytes that are elements of `width` bytes (1, 2, 4 or 8; divides their number).
  Status write(std::string_view bytes, int width);

 private:
  Status write_block(std::string_view bytes, int width);
  ByteSink sink_;
  ZSTD_CCtx_s* context_;
  bool begun_ = false;
  std::string shuffled_;
  std::string packed_;
};

/// Reads the blocks' sizes; a block is unpacked when something in it is read.
Result<std::unique_ptr<ByteSource>> open_packed_file(InputFile file);

}  // namespace fullbore
