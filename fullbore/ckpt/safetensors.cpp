#include "fullbore/ckpt/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "fullbore/base/excerpt.h"
#include "fullbore/base/json.h"

namespace fullbore {
namespace {

constexpr std::pair<DType, std::string_view> kDTypeNames[] = {
    {DType::f64, "F64"}, {DType::f32, "F32"},      {DType::bf16, "BF16"},
    {DType::f16, "F16"}, {DType::i64, "I64"},      {DType::i32, "I32"},
    {DType::u8, "U8"},   {DType::boolean, "BOOL"}, {DType::i8, "I8"}};

constexpr std::string_view kMetadata = "__metadata__";

/// Receives the header's JSON event by event: nothing is built that the format does not have, so
/// neither nesting nor repetition costs memory, and names met twice are seen.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader take() && { return std::move(header_); }
  const std::string& reason() const { return reason_; }

  bool key(std::string& name) override {
    if (depth_ == 1) return start_entry(name);
    if (in_metadata_) {
      metadata_key_ = name;
      return header_.metadata.count(name) == 0 ||
             refuse(fmt::format("metadata '{}' occurs twice", excerpt(name)));
    }
    if (name == "dtype") return start_field(Field::kDType, name);
    if (name == "shape") return start_field(Field::kShape, name);
    if (name == "data_offsets") return start_field(Field::kOffsets, name);
    return refuse(
        fmt::format("tensor '{}' has an unknown field '{}'", excerpt(entry_), excerpt(name)));
  }

  bool start_object(size_t) override {
    if (depth_ >= 2) return refuse(fmt::format("'{}' is nested too deep", excerpt(entry_)));
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (depth_ == 1 && !in_metadata_) return end_tensor();
    return true;
  }

  bool start_array(size_t) override {
    if (depth_ != 2 || in_array_ || in_metadata_ ||
        (field_ != Field::kShape && field_ != Field::kOffsets))
      return unexpected("a list");
    in_array_ = true;
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    return true;
  }

  bool number_unsigned(uint64_t value) override {
    if (!in_array_ || value > uint64_t{INT64_MAX}) return unexpected("a number");
    (field_ == Field::kShape ? shape_ : offsets_).push_back(static_cast<int64_t>(value));
    return true;
  }
  bool string(std::string& value) override {
    if (depth_ == 2 && in_metadata_) {
      header_.metadata.emplace(metadata_key_, std::move(value));
      return true;
    }
    if (depth_ != 2 || in_array_ || field_ != Field::kDType) return unexpected("a text");
    dtype_ = parse_safetensors_dtype(value);
    return dtype_ || refuse(fmt::format("tensor '{}' has the unknown dtype '{}'", excerpt(entry_),
                                        excerpt(value)));
  }
  bool number_integer(int64_t) override { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { return unexpected("a fraction"); }
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool binary(binary_t&) override { return unexpected("bytes"); }

  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception&) override {
    std::string near = token.substr(0, 40);
    for (char& c : near)
      if (c < ' ' || c > '~') c = '?';  // the bytes may be no text at all
    // `position` counts the characters read, the offending one included.
    return refuse(fmt::format("byte {}: the header's JSON is malformed near '{}'",
                              kSafetensorsLengthBytes + position - 1, near));
  }

 private:
  enum class Field { kNone, kDType, kShape, kOffsets };

  bool refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }
  bool unexpected(const char* what) {
    if (depth_ == 0) return refuse(fmt::format("the header is {}, not an object", what));
    return refuse(fmt::format("{} where the header of '{}' has none", what, excerpt(entry_)));
  }

  bool start_entry(const std::string& name) {
    entry_ = name;
    in_metadata_ = name == kMetadata;
    seen_fields_.clear();
    field_ = Field::kNone;
    dtype_.reset();
    shape_.clear();
    offsets_.clear();
    return names_.insert(name).second || refuse(fmt::format("'{}' occurs twice", excerpt(name)));
  }
  bool start_field(Field field, const std::string& name) {
    field_ = field;
    return seen_fields_.insert(field).second ||
           refuse(fmt::format("field '{}' of tensor '{}' occurs twice", excerpt(name),
                              excerpt(entry_)));
  }

