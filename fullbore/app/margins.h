#pragma once
#include <string>
#include <vector>

#include "fullbore/app/command.h"
#include "fullbore/lab/quality/equivalence.h"
#include "fullbore/train/config.h"

namespace fullbore {

/// What a comparison is decided by, as `lab gate` and `eval --against` take it.
struct JudgeArguments {
  std::vector<std::string> margins;  ///< "loss=0.02", "perplexity=3%"
  EquivalenceOptions options;
};
/// --margin, --alpha, --power.
void add_judge_options(Command command, JudgeArguments& arguments);

/// The metrics with the margins of --margin. UsageError: there is none, a --margin of one that is not among them, with the
/// nearest one, or a margin that is no positive number. Where there are none, a --margin makes its metric one, the lower
/// the better. `model`: what they judge, for people.
QualityMetrics with_margins(QualityMetrics metrics, const JudgeArguments& arguments,
                            const std::string& model);
/// The same of what the configuration's workload declares.
QualityMetrics judged_metrics(const Config& config, const JudgeArguments& arguments);

/// 0 passed, 4 failed, kUndecided.
ExitCode exit_code_of(Verdict verdict);

}  // namespace fullbore
