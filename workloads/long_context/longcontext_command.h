#pragma once
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fullbore/app/command.h"
#include "fullbore/monitor/console.h"
#include "workloads/long_context/accuracy.h"
#include "workloads/long_context/context_model.h"

namespace fullbore {

void add_longcontext_command(Command root);

/// What the commands of `fullbore longcontext` share; each adds itself.
void add_niah_command(Command group);
void add_mqar_command(Command group);
void add_benchmark_commands(Command group);  ///< longbench, mrcr and infinitebench
void add_made_commands(Command group);       ///< ruler and babilong
void add_usable_length_command(Command group);
void add_phases_command(Command group);

/// Lengths as people write them, "1K,2K,4000": K is 1024, M its square; ascending. UsageError names the
/// option and the word.
std::vector<int64_t> parse_lengths(const std::string& option, const std::string& text);
/// Numbers between `low` and `high`, divided by commas; ascending.
std::vector<double> parse_numbers(const std::string& option, const std::string& text, double low,
                                  double high);
std::string length_text(int64_t tokens);  ///< "16K" where it is one, else "1000"
std::string percent_text(double share);   ///< "87.5 %"

/// Shows on the console how much is done, how fast, and how long the rest will take.
std::function<bool(int64_t done, int64_t all)> token_progress(Console& console, std::string doing);

/// "runs/default-1/checkpoints/best (step 2000)".
std::string model_text(const ContextModel& model);
/// {"model": ..., "step": ...}.
nlohmann::ordered_json model_json(const ContextModel& model);

/// "13125 (linear 13714)" of accuracies that fall below the threshold.
std::string usable_length_text(const std::vector<long_context::LengthAccuracy>& accuracies,
                               double threshold);
nlohmann::ordered_json usable_length_json(
    const std::vector<long_context::LengthAccuracy>& accuracies, double threshold);

/// The whole of it as text with a newline behind; "-" is standard output.
void write_json(const std::string& path, const nlohmann::ordered_json& json);

}  // namespace fullbore
