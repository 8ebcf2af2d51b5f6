#include "models/peptide/binary_array.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace fullbore::peptide {
namespace {

constexpr std::array<int8_t, 256> kDigits = [] {
  std::array<int8_t, 256> digits{};
  digits.fill(-1);
  constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < kAlphabet.size(); ++i)
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  return digits;
}();

std::optional<std::string> decode_base64(std::string_view text, std::string& bytes) {
  bytes.clear();
  uint32_t bits = 0;
  int held = 0;
  size_t digits = 0;
  size_t padding = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int8_t digit = kDigits[static_cast<unsigned char>(c)];
    if (digit < 0 || padding > 0)
      return fmt::format("character {} of the base64 text is none of base64's", i + 1);
    bits = (bits << 6) | static_cast<uint32_t>(digit);
    held += 6;
    ++digits;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>((bits >> held) & 0xFF);
    }
  }
  if (padding > 2 || (digits + padding) % 4 != 0)
    return "the base64 text ends within a group of four";
  return {};
}

std::optional<std::string> inflate_all(const std::string& packed, size_t most, std::string& bytes) {
  z_stream stream{};
  if (inflateInit(&stream) != Z_OK) return "zlib has no memory";
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  bytes.clear();
  int code = Z_OK;
  while (code == Z_OK && bytes.size() <= most) {
    char piece[1 << 14];
    stream.next_out = reinterpret_cast<Bytef*>(piece);
    stream.avail_out = sizeof(piece);
    code = inflate(&stream, Z_NO_FLUSH);
    bytes.append(piece, sizeof(piece) - stream.avail_out);
  }
  inflateEnd(&stream);
  if (bytes.size() > most) return fmt::format("holds more than {} bytes", most);
  if (code != Z_STREAM_END) return "its zlib data are damaged or end early";
  return {};
}

template <class T>
void read_all(const std::string& bytes, std::vector<double>& values) {
  values.resize(bytes.size() / sizeof(T));
  for (size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
}

}  // namespace

std::optional<std::string> decode_binary_array(std::string_view text, BinaryEncoding encoding,
                                               size_t most, std::string& bytes,
                                               std::vector<double>& values) {
  const size_t width = encoding.bits == 64 ? sizeof(double) : sizeof(float);
  if (auto problem = decode_base64(text, bytes)) return problem;
  if (encoding.is_compressed && !bytes.empty()) {
    const std::string packed = std::move(bytes);
    if (auto problem = inflate_all(packed, most * width, bytes)) return problem;
  }
  if (bytes.size() % width != 0)
    return fmt::format("has {} bytes, no multiple of {}", bytes.size(), width);
  if (bytes.size() / width > most) return fmt::format("has more than {} numbers", most);
  if (width == sizeof(double))
    read_all<double>(bytes, values);
  else
    read_all<float>(bytes, values);
  return {};
}

}  // namespace fullbore::peptide
