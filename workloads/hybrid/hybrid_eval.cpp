#include "workloads/hybrid/hybrid_eval.h"

#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_keys.h"
#include "workloads/hybrid/hybrid_diagnostics.h"
#include "workloads/hybrid/hybrid_keys.h"
#include "workloads/hybrid/hybrid_language.h"

namespace fullbore {
namespace {

struct Options {
  bool diagnostics = false;
  std::string ablate;
  std::string initial_state;
};

std::string of_model(const std::string& name) {
  return name.empty() ? "" : "; model.name is " + name;
}

void refuse(const Options& options, const std::string& model) {
  if (options.diagnostics)
    throw UsageError("eval: --diagnostics examine a hybrid language model" + of_model(model));
  if (!options.ablate.empty())
    throw UsageError("eval: --ablate leaves out a branch of a hybrid language model" +
                     of_model(model));
  if (!options.initial_state.empty())
    throw UsageError(
        "eval: --initial-state is for hybrid models that were trained on sequences that go on");
}

/// The loss without one branch of the blocks, whose other branch and fusion stay as they are.
LossFunction loss_without(const Config& config, int64_t tokens, const std::string& branch) {
  HybridConfig sizes = hybrid_config(config, tokens);
  sizes.ablation = branch == "rwkv" ? HybridAblation::rwkv : HybridAblation::mamba;
  return hybrid_loss_function(config, sizes);
}

/// Segments may be begun otherwise than in training.
void begin(const Options& options, Config& config) {
  if (!options.ablate.empty() && options.diagnostics)
    throw UsageError("eval: --diagnostics leave out both branches already; drop --ablate");
  if (options.initial_state.empty()) return;
  if (text_keys(config).data.batching != "sequences")
    throw UsageError(
        "eval: --initial-state is for hybrid models that were trained on sequences that go on");
  hybrid_keys(config).data.initial_state = options.initial_state;
  hybrid_keys(config).data.segments = 1;
}

/// The table of --diagnostics.
ExitCode run_diagnostics(const EvalRequest& request, TrainedModel& model, const TextData& text,
                         Console& console) {
  // How a model fares on longer stretches is seen only where nothing is carried into them.
  hybrid_keys(model.config).data = {};
  const bool whole = !request.data.empty();
  const auto held = [&](const Config& config) { return evaluation_set(config, text, whole, 0); };
  const std::vector<Diagnostic> found = diagnose_hybrid(model, held, request.batches, console);
  if (!request.json) {
    print_output("checkpoint {} (step {}), {}\n{}", model.path, model.step, text.path,
                 diagnostics_text(found));
    return ExitCode::kOk;
  }
  nlohmann::ordered_json json = {{"checkpoint", model.path}, {"step", model.step}};
  for (const Diagnostic& each : found) {
    json["diagnostics"][each.name]["value"] = each.value;
    if (each.band) json["diagnostics"][each.name]["band"] = band_name(*each.band);
  }
  write_output(json_text(json));
  return ExitCode::kOk;
}

}  // namespace

TextEval add_hybrid_eval(Command eval) {
  auto options = std::make_shared<Options>();
  eval.add_flag("--diagnostics", options->diagnostics,
                "Of a hybrid model: how its branches and their states fare, with bands");
  eval.add_option("--ablate", options->ablate,
                  "Of a hybrid model: measure it again with this branch of every block at zero")
      .one_of({"rwkv", "mamba"});
  eval.add_option("--initial-state", options->initial_state,
                  "What a recurrent model begins each segment with; by default as its run says")
      .one_of({"zero", "carry"});
  TextEval own;
  own.refuse = [options](const std::string& model) { refuse(*options, model); };
  own.begin = [options](Config& config) { begin(*options, config); };
  own.instead = [options](const EvalRequest& request, TrainedModel& model, const TextData& text,
                          Console& console) -> std::optional<ExitCode> {
    if (!options->diagnostics) return std::nullopt;
    return run_diagnostics(request, model, text, console);
  };
  own.variant = [options](const Config& config, int64_t tokens) -> std::optional<TextVariant> {
    if (options->ablate.empty()) return std::nullopt;
    return TextVariant{"without " + options->ablate, loss_without(config, tokens, options->ablate)};
  };
  own.examples = {"eval runs/hybrid-p2-1 --diagnostics --batches 5",
                  "eval runs/hybrid-p2-1 --ablate mamba"};
  return own;
}

}  // namespace fullbore
