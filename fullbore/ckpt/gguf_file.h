#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/file_system.h"
#include "fullbore/base/input_file.h"
#include "fullbore/ckpt/gguf.h"

namespace fullbore {

/// A GGUF file that was opened and found in order. The tensors stay on disk until read.
class GgufFile {
 public:
  /// Failure names path, offset, key or tensor, and reason; no bytes whatever do anything worse.
  static Result<GgufFile> open(const std::string& path, FileSystem& files = system_files());

  const std::string& path() const { return file_.path(); }
  const GgufMetadata& metadata() const { return header_.metadata; }
  const std::vector<GgufTensor>& tensors() const { return header_.tensors; }
  const GgufTensor* find(std::string_view name) const;  ///< nullptr: there is none

  // Of the metadata. Failure names the file, the key, and what stands there.
  Result<std::string> text(std::string_view key) const;
  Result<uint64_t> whole(std::string_view key) const;
  Result<double> real(std::string_view key) const;

  /// `count` values from `first` on, in f32, row-major; both multiples of the values in a block of its type.
  Status read(const GgufTensor& tensor, int64_t first, std::span<float> values) const;
  Result<std::vector<float>> read(const GgufTensor& tensor) const;

 private:
  GgufFile(InputFile file, GgufHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}
  Failure missing(std::string_view key, const char* expected) const;

  InputFile file_;
  GgufHeader header_;
};

/// The stored bytes of values in f32: rounded to nearest even in F16 and BF16; in Q8_0 to d = largest magnitude / 127.
/// values.size() is a multiple of the values in a block. Q4_1 is not written.
void encode_gguf_values(GgufType type, std::span<const float> values, std::string& bytes);
/// The reverse, of every type.
void decode_gguf_values(GgufType type, std::string_view bytes, std::span<float> values);

/// A tensor to be written: its values come from `read` when it is its turn.
struct GgufSource {
  std::string name;
  Shape shape;
  GgufType type = GgufType::f32;
  std::function<std::vector<float>()> read;
};
/// Writes a file atomically. Failure names the path and the system's reason.
Status write_gguf(const std::string& path, const GgufMetadata& metadata,
                  std::span<const GgufSource> tensors, FileSystem& files = system_files());

}  // namespace fullbore
