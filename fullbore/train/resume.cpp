#include "fullbore/train/resume.h"

#include <fmt/format.h>

namespace fullbore {

std::optional<RunPosition> restore_last(const TrainingJob& job, const RunDirectory& run,
                                        CheckpointStore& store, State& state,
                                        const std::map<std::string, FrozenTensor>& frozen,
                                        spdlog::logger& log) {
  std::vector<std::string> passed_over;
  const std::optional<RunRecord> record =
      load_last(run, store, job.tokenizer, job.identity, state, passed_over, frozen);
  for (const std::string& reason : passed_over) log.warn("{}", reason);
  if (!record) {
    log.info("{} holds no checkpoint yet: starting at step 0", run.path());
    return std::nullopt;
  }
  if (record->seed != job.options.seed)
    throw UsageError(fmt::format("the run was started with run.seed={}, not {}", record->seed,
                                 job.options.seed));
  if (state.read<int64_t>("step")[0] != record->step)
    throw DataError(fmt::format("{}: metadata say step {}, the State says {}", run.path(),
                                record->step, state.read<int64_t>("step")[0]));
  const RunPosition position = to_position(*record);
  if (position.step > job.options.steps)
    throw UsageError(fmt::format("{} is at step {} already, past train.steps = {}", run.path(),
                                 position.step, job.options.steps));
  return position;
}

}  // namespace fullbore
