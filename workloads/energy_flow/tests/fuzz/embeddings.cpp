// Any bytes as a file of embeddings: read as records that can be written and read again, or refused with the file's name.
#include <string>
#include <vector>

#include "tests/fuzz/memory_file.h"
#include "workloads/energy_flow/embedding_file.h"
#include "workloads/energy_flow/embedding_lines.h"

using namespace fullbore;
using namespace fullbore::energy_flow;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  Result<std::unique_ptr<EmbeddingReader>> reader = open_embeddings(file.path());
  if (!reader.ok()) {
    require(reader.error().starts_with(file.path()));
    return 0;
  }
  std::string lines;
  std::vector<std::vector<float>> vectors;
  for (;;) {
    EmbeddingRecord record;
    const Result<bool> more = reader.value()->next(record);
    if (!more.ok()) {
      require(more.error().starts_with(file.path()));
      return 0;
    }
    if (!more.value()) break;
    require(check_record(record, reader.value()->facts()).ok());
    lines += embedding_line(record);
    vectors.push_back(record.vector);
  }
  const MemoryFile again(lines.data(), lines.size());
  reader = open_embeddings(again.path());
  for (const std::vector<float>& vector : vectors) {
    EmbeddingRecord record;
    require(reader.value()->next(record).take_or_throw() && record.vector == vector);
  }
  return 0;
}
