// Any bytes as a checkpoint: refused with a message, or readable to the last tensor.
#include <vector>

#include "fullbore/ckpt/checkpoint.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  const Result<Checkpoint> everything = read_checkpoint(file.path());
  const Result<Checkpoint> structure = read_checkpoint(file.path(), Verify::kStructure);
  require(structure.ok() || (!everything.ok() && !structure.error().empty()));
  if (!structure.ok()) return 0;
  SafetensorsHeader header{structure.value().tensors(), structure.value().metadata()};
  uint64_t data_bytes = 0;
  for (const StoredTensor& tensor : header.tensors) {
    require(tensor.bytes() <= size);
    std::vector<char> bytes(static_cast<size_t>(tensor.bytes()) + 1);
    require(structure.value().read(tensor, bytes.data()).ok());
    data_bytes += tensor.bytes();
  }
  // What was read can be written, and means the same.
  const std::string json = encode_safetensors_header(header).take_or_throw();
  const SafetensorsHeader again = parse_safetensors_header(json, data_bytes).take_or_throw();
  require(again.metadata == header.metadata && again.tensors.size() == header.tensors.size());
  return 0;
}
