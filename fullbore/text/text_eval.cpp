#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "fullbore/app/held_out_items.h"
#include "fullbore/app/json_text.h"
#include "fullbore/app/output.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/monitor/console.h"
#include "fullbore/text/text_batches.h"
#include "fullbore/text/text_commands.h"
#include "fullbore/text/text_model.h"
#include "fullbore/text/text_progress.h"

namespace fullbore {
namespace {

/// By the model that they are of.
using TextEvals = std::vector<std::pair<std::string, TextEval>>;

void refuse_others(const TextEvals& evals, const std::string& model) {
  for (const auto& [name, eval] : evals)
    if (name != model && eval.refuse) eval.refuse(model);
}

/// "without_rwkv" of "without rwkv".
std::string json_name(std::string words) {
  std::ranges::replace(words, ' ', '_');
  return words;
}

/// The batches that eval_text() measures on; of made-up examples those that the run held out.
MeasuredItems text_items(const EvalRequest& request, const TextEvals& evals) {
  if (text_task(stored_config(open_checkpoint(request.subject), false)) != nullptr)
    return measure_held_out(request);
  TrainedModel model = load_model(
      request.subject,
      {.frozen_from = request.frozen_from.empty() ? std::string() : request.frozen_from[0]});
  const auto found =
      std::ranges::find(evals, model.config.model.name, &std::pair<std::string, TextEval>::first);
  if (found != evals.end() && found->second.begin) found->second.begin(model.config);
  const std::string path = request.data.empty() ? model.config.data.path : request.data;
  Console console;
  const TextData text = open_text(model.config, path, model.tokenizer, text_progress(console));
  const bool whole = !request.data.empty();
  const ValidationSet set = evaluation_set(model.config, text, whole, request.batches);
  Evaluator evaluator(model_loss(model.config, model.tokenizer->vocabulary_size()), set,
                      model.state, trained_options(model.config));
  return measure_batches(
      evaluator, model.path,
      fmt::format("{}, {}, in tokens of {}", path,
                  whole ? "all of it" : split_text_about(model.config), model.tokenizer->kind()),
      console);
}

ExitCode eval_text(const EvalRequest& request, const TextEvals& evals) {
  if (request.frozen_from.size() > 1)
    throw UsageError("eval: a language model's frozen weights lie in one --frozen-from");
  TrainedModel model = load_model(
      request.subject,
      {.frozen_from = request.frozen_from.empty() ? std::string() : request.frozen_from[0]});
  if (const TextTask* const task = text_task(model.config))
    throw UsageError(
        fmt::format("eval: {} learned from made-up examples; measure it by `fullbore {} {}`",
                    model.path, task->measured_by, request.subject));
  refuse_others(evals, model.config.model.name);
  const auto found =
      std::ranges::find(evals, model.config.model.name, &std::pair<std::string, TextEval>::first);
  const TextEval own = found == evals.end() ? TextEval{} : found->second;
  if (own.begin) own.begin(model.config);
  const std::string path = request.data.empty() ? model.config.data.path : request.data;
  Console console;
  const TextData text = open_text(model.config, path, model.tokenizer, text_progress(console));
  if (own.instead)
    if (const std::optional<ExitCode> done = own.instead(request, model, text, console))
      return *done;
  const bool whole = !request.data.empty();
  const ValidationSet set = evaluation_set(model.config, text, whole, request.batches);
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
  std::optional<TextVariant> variant;
  std::optional<double> varied;
  if (own.variant && (variant = own.variant(model.config, tokens)))
    varied = evaluate(variant->loss, " " + variant->name).loss;
  console.clear();
  const double loss = result.loss;
  const auto& tell_state = text_model(model.config).evaluated_state;
  const std::string state = tell_state ? tell_state(model.config) : "";
  const auto predictions = static_cast<int64_t>(result.predictions);
  const std::string unit = text.tokenizer->kind() == "characters" ? "character" : "token";
  // By the text's mean number of bytes per token, which makes vocabularies comparable.
  const double bits_per_byte = loss / std::log(2.0) * static_cast<double>(text.tokens->size()) /
                               static_cast<double>(text.tokens->text_bytes());
  if (request.json) {
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
    if (!state.empty()) json["initial_state"] = state;
    if (varied)
      json[json_name(variant->name)] = {
          {"loss", *varied},
          {"perplexity", std::exp(*varied)},
          {"loss_difference", *varied - loss},
          {"perplexity_difference", std::exp(*varied) - std::exp(loss)}};
    write_output(json_text(json));
  } else {
    print_output("checkpoint          {} (step {})\n", model.path, model.step);
    print_output("text                {}: {}\n", path, split);
    print_output("predictions         {}, in {} batches\n", predictions, set.batches);
    if (!state.empty()) print_output("initial state       {}\n", state);
    print_output("loss                {:.6f} nats per {}\n", loss, unit);
    print_output("perplexity          {:.4f}\n", std::exp(loss));
    print_output("{:<20}{:.4f}\n", "bits per " + unit, loss / std::log(2.0));
    print_output("bits per byte       {:.4f}\n", bits_per_byte);
    if (varied)
      print_output("{:<20}loss {:.6f} ({:+.6f}), perplexity {:.4f} ({:+.4f})\n", variant->name,
                   *varied, *varied - loss, std::exp(*varied), std::exp(*varied) - std::exp(loss));
  }
  if (varied && !std::isfinite(*varied))
    throw NumericalError(fmt::format("eval: the loss {} is {}", variant->name, *varied));
  if (!std::isfinite(loss)) throw NumericalError(fmt::format("eval: the loss is {}", loss));
  return ExitCode::kOk;
}

}  // namespace

EvalKind add_text_eval(Command eval) {
  auto evals = std::make_shared<TextEvals>();
  EvalKind kind;
  kind.models = text_model_names();
  kind.takes_frozen = true;
  kind.examples = {"eval runs/mine-1 --data other.txt"};
  for (const TextModel& model : text_models()) {
    if (!model.add_eval) continue;
    evals->emplace_back(model.name, model.add_eval(eval));
    const std::vector<std::string>& examples = evals->back().second.examples;
    kind.examples.insert(kind.examples.end(), examples.begin(), examples.end());
  }
  kind.refuse = [evals] { refuse_others(*evals, ""); };
  kind.items = [evals](const EvalRequest& request) { return text_items(request, *evals); };
  kind.run = [evals](const EvalRequest& request) { return eval_text(request, *evals); };
  return kind;
}

void add_text_commands(Command root) {
  add_generate_command(root);
  add_export_command(root);
  add_data_command(root);
}

}  // namespace fullbore
