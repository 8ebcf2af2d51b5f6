// Any bytes as a benchmark of long texts: read as items that can be asked and scored, or refused with
// file and line.
#include <string>

#include "tests/fuzz/memory_file.h"
#include "workloads/long_context/benchmark_files.h"

using namespace fullbore;
using namespace fullbore::long_context;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

namespace {

bool is_share(double score) { return score >= 0 && score <= 1; }

void check(const std::string& path, Benchmark benchmark, const std::string& task) {
  Result<BenchmarkReader> reader = BenchmarkReader::open(path, benchmark, task);
  if (!reader.ok()) return;
  for (;;) {
    BenchmarkItem item;
    const Result<bool> more = reader.value().next(item);
    if (!more.ok()) return require(more.error().starts_with(path));
    if (!more.value()) return;
    require(!item.references.empty() && item.room > 0);
    const std::string prompt = item.prompt().substr(0, 200);  // an answer like any other
    require(is_share(answer_score(item, prompt)));
    require(is_share(answer_score(item, item.references.front().substr(0, 200))));
    require(answer_score(item, "") <= 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const MemoryFile file(data, size);
  check(file.path(), Benchmark::longbench, "");
  check(file.path(), Benchmark::mrcr, "");
  const std::vector<std::string> tasks = infinitebench_tasks();
  check(file.path(), Benchmark::infinitebench, tasks[size % tasks.size()]);
  return 0;
}
