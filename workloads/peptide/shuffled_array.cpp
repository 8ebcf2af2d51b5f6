#include "workloads/peptide/shuffled_array.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

namespace fullbore::peptide {

std::string unshuffle(std::string_view bytes, size_t width) {
  std::string plain(bytes.size(), '\0');
  const size_t count = bytes.size() / width;
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < width; ++j) plain[i * width + j] = bytes[j * count + i];
  return plain;
}

std::optional<std::string> decode_dictionary(std::string_view bytes, size_t width, size_t most,
                                             std::string& plain) {
  plain.clear();
  uint64_t head[2];
  if (bytes.size() < sizeof(head))
    return fmt::format("has {} bytes, expected a dictionary's head of {}", bytes.size(),
                       sizeof(head));
  std::memcpy(head, bytes.data(), sizeof(head));
  const auto [offset, distinct] = head;
  if (distinct > (bytes.size() - sizeof(head)) / width || offset != sizeof(head) + distinct * width)
    return fmt::format("its dictionary of {} values ends at byte {}, of {}", distinct, offset,
                       bytes.size());
  const size_t row_width = distinct < (1U << 8) ? 1 : distinct < (1U << 16) ? 2 : 4;
  const std::string_view packed_rows = bytes.substr(offset);
  if (packed_rows.size() % row_width != 0)
    return fmt::format("has {} bytes of rows, no multiple of {}", packed_rows.size(), row_width);
  const size_t count = packed_rows.size() / row_width;
  if (count > most) return fmt::format("has more than {} numbers", most);
  const std::string elements = unshuffle(bytes.substr(sizeof(head), distinct * width), width);
  plain.reserve(count * width);
  for (size_t i = 0; i < count; ++i) {
    uint64_t row = 0;
    for (size_t j = 0; j < row_width; ++j)
      row |= uint64_t{static_cast<unsigned char>(packed_rows[j * count + i])} << (8 * j);
    if (row >= distinct)
      return fmt::format("number {} is row {} of a dictionary of {}", i + 1, row, distinct);
    plain.append(elements, row * width, width);
  }
  return {};
}

}  // namespace fullbore::peptide
