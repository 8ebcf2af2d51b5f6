#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "workloads/long_context/asked_example.h"
#include "workloads/long_context/longcontext_command.h"

namespace fullbore {

/// A suite of made-up tasks asked at several lengths: RULER, BABILong.
struct AskedSuite {
  std::string kind;                ///< "ruler"
  std::vector<std::string> tasks;  ///< those to be asked
  /// The example of `key` of a task, of at most `length` tokens with its answer. UsageError if none is so short.
  std::function<long_context::AskedExample(const std::string& task, int64_t length, uint64_t key,
                                           const long_context::CountTokens& tokens)>
      make;
  std::function<double(const std::string& task, const long_context::AskedExample& example,
                       std::string_view answer)>
      score;
};

/// What the commands of suites share.
struct SuiteArguments {
  std::string model;
  std::string tasks;
  std::string lengths = "2K,4K,8K";
  int64_t examples = 10;
  uint64_t seed = 0;
  double threshold = 0.8;
  std::string json;
  std::string answers;
  std::string export_file;
};
void add_suite_arguments(Command command, SuiteArguments& arguments);
/// --tasks, or all of them; UsageError names the nearest.
std::vector<std::string> suite_tasks(const SuiteArguments& arguments,
                                     const std::vector<std::string>& all);

/// Asks the model and prints a table of tasks and lengths, the mean of the tasks at each length and the usable length;
/// writes what the arguments ask for. With --export it writes prompts and answers instead.
ExitCode run_suite(const SuiteArguments& arguments, const AskedSuite& suite, ContextModel& model);

}  // namespace fullbore
