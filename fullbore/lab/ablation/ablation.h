#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fullbore/lab/ablation/ablation_plan.h"
#include "fullbore/lab/quality/quality_metric.h"
#include "fullbore/train/config.h"

namespace fullbore {

/// What an ablation is told.
struct AblationRequest {
  std::string config;                  ///< file
  std::vector<std::string> overrides;  ///< "key=value", of all arms
  Config settings;                     ///< the two, read
  std::vector<std::string>
      switches;  ///< as parse_switch() reads them; empty: known_switches() that change a program
  int64_t seeds = 0;          ///< 0: as many as there is time for
  int64_t steps = 0;          ///< of each run; 0: as many as there is time for
  double minutes = 15;        ///< for all of it
  int64_t eval_batches = 16;  ///< of an evaluation, at most; 0: train.eval_batches
  double turn_seconds = 0.25;
  std::string folder;
  bool resume = false;
  // Of an experiment that is known: these arms of these switches, with seeds from run.seed + first_seed on.
  std::vector<Arm> arms = {};
  std::vector<Switch> given_switches = {};
  int64_t first_seed = 0;
};

/// What came of it.
struct Ablation {
  AblationPlan plan;
  std::vector<MeasuredRun> trials;  ///< by arm; cold, alone, of few steps
  /// By seed, group and place in it. Empty ones where it was interrupted.
  std::vector<std::vector<std::vector<MeasuredRun>>> runs;
  bool interrupted = false;
};

using TellDoing = std::function<void(const std::string& doing)>;

/// Plans the arms, tries each with cold caches, decides how far time goes, and then lets them take turns, seed by seed, in processes
/// of their own. All that is finished is kept in the folder: plan.json, trials/, runs/. Stopped or killed, it goes on with
/// `resume`. `told`, if set, is called with the plan before the long part, where any of it is left.
///
/// UsageError: fewer than two seeds, an unknown switch, no switch that changes anything, a folder that holds another ablation, or one
/// to go on with without `resume`; DataError: the folder cannot be written, the disk is full, the base cannot be run.
Ablation ablate(const AblationRequest& request, const StopRequest& stop, const TellDoing& progress,
                const std::function<void(const AblationPlan&)>& told = {});

/// What is in such a folder. DataError: it holds none, or is damaged.
Ablation read_ablation(const std::string& folder);

/// What train.eval_batches is in all arms; 0: all batches. With switches of other sections than `engine` and `optim`, a batch
/// size or a context say, it is as configured: as many batches may be other rows there.
int64_t evaluation_batches(const AblationRequest& request, const AblationPlan& plan);

/// Whose runs an arm's figures are: its own, or those of the arm with the same programs.
size_t measured_arm(const AblationPlan& plan, size_t arm);

}  // namespace fullbore
