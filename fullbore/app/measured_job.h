#pragma once
#include <string>
#include <vector>

#include "fullbore/app/command.h"
#include "fullbore/monitor/console.h"
#include "fullbore/train/config.h"
#include "fullbore/train/trainer.h"

namespace fullbore {

/// What `bench` and `profile` are given alike.
struct MeasuredArguments {
  std::string config;
  std::vector<std::string> overrides;
  int64_t vocabulary = 0;
};
void add_measured_arguments(Command command, MeasuredArguments& arguments);

/// A job to be measured.
struct MeasuredJob {
  Config config;
  TrainingJob job;
  std::string batches;                 ///< for people: what they are made of
  std::vector<std::string> decisions;  ///< what memory changed, as FittedConfig has it
  std::string batch;                   ///< "12 x 64 tokens"
};
/// The job that `train` would run, within the same budget of memory; without data.path, or with
/// `vocabulary`, on random tokens. UsageError where it is not known how many distinct tokens there are
/// to draw from.
MeasuredJob measured_job(const Config& config, int64_t vocabulary, Console& console);

/// The floating-point peak that a step of this precision is measured by, per second.
double peak_flops(const Config& config, const MachinePeaks& peaks);

/// "mine, 804096 parameters, 12 x 64 tokens, fp32, 2 threads".
std::string job_text(const Config& config, const std::string& batch, int64_t parameters,
                     int threads);

/// Refuses a file that could not be written, before time is spent on what is to stand in it.
/// DataError names the folder that is missing.
void check_output_file(const std::string& path);
/// Where an output is there already: UsageError, unless it is to be replaced.
void refuse_existing(const std::string& path, bool force);
/// Writes the text; "-" is standard output. DataError.
void write_output_file(const std::string& path, const std::string& text);

}  // namespace fullbore
