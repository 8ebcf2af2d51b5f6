#pragma once
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace fullbore {

/// A message of Protocol Buffers in the making, field by field. Source of the encoding:
/// https://protobuf.dev/programming-guides/encoding
class ProtobufMessage {
 public:
  void add_number(uint32_t field, uint64_t value) {
    add_key(field, Wire::kVarint);
    add_varint(value);
  }
  /// Of an int64 field: negative numbers take ten bytes.
  void add_signed(uint32_t field, int64_t value) {
    add_number(field, static_cast<uint64_t>(value));
  }
  void add_double(uint32_t field, double value) {
    add_key(field, Wire::kFixed64);
    add_fixed(value);
  }
  void add_float(uint32_t field, float value) {
    add_key(field, Wire::kFixed32);
    add_fixed(value);
  }
  /// Text, bytes or a message.
  void add_bytes(uint32_t field, std::string_view value) {
    add_key(field, Wire::kBytes);
    add_varint(value.size());
    bytes_ += value;
  }
  void add_message(uint32_t field, const ProtobufMessage& message) {
    add_bytes(field, message.bytes());
  }

  /// Fields that another message has encoded.
  void add_encoded(std::string_view fields) { bytes_ += fields; }

  const std::string& bytes() const { return bytes_; }

 private:
  static_assert(std::endian::native == std::endian::little, "fixed numbers are little endian");
  enum class Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  void add_key(uint32_t field, Wire wire) { add_varint(field << 3 | static_cast<uint32_t>(wire)); }
  void add_varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80));
    bytes_.push_back(static_cast<char>(value));
  }
  template <class Number>
  void add_fixed(Number value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::string bytes_;
};

}  // namespace fullbore
