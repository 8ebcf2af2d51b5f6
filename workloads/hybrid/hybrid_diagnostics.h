#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/monitor/console.h"
#include "fullbore/text/trained_text_model.h"
#include "workloads/hybrid/bands.h"

namespace fullbore {

/// A figure that a trained hybrid model is judged by.
struct Diagnostic {
  std::string name;
  double value = 0;
  std::optional<Band> band = {};  ///< none: it is only reported
};

/// Held-out batches by a configuration: that of the model, but for the length of a row.
using HeldOut = std::function<ValidationSet(const Config&)>;

/// Examines the model on held-out text: the branches' variances, gates and entropies, norms of gradients, what the loss
/// rises by without a branch or its memory, the perplexity over long stretches, and how states grow, differ and change
/// over 512 tokens. Losses are of at most `most_batches` batches (0: all). UsageError unless it is a hybrid model with
/// two recurrent branches; DataError for less than 10 stretches of 513 tokens.
std::vector<Diagnostic> diagnose_hybrid(TrainedModel& model, const HeldOut& held_out,
                                        int64_t most_batches, Console& console);

/// A line for each, judged ones with their band.
std::string diagnostics_text(const std::vector<Diagnostic>& diagnostics);

}  // namespace fullbore
