#include "fullbore/ckpt/latest.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace fullbore {
namespace {

bool is_checkpoint_name(std::string_view name) {
  return name == kLastCheckpointName ||
         (name.starts_with("step-") && name.ends_with(".safetensors"));
}

struct Candidate {
  int64_t step = 0;
  std::string path;
};

}  // namespace

std::string step_checkpoint_name(int64_t step) {
  return fmt::format("step-{:08}.safetensors", step);
}

Result<LatestCheckpoint> find_latest(const std::string& folder) {
  std::vector<std::string> paths;
  std::error_code error;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    if (is_checkpoint_name(entry->path().filename().string()))
      paths.push_back(entry->path().string());
  if (error) return Failure{fmt::format("cannot read the folder {}: {}", folder, error.message())};
  std::sort(paths.begin(), paths.end());

  // The step in the metadata, not the one in the name, says which is newest: files are copied.
  LatestCheckpoint latest;
  std::vector<Candidate> candidates;
  for (const std::string& path : paths) {
    const Result<Checkpoint> checkpoint = read_checkpoint(path, Verify::kHeader);
    if (!checkpoint.ok()) {
      latest.rejected.push_back(checkpoint.error());
      continue;
    }
    const Result<RunRecord> record = read_run_record(checkpoint.value());
    if (record.ok()) {
      candidates.push_back({record.value().step, path});
    } else {
      latest.rejected.push_back(record.error());
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.step > b.step; });
  for (const Candidate& candidate : candidates) {
    Result<Checkpoint> checkpoint = read_checkpoint(candidate.path);
    if (!checkpoint.ok()) {
      latest.rejected.push_back(checkpoint.error());
      continue;
    }
    Result<RunRecord> record = read_run_record(checkpoint.value());
    if (!record.ok()) {  // replaced since it was looked at
      latest.rejected.push_back(record.error());
      continue;
    }
    latest.found.emplace(
        LatestCheckpoint::Found{std::move(checkpoint).value(), std::move(record).value()});
    break;
  }
  return latest;
}

}  // namespace fullbore
