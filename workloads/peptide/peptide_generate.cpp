#include "workloads/peptide/peptide_generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "fullbore/app/job_options.h"
#include "fullbore/app/measured_job.h"
#include "fullbore/app/output.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "workloads/peptide/peptide_job.h"
#include "workloads/peptide/write_synthetic.h"

namespace fullbore {
namespace {

using namespace peptide;

struct GenerateArguments {
  std::string config;
  std::vector<std::string> overrides;
  std::string output;
  std::string stage;
  int64_t count = 0;
  std::optional<std::string> seed;
  bool force = false;
};

/// The stage of that name, or of that number from 1.
size_t find_stage(const Curriculum& curriculum, const std::string& wanted) {
  std::vector<std::string> names;
  for (size_t i = 0; i < curriculum.size(); ++i) {
    if (curriculum[i].name == wanted) return i;
    names.push_back(curriculum[i].name);
  }
  for (size_t i = 0; i < curriculum.size(); ++i)
    if (std::to_string(i + 1) == wanted) return i;
  throw UsageError(
      fmt::format("peptide generate: there is no stage '{}' in the curriculum.{} Its stages are {}",
                  wanted, did_you_mean(wanted, names), fmt::join(names, ", ")));
}

ExitCode run_generate(const GenerateArguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  if (arguments.seed) overrides.push_back("run.seed=" + *arguments.seed);
  const Config config = named_config(arguments.config, overrides);
  if (config.model.name != "peptide")
    throw UsageError(fmt::format("peptide generate: {} is of model.name={}, not of peptide",
                                 arguments.config, config.model.name));
  check_output_file(arguments.output);
  refuse_existing(arguments.output, arguments.force);
  const SyntheticOptions options = peptide_synthetic_options(config);
  Curriculum curriculum = peptide_curriculum(config);
  SyntheticRange range{0, static_cast<uint64_t>(arguments.count)};
  std::string stages =
      fmt::format("from step 0, {} stage{}", curriculum.size(), curriculum.size() == 1 ? "" : "s");
  if (!arguments.stage.empty()) {
    // Batches of this stage's steps; where it has fewer, it goes on beyond its end.
    CurriculumStage stage = curriculum[find_stage(curriculum, arguments.stage)];
    range.first = stage.first_step * static_cast<uint64_t>(options.batch_size);
    stages = fmt::format("stage {}, from step {}", stage.name, stage.first_step);
    stage.first_step = 0;
    curriculum = {stage};
  }
  const bool is_mgf = std::filesystem::path(arguments.output).extension() == ".mgf";
  const Status written = is_mgf ? write_synthetic_mgf(arguments.output, options, curriculum, range)
                                : write_synthetic_cache(arguments.output, peptide_alphabet(config),
                                                        options, curriculum, range);
  if (!written.ok()) throw DataError(written.error());
  print_output("{}: {} spectra ({}), seed {}, {}\n", arguments.output, range.count, stages,
               options.seed, is_mgf ? "MGF" : "a cache for data.path");
  return ExitCode::kOk;
}

}  // namespace

void add_peptide_generate(Command peptide) {
  Command command =
      peptide.add_subcommand("generate", "Write synthetic spectra, those that training draws");
  auto arguments = std::make_shared<GenerateArguments>();
  command.add_option("CONFIG", arguments->config, "YAML file of model.name=peptide").required();
  command.add_option("key=value", arguments->overrides, "Settings that override the file's");
  command
      .add_option("-o,--output", arguments->output,
                  "*.mgf: MGF with SEQ=; any other name: the file that training reads")
      .required();
  command.add_option("--count", arguments->count, "Spectra to write")
      .between(int64_t{1}, int64_t{1} << 40)
      .required();
  command.add_option(
      "--stage", arguments->stage,
      "Of the curriculum, by name or number from 1; by default the steps' own, from 0");
  command.add_option("--seed", arguments->seed, "The same as run.seed=");
  command.add_flag("--force", arguments->force, "Replace a file that is there");
  command.footer(R"(
Spectrum i is row i % B of the batch of step i / B of the run that the configuration describes, B being
train.batch_size: the same peaks, precursor and peptide, bit for bit. Reading an MGF back scales intensities
to their maximum, which training does only where data.scale_to_base_peak is set.

Example:
  fullbore peptide generate configs/peptide.yaml -o synthetic.mgf --count 1000 --stage 3 --seed 7
  fullbore peptide generate configs/peptide.yaml -o synthetic.spectra --count 100000)");
  command.runs([arguments] { return run_generate(*arguments); });
}

}  // namespace fullbore
