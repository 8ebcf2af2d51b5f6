#include "fullbore/app/held_out_items.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/app/trained_state.h"
#include "fullbore/base/hash.h"

namespace fullbore {
namespace {

Evaluation evaluate(Evaluator& evaluator, Console& console,
                    const std::function<void(const EvaluatedBatch&)>& each) {
  Progress progress;
  Evaluation evaluation = *evaluator.evaluate(
      [&](uint64_t done) {
        progress.phase = fmt::format("evaluating {}/{}", done, evaluator.batches());
        console.live(progress);
        return true;
      },
      each);
  console.clear();
  return evaluation;
}

}  // namespace

MeasuredItems measure_batches(Evaluator& evaluator, const std::string& subject,
                              const std::string& data, Console& console) {
  MeasuredItems items{subject, data, "batches", {}, {{"loss", {}, {}}}};
  for (const std::string& name : evaluator.metrics()) items.columns.push_back({name, {}, {}});
  evaluate(evaluator, console, [&](const EvaluatedBatch& batch) {
    items.keys.push_back(hash_hex(batch.hash));
    items.columns[0].values.push_back(batch.loss);
    items.columns[0].weights.push_back(batch.predictions);
    for (size_t i = 0; i < batch.metrics.size(); ++i) {
      items.columns[i + 1].values.push_back(batch.metrics[i]);
      items.columns[i + 1].weights.push_back(batch.weights[i]);
    }
  });
  return items;
}

MeasuredItems measure_held_out(const EvalRequest& request, std::optional<int64_t> seed) {
  if (!request.data.empty() || !request.frozen_from.empty())
    throw UsageError(fmt::format(
        "eval: --against measures such models on what their runs held out; leave {} out",
        request.data.empty() ? "--frozen-from" : "--data"));
  const OpenedCheckpoint checkpoint = open_checkpoint(request.subject);
  const Config config = stored_config(checkpoint);
  choose_processor(config);
  choose_caches(config);
  Console console;
  const OpenedWorkload workload = open_workload(config, console);
  console.clear();
  const TrainingJob job = workload.job(config);
  if (!job.validation)
    throw UsageError(fmt::format("eval: {} held nothing out", checkpoint.folder.path()));
  // The weights, and what is lent to them, stay those of the run's own seed.
  std::optional<OpenedWorkload> other;
  std::optional<TrainingJob> drawn;
  if (seed && *seed != config.run.seed) {
    Config seeded = config;
    seeded.run.seed = *seed;
    other = open_workload(seeded, console);
    drawn = other->job(seeded);
    console.clear();
  }
  ValidationSet set = drawn ? drawn->validation.value() : *job.validation;
  if (request.batches > 0)
    set.batches = std::min(set.batches, static_cast<uint64_t>(request.batches));
  // State does not depend on the shape.
  const TracedStep traced = trace_evaluation(job.loss, set.source->shapes().front(), Weights::raw);
  State state = trained_state(checkpoint, config, trained_entries(checkpoint, traced.graph),
                              open_job_device(config), job.frozen.get());
  Evaluator evaluator(job.loss, set, state, trained_options(config));
  return measure_batches(evaluator, checkpoint.folder.path(), workload.batches, console);
}

}  // namespace fullbore
