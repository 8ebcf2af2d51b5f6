#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "apps/commands.h"
#include "apps/hybrid_diagnostics.h"
#include "apps/hybrid_language.h"
#include "apps/json_text.h"
#include "apps/language_batches.h"
#include "apps/language_examples.h"
#include "apps/output.h"
#include "apps/peptide_eval.h"
#include "apps/text_progress.h"
#include "fullbore/monitor/console.h"

namespace fullbore {
namespace {

struct EvalArguments {
  std::string model;
  std::string data;
  std::string against;
  int64_t batches = 0;
  std::string initial_state;
  bool json = false;
  bool diagnostics = false;
  std::string ablate;
  std::vector<std::string> overrides;
  SpectrumArguments reading;
  std::string unscorable = "wrong";
};

/// The loss without one branch of the blocks, whose other branch and fusion stay as they are.
LossFunction loss_without(const Config& config, int64_t tokens, const std::string& branch) {
  HybridConfig sizes = hybrid_config(config, tokens);
  sizes.ablation = branch == "rwkv" ? HybridAblation::rwkv : HybridAblation::mamba;
  return hybrid_loss_function(config, sizes);
}

/// Segments may be begun otherwise than in training.
void begin_segments(const EvalArguments& arguments, Config& config) {
  if (arguments.initial_state.empty()) return;
  if (config.model.name != "hybrid" || config.data.batching != "sequences")
    throw UsageError(
        "eval: --initial-state is for hybrid models that were trained on sequences that go on");
  config.hybrid.data.initial_state = arguments.initial_state;
  config.hybrid.data.segments = 1;
}

/// The table of --diagnostics.
ExitCode run_diagnostics(const EvalArguments& arguments, TrainedModel& model, const TextData& text,
                         Console& console) {
  // How a model fares on longer stretches is seen only where nothing is carried into them.
  model.config.hybrid.data = {};
  const bool whole = !arguments.data.empty();
  const auto held = [&](const Config& config) { return evaluation_set(config, text, whole, 0); };
  const std::vector<Diagnostic> found = diagnose_hybrid(model, held, arguments.batches, console);
  if (!arguments.json) {
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

ExitCode run_eval(const EvalArguments& arguments) {
  if (is_peptide_subject(arguments.model)) {
    if (arguments.diagnostics)
      throw UsageError("eval: --diagnostics examine a hybrid language model");
    if (!arguments.ablate.empty())
      throw UsageError("eval: --ablate leaves out a branch of a hybrid language model");
    if (arguments.batches > 0)
      throw UsageError(
          "eval: --batches is for language models; peptides are measured on all spectra");
    return eval_peptides({.subject = arguments.model,
                          .data = arguments.data,
                          .against = arguments.against,
                          .json = arguments.json,
                          .overrides = arguments.overrides,
                          .reading = arguments.reading,
                          .unscorable = arguments.unscorable});
  }
  if (!arguments.against.empty()) throw UsageError("eval: --against compares models of peptides");
  if (!arguments.overrides.empty())
    throw UsageError(fmt::format("eval: '{}' is for models of peptides", arguments.overrides[0]));
  TrainedModel model = load_model(arguments.model);
  if (makes_examples(model.config))
    throw UsageError(fmt::format(
        "eval: {} learned from made-up examples; measure it by `fullbore longcontext {} {}`",
        model.path, model.config.data.batching == "mqar" ? "mqar" : "niah", arguments.model));
  if (!arguments.ablate.empty() && model.config.model.name != "hybrid")
    throw UsageError("eval: --ablate leaves out a branch of a hybrid model; model.name is " +
                     model.config.model.name);
  if (!arguments.ablate.empty() && arguments.diagnostics)
    throw UsageError("eval: --diagnostics leave out both branches already; drop --ablate");
  begin_segments(arguments, model.config);
  const std::string path = arguments.data.empty() ? model.config.data.path : arguments.data;
  Console console;
  const TextData text = open_text(model.config, path, model.tokenizer, text_progress(console));
  if (arguments.diagnostics) return run_diagnostics(arguments, model, text, console);
  const bool whole = !arguments.data.empty();
  const ValidationSet set = evaluation_set(model.config, text, whole, arguments.batches);
  const std::string split = whole ? "all of it" : split_text_about(model.config);
  const auto evaluate = [&](const LossFunction& loss, const std::string& what) {
    Evaluator evaluator(loss, set, model.state, trained_options(model.config));
    Progress progress;
    return *evaluator.evaluate([&](uint64_t done) {
      progress.phase = fmt::format("evaluating{} {}/{}", what, done, evaluator.batches());
      console.live(progress);
      return true;
    });
  };
  const int64_t tokens = model.tokenizer->vocabulary_size();
  const Evaluation result = evaluate(model_loss(model.config, tokens), "");
  std::optional<double> ablated;
  if (!arguments.ablate.empty())
    ablated = evaluate(loss_without(model.config, tokens, arguments.ablate),
                       " without " + arguments.ablate)
                  .loss;
  console.clear();
  const double loss = result.loss;
  const auto predictions = static_cast<int64_t>(result.predictions);
  const std::string unit = text.tokenizer->kind() == "characters" ? "character" : "token";
  // By the text's mean number of bytes per token, which makes vocabularies comparable.
  const double bits_per_byte = loss / std::log(2.0) * static_cast<double>(text.tokens->size()) /
                               static_cast<double>(text.tokens->text_bytes());
  if (arguments.json) {
    nlohmann::ordered_json json = {{"checkpoint", model.path},
                                   {"step", model.step},
                                   {"data", path},
                                   {"split", split},
                                   {"batches", set.batches},
                                   {"predictions", predictions},
                                   {"loss", loss},
                                   {"perplexity", std::exp(loss)},
                                   {"bits_per_" + unit, loss / std::log(2.0)},
                                   {"bits_per_byte", bits_per_byte}};
    if (const std::string state = evaluated_state(model.config); !state.empty())
      json["initial_state"] = state;
    if (ablated)
      json["without_" + arguments.ablate] = {
          {"loss", *ablated},
          {"perplexity", std::exp(*ablated)},
          {"loss_difference", *ablated - loss},
          {"perplexity_difference", std::exp(*ablated) - std::exp(loss)}};
    write_output(json_text(json));
  } else {
    print_output("checkpoint          {} (step {})\n", model.path, model.step);
    print_output("text                {}: {}\n", path, split);
    print_output("predictions         {}, in {} batches\n", predictions, set.batches);
    if (const std::string state = evaluated_state(model.config); !state.empty())
      print_output("initial state       {}\n", state);
    print_output("loss                {:.6f} nats per {}\n", loss, unit);
    print_output("perplexity          {:.4f}\n", std::exp(loss));
    print_output("{:<20}{:.4f}\n", "bits per " + unit, loss / std::log(2.0));
    print_output("bits per byte       {:.4f}\n", bits_per_byte);
    if (ablated)
      print_output("{:<20}loss {:.6f} ({:+.6f}), perplexity {:.4f} ({:+.4f})\n",
                   "without " + arguments.ablate, *ablated, *ablated - loss, std::exp(*ablated),
                   std::exp(*ablated) - std::exp(loss));
  }
  if (ablated && !std::isfinite(*ablated))
    throw NumericalError(
        fmt::format("eval: the loss without {} is {}", arguments.ablate, *ablated));
  if (!std::isfinite(loss)) throw NumericalError(fmt::format("eval: the loss is {}", loss));
  return ExitCode::kOk;
}

}  // namespace

void add_eval_command(Command root) {
  Command command =
      root.add_subcommand("eval", "Measure a trained model, or predictions of peptides");
  auto arguments = std::make_shared<EvalArguments>();
  command
      .add_option(
          "RUN_OR_CHECKPOINT", arguments->model,
          "Run directory (its best checkpoint) or a checkpoint; or predictions of peptides, "
          "*.mztab or *.csv")
      .required();
  command.add_option(
      "--data", arguments->data,
      "Text, or annotated spectra, to measure on, all of it; by default what the run held "
      "out");
  command.add_option("--against", arguments->against,
                     "Of peptides: another model, or other predictions, of the same spectra");
  command.add_option("--batches", arguments->batches, "At most so many batches; 0: all")
      .between(int64_t{0}, int64_t{1} << 40);
  command.add_flag("--diagnostics", arguments->diagnostics,
                   "Of a hybrid model: how its branches and their states fare, with bands");
  command
      .add_option("--ablate", arguments->ablate,
                  "Of a hybrid model: measure it again with this branch of every block at zero")
      .one_of({"rwkv", "mamba"});
  command
      .add_option("--initial-state", arguments->initial_state,
                  "What a recurrent model begins each segment with; by default as its run says")
      .one_of({"zero", "carry"});
  command
      .add_option(
          "--unscorable", arguments->unscorable,
          "Of peptides: a true sequence with residues that cannot be read counts as wrong, or is "
          "left out")
      .one_of({"wrong", "leave-out"})
      .shows_default();
  add_spectrum_arguments(command, arguments->reading);
  command.add_option("key=value", arguments->overrides,
                     "Of peptides: data.default_charge or data.min_peaks");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      "\nExample:\n"
      "  fullbore eval runs/default-1\n"
      "  fullbore eval runs/default-1/checkpoints/last --data other.txt\n"
      "  fullbore eval runs/hybrid-p2-1 --diagnostics --batches 5\n"
      "  fullbore eval runs/hybrid-p2-1 --ablate mamba\n"
      "  fullbore eval runs/peptide-1 --data annotated.mgf\n"
      "  fullbore eval casanovo.mztab --data annotated.mgf --against runs/peptide-1");
  command.runs([arguments] { return run_eval(*arguments); });
}

}  // namespace fullbore
