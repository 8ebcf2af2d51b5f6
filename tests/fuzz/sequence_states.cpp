// Any bytes as states of sequences: refused with a message that names the file, or sequences that can be saved again and
// mean the same.
#include <string>
#include <vector>

#include "fullbore/train/sequence_states.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<StateEntry> entries = {{"generated.a", Role::recurrent, {DType::f32, {1, 3}}},
                                           {"generated.b", Role::recurrent, {DType::bf16, {1, 2}}}};
  const SequenceStates like(entries, 5);
  const MemoryFile file(data, size);
  const Result<SequenceStates> whole = load_sequences(file.path(), like, "model");
  // Without checksums, which hardly any bytes would get past.
  const Result<SequenceStates> loaded =
      load_sequences(file.path(), like, "model", Verify::kStructure);
  require(loaded.ok() || !whole.ok());
  if (!loaded.ok()) {
    require(loaded.error().find(file.path()) != std::string::npos);
    return 0;
  }
  const SequenceStates& sequences = loaded.value();
  require(sequences.sequences() > 0 && sequences.difference(like).empty());
  require(static_cast<uint64_t>(sequences.sequences() * sequences.bytes_per_sequence()) <= size);
  SequenceStates copy = sequences;
  for (int64_t i = 0; i < sequences.sequences(); ++i) {
    require(sequences.text(i).tokens >= 0 && sequences.text(i).pending < 5);
    copy.reset(i);
  }
  const std::vector<int64_t> first = {0};
  sequences.gather(first).scatter(first, copy);
  require(copy.gather(first) == sequences.gather(first));
  return 0;
}
