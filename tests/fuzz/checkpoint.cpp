// Any bytes as each file of a checkpoint: manifest, JSON texts, packed tensors. Refused with a
// message, or what was read means the same when it is written again.
#include <string>
#include <string_view>

#include "fullbore/ckpt/flat_json.h"
#include "fullbore/ckpt/manifest.h"
#include "fullbore/ckpt/packed_file.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

namespace {

void check_manifest(std::string_view bytes) {
  const Result<Manifest> manifest = parse_manifest(bytes);
  require(manifest.ok() || !manifest.error().empty());
  if (manifest.ok())
    require(parse_manifest(encode_manifest(manifest.value())).take_or_throw() == manifest.value());
}

void check_texts(std::string_view bytes) {
  const Result<FlatJson> json = parse_flat_json(bytes);
  require(json.ok() || !json.error().empty());
  // A text in quotes is a JSON text, whatever it was.
  require(parse_flat_json("{\"a\":" + quoted_json(bytes) + "}").ok());
}

void check_packed(const std::string& bytes) {
  const MemoryFile file(bytes.data(), bytes.size());
  Result<InputFile> input = InputFile::open(file.path());
  require(input.ok());
  const auto source = open_packed_file(std::move(input).value());
  if (!source.ok()) return;
  // Its headers may promise more than a fuzzer has memory for.
  std::string some(std::min<uint64_t>(source.value()->bytes(), 1 << 21), '\0');
  (void)source.value()->read_exactly(0, some.data(), some.size()).ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  check_manifest(bytes);
  check_texts(bytes);
  check_packed(bytes);
  check_packed("FBPACK1\n" + bytes);
  return 0;
}
