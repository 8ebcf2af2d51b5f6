#include <bit>
#include <cstring>
#include <type_traits>

#include "fullbore/ckpt/gguf.h"

namespace fullbore {
namespace {

// Types of values in the format.
constexpr uint32_t kU32 = 4, kF32 = 6, kBool = 7, kText = 8, kList = 9, kU64 = 10, kI64 = 11,
                   kI32 = 5;

class Writer {
 public:
  template <class Number>
  void number(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    number(static_cast<uint64_t>(value.size()));
    bytes_ += value;
  }
  /// Its kind and itself: what fits in 32 bits is so narrow, as other readers expect it of sizes.
  void value(const GgufValue& value) {
    std::visit([&](const auto& one) { put(one); }, value);
  }
  void pad(uint64_t alignment) {
    bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  }
  std::string take() { return std::move(bytes_); }

 private:
  void put(std::monostate) {  // an empty list
    number(kList);
    number(kU32);
    number(uint64_t{0});
  }
  void put(uint64_t value) {
    const bool narrow = value <= UINT32_MAX;
    number(narrow ? kU32 : kU64);
    narrow ? number(static_cast<uint32_t>(value)) : number(value);
  }
  void put(int64_t value) {
    const bool narrow = value >= INT32_MIN && value <= INT32_MAX;
    number(narrow ? kI32 : kI64);
    narrow ? number(static_cast<int32_t>(value)) : number(value);
  }
  void put(double value) {
    number(kF32);
    number(static_cast<float>(value));
  }
  void put(bool value) {
    number(kBool);
    number(static_cast<uint8_t>(value));
  }
  void put(const std::string& value) {
    number(kText);
    text(value);
  }
  template <class Value>
  void put(const std::vector<Value>& values) {
    number(kList);
    if constexpr (std::is_same_v<Value, uint64_t>) list<uint64_t>(kU64, values);
    if constexpr (std::is_same_v<Value, int64_t>) list<int32_t>(kI32, values);
    if constexpr (std::is_same_v<Value, double>) list<float>(kF32, values);
    if constexpr (std::is_same_v<Value, bool>) list<uint8_t>(kBool, values);
    if constexpr (std::is_same_v<Value, std::string>) {
      number(kText);
      number(static_cast<uint64_t>(values.size()));
      for (const std::string& one : values) text(one);
    }
  }
  template <class Stored, class Value>
  void list(uint32_t kind, const std::vector<Value>& values) {
    number(kind);
    number(static_cast<uint64_t>(values.size()));
    for (const auto& one : values) number(static_cast<Stored>(one));
  }
  std::string bytes_;
};

}  // namespace

std::string encode_gguf_header(const GgufHeader& header) {
  static_assert(std::endian::native == std::endian::little);
  Writer writer;
  writer.number(uint32_t{0x46554747});  // "GGUF"
  writer.number(header.version);
  writer.number(static_cast<uint64_t>(header.tensors.size()));
  writer.number(static_cast<uint64_t>(header.metadata.size()));
  for (const auto& [key, value] : header.metadata) {
    writer.text(key);
    writer.value(value);
  }
  uint64_t at = 0;
  for (const GgufTensor& tensor : header.tensors) {
    writer.text(tensor.name);
    const std::vector<int64_t>& extents = tensor.shape.dims();
    writer.number(static_cast<uint32_t>(extents.size()));
    for (auto extent = extents.rbegin(); extent != extents.rend(); ++extent)
      writer.number(static_cast<uint64_t>(*extent));
    writer.number(static_cast<uint32_t>(tensor.type));
    writer.number(at);
    at = (at + tensor.bytes + kGgufAlignment - 1) / kGgufAlignment * kGgufAlignment;
  }
  writer.pad(kGgufAlignment);
  return writer.take();
}

}  // namespace fullbore
