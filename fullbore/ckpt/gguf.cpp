#include "fullbore/ckpt/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <type_traits>

#include "fullbore/base/excerpt.h"

namespace fullbore {
namespace {

constexpr std::string_view kMagic = "GGUF";
constexpr int kMostNesting = 4;  // of lists in lists
constexpr uint32_t kMostDimensions = 4;

enum class Kind : uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, text, list, u64, i64, f64 };
constexpr uint32_t kKinds = 13;
constexpr uint64_t kKindBytes[kKinds] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};  // at least

struct TypeName {
  uint32_t number;
  std::string_view name;
};
constexpr TypeName kTypeNames[] = {
    {0, "F32"},     {1, "F16"},    {2, "Q4_0"},     {3, "Q4_1"},    {6, "Q5_0"},     {7, "Q5_1"},
    {8, "Q8_0"},    {9, "Q8_1"},   {10, "Q2_K"},    {11, "Q3_K"},   {12, "Q4_K"},    {13, "Q5_K"},
    {14, "Q6_K"},   {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},      {25, "I16"},
    {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},  {30, "BF16"},    {34, "TQ1_0"},
    {35, "TQ2_0"},  {39, "MXFP4"}};
constexpr GgufType kKnown[] = {GgufType::f32, GgufType::f16, GgufType::q4_1, GgufType::q8_0,
                               GgufType::bf16};

/// Reads from front to back; after the first error everything is 0 and nothing is read.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  uint64_t at() const { return at_; }
  uint64_t left() const { return bytes_.size() - at_; }
  bool failed() const { return !reason_.empty(); }
  const std::string& reason() const { return reason_; }
  bool refuse(std::string reason) {
    if (!failed()) reason_ = std::move(reason);
    return false;
  }
  /// With the place in the file before it.
  bool refuse_here(const std::string& reason) {
    return refuse(fmt::format("byte {}: {}", at_, reason));
  }

  template <class Number>
  Number number() {
    Number value{};
    if (failed()) return value;
    if (left() < sizeof value) {
      refuse_here("the header ends too early");
      return value;
    }
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  /// A count of things of at least so many bytes each.
  uint64_t count(uint64_t most, uint64_t least_bytes, std::string_view what) {
    const auto value = number<uint64_t>();
    if (value <= most && value <= left() / least_bytes) return value;
    refuse_here(fmt::format("{} {}; at most {} were expected", value, what,
                            std::min(most, left() / least_bytes)));
    return 0;
  }
  std::string text(uint64_t most) {
    const uint64_t size = count(most, 1, "bytes of a text");
    if (failed()) return "";
    std::string value(bytes_.substr(at_, size));
    at_ += size;
    return value;
  }

 private:
  std::string_view bytes_;
  uint64_t at_ = 0;
  std::string reason_;
};

Kind kind_of(Reader& reader) {
  const auto number = reader.number<uint32_t>();
  if (number >= kKinds)
    reader.refuse_here(fmt::format("a value of type {}; types go to {}", number, kKinds - 1));
  return reader.failed() ? Kind::u8 : static_cast<Kind>(number);
}

bool boolean(Reader& reader) {
  const auto value = reader.number<uint8_t>();
  if (value > 1) reader.refuse_here(fmt::format("{} as a truth; 0 or 1 was expected", value));
  return value == 1;
}

template <class Value, class Read>
std::vector<Value> list_of(Reader& reader, uint64_t count, const Read& read) {
  std::vector<Value> values;
  values.reserve(count);
  for (uint64_t i = 0; i < count && !reader.failed(); ++i) values.push_back(read());
  return values;
}

GgufValue list_value(Reader& reader, int nesting);

/// The number of a kind, or, with a count, a list of them.
template <class Stored, class Kept>
GgufValue number_value(Reader& reader, std::optional<uint64_t> count) {
  const auto read = [&] { return static_cast<Kept>(reader.number<Stored>()); };
  if (!count) return read();
  return list_of<Kept>(reader, *count, read);
}

