#include "fullbore/train/frozen.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/train/made_at.h"

namespace fullbore {
namespace {

void require_matches(const Graph& graph, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    size_t least = SIZE_MAX;
    const std::string* nearest = nullptr;
    for (const Graph::Input& input : graph.inputs()) {
      if (input.role != Role::parameter && input.role != Role::frozen) continue;
      const size_t edits = pattern_distance(pattern, input.name);
      if (edits >= least) continue;
      least = edits;
      nearest = &input.name;
    }
    if (least == 0) continue;
    throw UsageError(
        fmt::format("train.freeze: '{}' matches no parameter.{}", pattern,
                    nearest != nullptr ? fmt::format(" The nearest is '{}'.", *nearest) : ""));
  }
}

std::vector<Tensor> trained_tensors(const Trace& trace) {
  std::vector<Tensor> tensors;
  for (const Trace::Parameter& parameter : trace.parameters()) tensors.push_back(parameter.tensor);
  return tensors;
}

void add_metric(Loss& loss, const LossTerm& term) {
  if (std::ranges::find(loss.metrics, term.name, &Metric::name) == loss.metrics.end())
    loss.metrics.push_back({term.name, term.mean, term.weight});
}

}  // namespace

LossFunction with_frozen(LossFunction loss, std::vector<std::string> patterns,
                         FrozenScope::Storage storage) {
  if (patterns.empty()) return loss;
  return [loss = std::move(loss), patterns = std::move(patterns), storage = std::move(storage)](
             Trace& trace, std::span<const Tensor> batch) {
    const FrozenScope frozen(trace, patterns, storage);
    Loss made = loss(trace, batch);
    require_matches(trace.builder().graph(), patterns);
    return made;
  };
}

std::vector<bool> dead_terms(Trace& trace, const Loss& loss) {
  std::vector<Tensor> means = {loss.mean};
  for (const LossTerm& term : loss.terms) means.push_back(term.mean);
  const std::vector<Tensor> trained = trained_tensors(trace);
  std::vector<bool> lives = depends_on(loss.mean.builder(), means, trained);
  const bool whole = lives.front();
  lives.erase(lives.begin());
  std::vector<bool> dead;
  for (size_t i = 0; i < lives.size(); ++i)
    dead.push_back(!lives[i] && !loss.terms[i].name.empty());
  const bool any = lives.empty() ? whole : std::ranges::find(lives, true) != lives.end();
  if (any) return dead;
  if (trace.training() && !trained.empty()) {  // without any, the optimiser says so
    std::vector<std::string> names;
    for (const LossTerm& term : loss.terms)
      if (!term.name.empty()) names.push_back(term.name);
    throw UsageError(fmt::format("the loss depends on no trained parameter{}{}{}",
                                 names.empty() ? "" : "; it is the sum of ", fmt::join(names, ", "),
                                 made_at(loss.mean)));
  }
  return std::vector<bool>(dead.size(), false);
}

Loss without_terms(Loss loss, const std::vector<bool>& dead) {
  if (std::ranges::find(dead, true) == dead.end()) return loss;
  std::vector<LossTerm> living;
  Tensor mean;
  for (size_t i = 0; i < loss.terms.size(); ++i) {
    const LossTerm& term = loss.terms[i];
    if (dead[i]) {
      loss.dead.push_back(term.name);
      add_metric(loss, term);
      continue;
    }
    living.push_back(term);
    const Tensor own = cast(term.mean, loss.mean.dtype());
    mean = mean.valid() ? mean + own : own;
  }
  loss.mean = mean;
  loss.terms = std::move(living);
  return loss;
}

}  // namespace fullbore
