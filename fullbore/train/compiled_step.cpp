#include "fullbore/train/compiled_step.h"

#include <cmath>
#include <utility>

namespace fullbore {

CompiledStep::CompiledStep(Graph graph, PreparedProgram prepared, State& state,
                           std::shared_ptr<Arena> arena)
    : graph_(std::move(graph)),
      program_(Program::bind(std::move(prepared), state, std::move(arena))),
      loss_(program_.output("loss")),
      norm_(graph_.find_output("gradient_norm")),
      predictions_(graph_.find_output("predictions")),
      skipped_(graph_.find_output("skipped")),
      loss_scale_(graph_.find_output("loss_scale")) {
  for (size_t i = 0; i < graph_.outputs().size(); ++i)
    if (graph_.outputs()[i].updates < 0 && graph_.outputs()[i].name != "skipped")
      results_.emplace_back(graph_.outputs()[i].name, static_cast<int>(i));
}

bool CompiledStep::is_bad() const {
  if (skipped_ >= 0) return read(skipped_) != 0;
  return !std::isfinite(read(loss_)) || (norm_ >= 0 && !std::isfinite(read(norm_)));
}

double CompiledStep::overflowed_scale() const {
  if (skipped_ < 0 || loss_scale_ < 0 || !std::isfinite(loss())) return 0;
  const double scale = read(loss_scale_);
  return scale > 1 ? scale : 0;
}

StepResults CompiledStep::results() const {
  StepResults values;
  for (const auto& [name, output] : results_) values.emplace_back(name, read(output));
  return values;
}

double CompiledStep::read(int output) const {
  float value = 0;
  program_.read_result(output, std::as_writable_bytes(std::span(&value, 1)));
  return double{value};
}

}  // namespace fullbore
