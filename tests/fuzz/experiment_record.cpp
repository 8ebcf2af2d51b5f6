// Any bytes as a record of `fullbore record`: refused with the file's name, or a record that can be compared with
// itself and written.
#include "fullbore/monitor/experiment_record.h"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  const Result<ExperimentRecord> read = read_experiment_record(file.path());
  if (!read.ok()) {
    require(read.error().starts_with(file.path()));
    return 0;
  }
  const ExperimentRecord& record = read.value();
  const std::string text = to_json(record, &record).dump();
  const MemoryFile again(text.data(), text.size());
  const ExperimentRecord same = read_experiment_record(again.path()).take_or_throw();
  require(same.name == record.name && same.batch_size == record.batch_size &&
          same.seq_len == record.seq_len && same.final_loss == record.final_loss);
  mean_of({record, same});
  return 0;
}
