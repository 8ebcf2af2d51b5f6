// Any bytes as metrics.jsonl and as summary.json: read with what is wrong told, or refused with the file's name. Sound
// lines that are written anew are sound again.
#include <string>

#include "fullbore/base/files.h"
#include "fullbore/base/seal.h"
#include "fullbore/monitor/csv.h"
#include "fullbore/monitor/summary_file.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile memory(data, size);
  const Result<SummaryFile> summary = read_summary(memory.path());
  require(summary.ok() ? summary.value().json.is_object()
                       : summary.error().starts_with(memory.path()));
  const Result<JsonLinesFile> read = read_json_lines(memory.path());
  if (!read.ok()) {
    require(read.error().starts_with(memory.path()));
    return 0;
  }
  const JsonLinesFile& file = read.value();
  require(static_cast<int64_t>(file.problems.size()) <= file.problem_count);
  require(file.unchecked <= static_cast<int64_t>(file.records.size()));
  require(static_cast<int64_t>(file.records.size()) <= file.lines);
  for (const std::string& problem : file.problems)
    require(problem.starts_with(memory.path() + ":") && problem.size() < 600);
  to_csv(file.records);
  std::string text;
  uint64_t number = 0;
  for (const auto& record : file.records) text += seal_json(record.dump(), ++number) + '\n';
  const MemoryFile again(text.data(), text.size());
  const JsonLinesFile sealed = read_json_lines(again.path()).take_or_throw();
  require(sealed.problem_count == 0 && sealed.unchecked == 0 && sealed.records == file.records);
  return 0;
}