  bool end_tensor() {
    if (seen_fields_.size() != 3 || !dtype_)
      return refuse(fmt::format("tensor '{}' lacks dtype, shape or data_offsets", excerpt(entry_)));
    if (offsets_.size() != 2 || offsets_[0] > offsets_[1])
      return refuse(fmt::format("data_offsets of tensor '{}' are no range", excerpt(entry_)));
    int64_t bytes = dtype_bytes(*dtype_);
    for (const int64_t extent : shape_)
      if (__builtin_mul_overflow(bytes, extent, &bytes))
        return refuse(
            fmt::format("the shape of tensor '{}' is too large to exist", excerpt(entry_)));
    const TensorType type{*dtype_, Shape(shape_)};
    if (bytes != offsets_[1] - offsets_[0])
      return refuse(fmt::format("tensor '{}' is {}, {} bytes, but its data_offsets span {}",
                                excerpt(entry_), type.text(), bytes, offsets_[1] - offsets_[0]));
    header_.tensors.push_back(
        {entry_, type, static_cast<uint64_t>(offsets_[0]), static_cast<uint64_t>(offsets_[1])});
    return true;
  }

  SafetensorsHeader header_;
  std::string reason_;
  int depth_ = 0;  // 1: among the entries, 2: inside one
  bool in_array_ = false;
  bool in_metadata_ = false;
  std::set<std::string> names_;
  std::string metadata_key_;
  // The tensor being read:
  std::string entry_;
  Field field_ = Field::kNone;
  std::set<Field> seen_fields_;
  std::optional<DType> dtype_;
  std::vector<int64_t> shape_;
  std::vector<int64_t> offsets_;
};

/// Sorts by place and requires that the tensors fill [0, data_bytes) side by side.
Status check_places(std::vector<StoredTensor>& tensors, uint64_t data_bytes) {
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t at = 0;
  for (const StoredTensor& tensor : tensors) {
    if (tensor.begin != at)
      return Failure{fmt::format(
          "tensor '{}' begins at byte {} of the data, {} byte {}", tensor.name, tensor.begin,
          tensor.begin < at ? "overlapping what reaches to" : "leaving a hole from", at)};
    at = tensor.end;
  }
  if (at != data_bytes)
    return Failure{fmt::format("the tensors take {} bytes, the file holds {}", at, data_bytes)};
  return success();
}

}  // namespace

std::string_view safetensors_dtype(DType dtype) {
  for (const auto& [known, name] : kDTypeNames)
    if (known == dtype) return name;
  FB_CHECK(false, "dtype {} has no safetensors name", static_cast<int>(dtype));
}

std::optional<DType> parse_safetensors_dtype(std::string_view name) {
  for (const auto& [dtype, known] : kDTypeNames)
    if (known == name) return dtype;
  return std::nullopt;
}

Result<std::string> encode_safetensors_header(const SafetensorsHeader& header,
                                              uint64_t alignment) try {
  // By hand: the order is kept, and memory may run out anywhere; the usual tree's destructor allocates.
  const auto quoted = [](std::string_view text) { return nlohmann::json(text).dump(); };
  std::string json = "{";
  std::string_view comma;
  if (!header.metadata.empty()) {
    json += fmt::format("{}:", quoted(kMetadata));
    comma = "{";
    for (const auto& [key, text] : header.metadata) {
      json += fmt::format("{}{}:{}", comma, quoted(key), quoted(text));
      comma = ",";
    }
    json += "}";
  }
  for (const StoredTensor& tensor : header.tensors) {
    json += fmt::format(R"({}{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", comma,
                        quoted(tensor.name), safetensors_dtype(tensor.type.dtype),
                        fmt::join(tensor.type.shape.dims(), ","), tensor.begin, tensor.end);
    comma = ",";
  }
  json += "}";
  const uint64_t past = (kSafetensorsLengthBytes + json.size()) % alignment;
  json.append((alignment - past) % alignment, ' ');
  if (json.size() > kMostSafetensorsHeaderBytes)
    return Failure{fmt::format("a header of {} bytes is longer than the format's {}", json.size(),
                               kMostSafetensorsHeaderBytes)};
  return json;
} catch (const nlohmann::json::type_error&) {
  return Failure{"a tensor's name or a metadata text is not UTF-8"};
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, uint64_t data_bytes) {
  if (json.empty() || json.front() != '{')
    return Failure{
        fmt::format("byte {}: the header does not begin with '{{'", kSafetensorsLengthBytes)};
  HeaderReader reader;
  JsonLimits limits;
  limits.bytes = kMostSafetensorsHeaderBytes;
  limits.values = limits.bytes;  // nothing is built of them but what the reader keeps
  if (const Status read = read_json_events(json, reader, limits); !read.ok())
    return Failure{reader.reason().empty() ? read.error() : reader.reason()};
  SafetensorsHeader header = std::move(reader).take();
  if (const Status placed = check_places(header.tensors, data_bytes); !placed.ok())
    return Failure{placed.error()};
  return header;
}

}  // namespace fullbore
