#include "workloads/peptide/binary_array.h"

#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "workloads/peptide/numpress.h"
#include "workloads/peptide/shuffled_array.h"

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

/// Appends one frame's bytes. Room grows with what is there: a frame need not say how long it is, and may
/// lie. Decompression in pieces would allocate a window, of whatever size the frame says.
std::optional<std::string> append_frame(std::string_view frame, size_t most, std::string& bytes) {
  const size_t begin = bytes.size();
  for (size_t room = std::min(8 * frame.size(), most);; room = std::min(4 * room, most)) {
    bytes.resize(begin + room);
    const size_t count = ZSTD_decompress(bytes.data() + begin, room, frame.data(), frame.size());
    if (ZSTD_isError(count) == 0) {
      bytes.resize(begin + count);
      return {};
    }
    if (ZSTD_getErrorCode(count) != ZSTD_error_dstSize_tooSmall)
      return fmt::format("its zstd data are damaged: {}", ZSTD_getErrorName(count));
    if (room == most) return fmt::format("holds more than {} bytes", begin + most);
  }
}

std::optional<std::string> unpack_zstd(std::string_view packed, size_t most, std::string& bytes) {
  bytes.clear();
  while (!packed.empty()) {
    const size_t frame = ZSTD_findFrameCompressedSize(packed.data(), packed.size());
    if (ZSTD_isError(frame) != 0)
      return fmt::format("its zstd data are damaged: {}", ZSTD_getErrorName(frame));
    if (auto problem = append_frame(packed.substr(0, frame), most - bytes.size(), bytes))
      return problem;
    packed.remove_prefix(frame);
  }
  return {};
}

/// The most bytes that `most` numbers take before they are compressed.
size_t most_bytes(BinaryEncoding encoding, size_t width, size_t most) {
  constexpr size_t kHead = 16;
  switch (encoding.numbers) {
    case BinaryEncoding::Numbers::plain:
    case BinaryEncoding::Numbers::shuffled: return most * width;
    case BinaryEncoding::Numbers::dictionary: return kHead + most * (width + sizeof(uint32_t));
    case BinaryEncoding::Numbers::numpress_linear:
    case BinaryEncoding::Numbers::numpress_integers: return kHead + (9 * most + 1) / 2;
    case BinaryEncoding::Numbers::numpress_logarithms: return kHead + most * sizeof(uint16_t);
  }
  return 0;
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

std::optional<std::string> read_floats(const std::string& bytes, size_t width, size_t most,
                                       std::vector<double>& values) {
  if (bytes.size() / width > most) return fmt::format("has more than {} numbers", most);
  if (width == sizeof(double))
    read_all<double>(bytes, values);
  else
    read_all<float>(bytes, values);
  return {};
}

}  // namespace

std::optional<std::string> decode_binary_array(std::string_view text, BinaryEncoding encoding,
                                               size_t most, std::string& bytes,
                                               std::vector<double>& values) {
  using Numbers = BinaryEncoding::Numbers;
  using Compression = BinaryEncoding::Compression;
  const size_t width = encoding.bits == 64 ? sizeof(double) : sizeof(float);
  values.clear();
  if (auto problem = decode_base64(text, bytes)) return problem;
  if (bytes.empty()) return {};
  if (encoding.compression != Compression::none) {
    const std::string packed = std::move(bytes);
    const size_t limit = most_bytes(encoding, width, most);
    if (auto problem = encoding.compression == Compression::zlib
                           ? inflate_all(packed, limit, bytes)
                           : unpack_zstd(packed, limit, bytes))
      return problem;
  }
  switch (encoding.numbers) {
    case Numbers::numpress_linear: return decode_numpress_linear(bytes, most, values);
    case Numbers::numpress_integers: return decode_numpress_integers(bytes, most, values);
    case Numbers::numpress_logarithms: return decode_numpress_logarithms(bytes, most, values);
    case Numbers::dictionary: {
      const std::string packed = std::move(bytes);
      if (auto problem = decode_dictionary(packed, width, most, bytes)) return problem;
      return read_floats(bytes, width, most, values);
    }
    case Numbers::plain:
    case Numbers::shuffled: break;
  }
  if (bytes.size() % width != 0)
    return fmt::format("has {} bytes, no multiple of {}", bytes.size(), width);
  if (encoding.numbers == Numbers::shuffled) bytes = unshuffle(bytes, width);
  return read_floats(bytes, width, most, values);
}

}  // namespace fullbore::peptide
