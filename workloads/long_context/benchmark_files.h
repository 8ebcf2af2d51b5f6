#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/base/result.h"
#include "workloads/long_context/benchmark_item.h"
#include "workloads/long_context/json_records.h"

namespace fullbore::long_context {

enum class Benchmark : uint8_t {
  longbench,  ///< Bai et al. 2023, arXiv:2308.14508: 21 tasks; and its second version, four choices
              ///< a question, Bai et al. 2024, arXiv:2412.15204. Which of them, a record shows.
  mrcr,  ///< OpenAI's multi-round co-reference resolution: one of several alike answers of a long conversation
  infinitebench  ///< Zhang et al. 2024, arXiv:2402.13718: 12 tasks, a file each
};

/// The tasks of InfiniteBench, as its files are called.
std::vector<std::string> infinitebench_tasks();
/// The tasks of the first LongBench.
std::vector<std::string> longbench_tasks();

/// Reads the items of a benchmark from JSON lines or a JSON list, gzipped or not, one at a time:
///   LongBench     input, context, answers, dataset; all_classes, language, _id
///   LongBench v2  _id, domain, difficulty, length, question, choice_A ... choice_D, answer, context
///   MRCR          prompt (a conversation: a list of {role, content}, or its text), answer, random_string_to_prepend;
///                 n_needles
///   InfiniteBench context, input, answer; options, id
/// Fields beyond these are ignored. A Failure names file, line and field.
class BenchmarkReader {
 public:
  /// `task`: of InfiniteBench; "": as the file is called. UsageError if it is not known.
  static Result<BenchmarkReader> open(const std::string& path, Benchmark benchmark,
                                      const std::string& task = "");

  /// False at the end.
  Result<bool> next(BenchmarkItem& item);
  uint64_t items() const { return items_; }  ///< read so far

 private:
  BenchmarkReader(JsonRecords records, Benchmark benchmark, std::string task)
      : records_(std::move(records)), benchmark_(benchmark), task_(std::move(task)) {}

  JsonRecords records_;
  Benchmark benchmark_;
  std::string task_;
  uint64_t items_ = 0;
};

}  // namespace fullbore::long_context
