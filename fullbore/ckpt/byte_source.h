#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "fullbore/base/input_file.h"
#include "fullbore/base/result.h"

namespace fullbore {

/// Bytes that can be read at any offset: a file, or what a packed file unpacks to.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual const std::string& path() const = 0;  ///< for messages
  virtual uint64_t bytes() const = 0;
  /// An earlier end is a Failure.
  virtual Status read_exactly(uint64_t offset, void* data, size_t bytes) const = 0;
};

/// The file as it is, or, if its name ends with kPackedSuffix, what it unpacks to.
Result<std::unique_ptr<ByteSource>> open_byte_source(const std::string& path,
                                                     FileSystem& files = system_files());

}  // namespace fullbore
