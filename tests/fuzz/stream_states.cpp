// Any bytes as states of streams: refused with a message that names the file, or streams that can be saved again and
// mean the same.
#include <string>
#include <vector>

#include "fullbore/train/stream_states.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<StateEntry> entries = {{"generated.a", Role::stream, {DType::f32, {1, 3}}},
                                           {"generated.b", Role::stream, {DType::bf16, {1, 2}}}};
  const StreamStates like(entries, 5);
  const MemoryFile file(data, size);
  const Result<StreamStates> whole = load_streams(file.path(), like, "model");
  // Without checksums, which hardly any bytes would get past.
  const Result<StreamStates> loaded = load_streams(file.path(), like, "model", Verify::kStructure);
  require(loaded.ok() || !whole.ok());
  if (!loaded.ok()) {
    require(loaded.error().find(file.path()) != std::string::npos);
    return 0;
  }
  const StreamStates& streams = loaded.value();
  require(streams.streams() > 0 && streams.difference(like).empty());
  require(static_cast<uint64_t>(streams.streams() * streams.bytes_per_stream()) <= size);
  StreamStates copy = streams;
  for (int64_t i = 0; i < streams.streams(); ++i) {
    require(streams.text(i).tokens >= 0 && streams.text(i).pending < 5);
    copy.reset(i);
  }
  const std::vector<int64_t> first = {0};
  streams.gather(first).scatter(first, copy);
  require(copy.gather(first) == streams.gather(first));
  return 0;
}
