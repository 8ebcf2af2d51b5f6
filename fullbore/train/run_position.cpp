#include "fullbore/train/run_position.h"

namespace fullbore {

bool RunPosition::evaluated(double loss, double score) {
  // Among equals the lower loss; the first of all, where none is known.
  const bool best = !(score >= best_score) || (score == best_score && loss < best_validation_loss);
  evaluated_step = step;
  validation_loss = loss;
  ++evaluations_since_best;
  if (best) {
    evaluations_since_best = 0;
    best_validation_loss = loss;
    best_score = score;
    best_step = step;
  }
  return best;
}

RunRecord to_record(const RunPosition& position) {
  RunRecord record;
  record.step = position.step;
  record.data_position = static_cast<uint64_t>(position.step);
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  record.metrics = {{"train_loss", position.train_loss},
                    {"validation_loss", position.validation_loss},
                    {"best_validation_loss", position.best_validation_loss},
                    {"best_score", position.best_score},
                    {"best_step", number(position.best_step)},
                    {"evaluated_step", number(position.evaluated_step)},
                    {"evaluations_since_best", number(position.evaluations_since_best)},
                    {"skipped_steps", number(position.skipped_steps)},
                    {"skipped_in_row", number(position.skipped_in_row)}};
  if (position.restores > 0) record.metrics["restores"] = number(position.restores);
  return record;
}

RunPosition to_position(const RunRecord& record) {
  const auto metric = [&](const char* name, double unknown) {
    const auto found = record.metrics.find(name);
    return found == record.metrics.end() ? unknown : found->second;
  };
  // None of them can exceed the number of steps, save evaluations at step 0.
  const auto count = [&](const char* name, int64_t unknown) {
    const double value = metric(name, -1);
    const bool possible =
        value >= 0 && value <= static_cast<double>(record.step) + 1 && value < 0x1p63;
    return possible ? static_cast<int64_t>(value) : unknown;
  };
  RunPosition position;
  position.step = record.step;
  position.evaluated_step = count("evaluated_step", -1);
  position.best_step = count("best_step", -1);
  position.evaluations_since_best = count("evaluations_since_best", 0);
  position.skipped_steps = count("skipped_steps", 0);
  position.skipped_in_row = count("skipped_in_row", 0);
  position.restores = count("restores", 0);
  position.train_loss = metric("train_loss", RunPosition::kUnknown);
  position.validation_loss = metric("validation_loss", RunPosition::kUnknown);
  position.best_validation_loss = metric("best_validation_loss", RunPosition::kUnknown);
  position.best_score = metric("best_score", position.best_validation_loss);
  return position;
}

}  // namespace fullbore