GgufValue value_of(Reader& reader, Kind kind, std::optional<uint64_t> count, int nesting) {
  switch (kind) {
    case Kind::u8: return number_value<uint8_t, uint64_t>(reader, count);
    case Kind::u16: return number_value<uint16_t, uint64_t>(reader, count);
    case Kind::u32: return number_value<uint32_t, uint64_t>(reader, count);
    case Kind::u64: return number_value<uint64_t, uint64_t>(reader, count);
    case Kind::i8: return number_value<int8_t, int64_t>(reader, count);
    case Kind::i16: return number_value<int16_t, int64_t>(reader, count);
    case Kind::i32: return number_value<int32_t, int64_t>(reader, count);
    case Kind::i64: return number_value<int64_t, int64_t>(reader, count);
    case Kind::f32: return number_value<float, double>(reader, count);
    case Kind::f64: return number_value<double, double>(reader, count);
    case Kind::boolean:
      if (!count) return boolean(reader);
      return list_of<bool>(reader, *count, [&] { return boolean(reader); });
    case Kind::text:
      if (!count) return reader.text(kMostGgufHeaderBytes);
      return list_of<std::string>(reader, *count,
                                  [&] { return reader.text(kMostGgufHeaderBytes); });
    case Kind::list:
      if (!count) return list_value(reader, nesting + 1);
      for (uint64_t i = 0; i < *count && !reader.failed(); ++i) list_value(reader, nesting + 1);
      return std::monostate();
  }
  return std::monostate();
}

GgufValue list_value(Reader& reader, int nesting) {
  if (nesting > kMostNesting)
    reader.refuse_here(fmt::format("lists in lists, deeper than {}", kMostNesting));
  const Kind kind = kind_of(reader);
  const uint64_t count = reader.count(kMostGgufHeaderBytes, kKindBytes[static_cast<size_t>(kind)],
                                      "elements of a list");
  if (reader.failed()) return std::monostate();
  return value_of(reader, kind, count, nesting);
}

void read_metadata(Reader& reader, uint64_t count, GgufMetadata& metadata) {
  for (uint64_t i = 0; i < count && !reader.failed(); ++i) {
    std::string key = reader.text(kMostGgufNameBytes);
    const Kind kind = kind_of(reader);
    GgufValue value = value_of(reader, kind, std::nullopt, 0);
    if (reader.failed()) return;
    if (key.empty()) reader.refuse_here("a key without a name");
    if (!metadata.emplace(key, std::move(value)).second)
      reader.refuse(fmt::format("the key '{}' occurs twice", excerpt(key)));
  }
}

/// Name, extents, type and place, from the data's begin on.
GgufTensor read_tensor(Reader& reader) {
  GgufTensor tensor;
  tensor.name = reader.text(kMostGgufNameBytes);
  const auto dimensions = reader.number<uint32_t>();
  if (dimensions == 0 || dimensions > kMostDimensions)
    reader.refuse_here(fmt::format("tensor '{}' has {} dimensions; 1 to {} were expected",
                                   excerpt(tensor.name), dimensions, kMostDimensions));
  std::vector<int64_t> shape;
  int64_t values = 1;
  for (uint32_t i = 0; i < dimensions && !reader.failed(); ++i) {
    const auto extent = reader.number<uint64_t>();
    if (extent == 0 || extent > uint64_t{INT64_MAX} ||
        __builtin_mul_overflow(values, static_cast<int64_t>(extent), &values) ||
        values > INT64_MAX / 8)
      reader.refuse_here(fmt::format("the shape of tensor '{}' is empty or too large to exist",
                                     excerpt(tensor.name)));
    shape.insert(shape.begin(), static_cast<int64_t>(extent));
  }
  const auto type = reader.number<uint32_t>();
  tensor.begin = reader.number<uint64_t>();
  if (reader.failed()) return tensor;
  tensor.shape = Shape(shape);
  tensor.type = static_cast<GgufType>(type);
  if (std::ranges::find(kKnown, tensor.type) == std::end(kKnown)) {
    reader.refuse(fmt::format("tensor '{}' is stored as {}; F32, F16, BF16, Q8_0 and Q4_1 are read",
                              excerpt(tensor.name), gguf_type_name(type)));
    return tensor;
  }
  const int64_t block = gguf_block_values(tensor.type);
  if (shape.back() % block != 0)
    reader.refuse(fmt::format("tensor '{}' is {}, whose rows of {} are no multiple of {}",
                              excerpt(tensor.name), gguf_type_name(type), shape.back(), block));
  tensor.bytes = static_cast<uint64_t>(values / block * gguf_block_bytes(tensor.type));
  return tensor;
}

