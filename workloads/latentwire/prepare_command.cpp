#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "fullbore/app/job_options.h"
#include "fullbore/app/output.h"
#include "fullbore/base/error.h"
#include "fullbore/monitor/console.h"
#include "fullbore/monitor/process.h"
#include "fullbore/train/trainer.h"
#include "workloads/latentwire/latent_command.h"
#include "workloads/latentwire/reader_model.h"

namespace fullbore::latentwire {
namespace {

const std::vector<std::string> kKinds = {"bpe", "bytes"};

struct Arguments {
  std::string folder = "runs";
  std::vector<std::string> kinds = kKinds;
  std::vector<std::string> settings = {};
};

/// How the small models are trained: what learns the corpus in the fewest steps.
constexpr const char* kSettings = R"(
model: {name: latentwire_reader}
optim: {learning_rate: 3e-3, minimum_learning_rate: 6e-5, warmup_steps: 100, beta2: 0.98,
  weight_decay: 0.01, clip_norm: 1}
train: {steps: 2000, batch_size: 16, eval_interval: 500, checkpoint_interval: 500}
)";
/// A step on bytes takes several times as long as one on byte pairs: Muon needs fewer.
const std::vector<std::string> kOnBytes = {"optim.name=muon", "optim.warmup_steps=50",
                                           "train.steps=1200"};

ExitCode prepare(const Arguments& arguments) {
  for (const std::string& kind : arguments.kinds) {
    std::vector<std::string> settings = {"reader.kind=" + kind, "run.name=latentwire-" + kind};
    if (kind == "bytes") settings.insert(settings.end(), kOnBytes.begin(), kOnBytes.end());
    settings.insert(settings.end(), arguments.settings.begin(), arguments.settings.end());
    Config config = parse_config(kSettings, "latentwire prepare", settings);
    if (config.model.name != "latentwire_reader")
      throw UsageError("latentwire prepare: model.name is latentwire_reader");
    choose_processor(config);
    choose_caches(config);
    const std::string path =
        std::filesystem::absolute(arguments.folder + "/latentwire-" + kind).lexically_normal();
    config.run.dir = path;
    Console console;
    const bool begun = std::filesystem::exists(path + "/config.resolved.yaml");
    const RunDirectory run = begun ? RunDirectory::open(path) : RunDirectory::create(path);
    console.line(fmt::format("model    {} of the attribute corpus in {}", kind, path));
    const ExitCode code =
        train(reader_job(config), run, console, begun, std::chrono::steady_clock::now());
    if (code != ExitCode::kOk) return code;
  }
  return ExitCode::kOk;
}

}  // namespace

void add_prepare_command(Command latentwire) {
  Command command = latentwire.add_subcommand(
      "prepare", "Train the small language models that latentwire-ci sends prompts to");
  auto arguments = std::make_shared<Arguments>();
  command
      .add_option("--folder", arguments->folder,
                  "Where their runs are: FOLDER/latentwire-bpe and FOLDER/latentwire-bytes")
      .shows_default();
  command.add_option("--model", arguments->kinds, "bpe or bytes; by default both")
      .one_of(kKinds)
      .one_value_each_time();
  command.add_option("key=value", arguments->settings, "Settings that are to be otherwise");
  command.footer(R"(
A model that is there already is left as it is; one whose training was stopped is trained to its end. bpe has
154,944 parameters in the style of Llama on 512 byte pairs, bytes 422,016 in the style of GPT-2.

Example:
  fullbore latentwire prepare
  fullbore latentwire prepare --model bpe train.steps=1000)");
  command.runs([arguments] { return prepare(*arguments); });
}

}  // namespace fullbore::latentwire
