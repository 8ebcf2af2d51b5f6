#pragma once
/// The training step of a config, replayed on demand: Fullbore's side of a comparison with its peers. A workload that is
/// compared has a program of its own in workloads/<name>/bench, which calls run_training_step():
///
///     bench_<name>_step [--share FILE] CONFIG [key=value ...]
///
/// Obeys the protocol of bench/peers/README.md: a JSON line when ready, then for each line `N` read
/// from standard input N steps on fresh batches and one JSON line about them. --share writes what the
/// other sides start from before the first step: initial parameters, the first batch or batches, and the tokens
/// to draw further ones from. Batches are made by the calling thread inside the measured time, so
/// that no thread beside the workers works; on a card they are prepared ahead, as in training. For
/// people there are `fullbore bench` and `profile`.
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "fullbore/train/config.h"
#include "fullbore/train/trainer.h"

namespace fullbore::bench {

using Json = nlohmann::ordered_json;

/// A job that the peers' scripts do too.
struct PeerJob {
  std::string model;  ///< value of model.name
  /// UsageError for settings that those scripts do not know: they would do other work.
  std::function<void(const Config&)> check;
  /// What they copy, besides batch, dropout and schedule: keys of their own.
  std::function<Json(const Config&, const TrainingJob&)> sizes;
  std::string counted =
      {};  ///< what a row of a batch is, for rates: "spectra"; empty: rates are of tokens
  /// The first so many batches are shared; with more than one, each field is [batches, ...].
  int64_t shared_batches = 1;
};

/// Of a model of texts: what all peers know of its data and optimizer. UsageError.
void check_text_job(const Config& config);
/// Of a model of texts: context, layers, heads and width.
Json text_sizes(const Config& config);

/// main() of such a program.
int run_training_step(int argc, char** argv, const PeerJob& peer);

}  // namespace fullbore::bench