uint64_t aligned(uint64_t offset, uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

/// Places become those in the file; each within it, none over another.
void place_tensors(Reader& reader, uint64_t file_bytes, uint64_t alignment, GgufHeader& header) {
  const uint64_t data = aligned(reader.at(), alignment);
  std::set<std::string_view> names;
  std::vector<const GgufTensor*> by_place;
  for (GgufTensor& tensor : header.tensors) {
    if (tensor.begin % alignment != 0)
      reader.refuse(fmt::format("tensor '{}' begins at {}, no multiple of the alignment {}",
                                excerpt(tensor.name), tensor.begin, alignment));
    if (data > file_bytes || tensor.begin > file_bytes - data ||
        tensor.bytes > file_bytes - data - tensor.begin)
      reader.refuse(fmt::format(
          "tensor '{}' has {} bytes from {} of the data on, which is past the end of the file",
          excerpt(tensor.name), tensor.bytes, tensor.begin));
    if (!names.insert(tensor.name).second)
      reader.refuse(fmt::format("tensor '{}' occurs twice", excerpt(tensor.name)));
    if (reader.failed()) return;
    tensor.begin += data;
    by_place.push_back(&tensor);
  }
  std::ranges::sort(by_place, {}, &GgufTensor::begin);
  for (size_t i = 1; i < by_place.size(); ++i)
    if (by_place[i - 1]->begin + by_place[i - 1]->bytes > by_place[i]->begin)
      reader.refuse(fmt::format("tensors '{}' and '{}' overlap", excerpt(by_place[i - 1]->name),
                                excerpt(by_place[i]->name)));
}

}  // namespace

std::string gguf_type_name(uint32_t type) {
  for (const TypeName& known : kTypeNames)
    if (known.number == type) return std::string(known.name);
  return fmt::format("type {}", type);
}

std::optional<GgufType> parse_gguf_type(std::string_view name) {
  for (const GgufType type : kKnown)
    if (gguf_type_name(static_cast<uint32_t>(type)) == name) return type;
  return std::nullopt;
}

int64_t gguf_block_values(GgufType type) {
  return type == GgufType::q4_1 || type == GgufType::q8_0 ? kGgufBlock : 1;
}

int64_t gguf_block_bytes(GgufType type) {
  switch (type) {
    case GgufType::f32: return 4;
    case GgufType::f16:
    case GgufType::bf16: return 2;
    case GgufType::q4_1: return 2 + 2 + kGgufBlock / 2;
    case GgufType::q8_0: return 2 + kGgufBlock;
  }
  return 0;
}

Result<GgufHeader> parse_gguf_header(std::string_view bytes, uint64_t file_bytes) {
  if (!bytes.starts_with(kMagic)) return Failure{"byte 0: the magic GGUF was expected"};
  Reader reader(bytes);
  reader.number<uint32_t>();
  GgufHeader header;
  header.version = reader.number<uint32_t>();
  if (header.version != 2 && header.version != 3) {
    const bool swapped = (header.version & 0xFFFF) == 0 && header.version != 0;
    return Failure{fmt::format(
        "byte 4: {}; version 2 or 3, little endian, was expected",
        swapped ? "the file is big endian" : fmt::format("version {}", header.version))};
  }
  const uint64_t tensors = reader.count(kMostGgufTensors, 8 + 4 + 8 + 4 + 8, "tensors");
  const uint64_t keys = reader.count(kMostGgufKeys, 8 + 4 + 1, "keys");
  read_metadata(reader, keys, header.metadata);
  for (uint64_t i = 0; i < tensors && !reader.failed(); ++i)
    header.tensors.push_back(read_tensor(reader));
  uint64_t alignment = kGgufAlignment;
  if (const auto said = header.metadata.find("general.alignment");
      said != header.metadata.end() && !reader.failed()) {
    const auto* const number = std::get_if<uint64_t>(&said->second);
    alignment = number == nullptr ? 0 : *number;
    if (alignment < 8 || alignment > 65536 || (alignment & (alignment - 1)) != 0)
      reader.refuse("general.alignment is no power of two from 8 to 65536");
  }
  if (!reader.failed()) place_tensors(reader, file_bytes, alignment, header);
  if (reader.failed()) return Failure{reader.reason()};
  return header;
}

}  // namespace fullbore
