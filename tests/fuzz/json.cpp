// Any bytes as JSON: refused in few plain words, or a tree of bounded depth that prints and reads back to itself; the
// reader by events sees the same. And as a text with a checksum: whole only if sealing it again makes the same bytes.
#include <algorithm>
#include <string>
#include <string_view>

#include "fullbore/base/excerpt.h"
#include "fullbore/base/json.h"
#include "fullbore/base/seal.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::require;

namespace {

constexpr size_t kDepth = 64;

size_t depth_of(const nlohmann::json& value) {
  size_t deepest = 0;
  for (const nlohmann::json& each : value) {
    if (value.is_structured()) deepest = std::max(deepest, depth_of(each));
  }
  return value.is_structured() ? deepest + 1 : 0;
}

/// Sees everything and keeps nothing.
class Watcher : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(int64_t) override { return true; }
  bool number_unsigned(uint64_t) override { return true; }
  bool number_float(double, const std::string&) override { return true; }
  bool string(std::string&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(size_t) override { return ++depth_ <= kDepth; }
  bool key(std::string&) override { return true; }
  bool end_object() override { return depth_-- > 0; }
  bool start_array(size_t) override { return ++depth_ <= kDepth; }
  bool end_array() override { return depth_-- > 0; }
  bool parse_error(size_t, const std::string&, const nlohmann::detail::exception&) override {
    return false;
  }

 private:
  size_t depth_ = 0;
};

void check_seals(std::string_view bytes) {
  const SealedJson sealed = open_sealed_json(bytes, 7);
  if (sealed.seal == Seal::kWhole) require(seal_json(sealed.text, 7) == bytes);
  if (yaml_seal(bytes) == Seal::kWhole) require(bytes.find("# xxhash64 ") != bytes.npos);
  if (!bytes.ends_with('}')) return;
  const SealedJson again = open_sealed_json(seal_json(bytes, 7), 7);
  require(again.seal == Seal::kWhole && again.text == bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  check_seals(bytes);
  require(excerpt(bytes).size() <= 4 * 60 + 3);
  const Result<nlohmann::json> read = parse_json(bytes);
  Watcher watcher;
  require(read_json_events(bytes, watcher).ok() == read.ok());
  require(parse_ordered_json(bytes).ok() == read.ok());
  if (!read.ok()) {
    require(!read.error().empty() && read.error().size() < 400);
    require(std::none_of(read.error().begin(), read.error().end(),
                         [](char c) { return c < ' ' && c >= 0; }));
    return 0;
  }
  require(depth_of(read.value()) <= kDepth);
  require(json_excerpt(read.value()).size() <= 4 * 120 + 3);
  require(parse_json(read.value().dump()).take_or_throw() == read.value());
  return 0;
}
