#include "fullbore/ckpt/checkpoint_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <set>
#include <tuple>
#include <utility>

#include "fullbore/base/files.h"

namespace fullbore {
namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::string_view kBest = "best";

/// The link to the best checkpoint, or to the one that was it before, or before that.
std::string best_link(int64_t rank) {
  return rank == 1 ? std::string(kBest) : fmt::format("{}-{}", kBest, rank);
}
bool is_former_best(const std::string& name) {
  const std::string prefix = fmt::format("{}-", kBest);
  return name.starts_with(prefix) && name.size() > prefix.size() &&
         std::all_of(name.begin() + static_cast<std::ptrdiff_t>(prefix.size()), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// "step-00000250", or "step-00000250.2" for the second one of that step.
struct CheckpointName {
  int64_t step = 0;
  int64_t edition = 1;
};

std::string text(const CheckpointName& name) {
  return name.edition == 1 ? fmt::format("{}{:08}", kPrefix, name.step)
                           : fmt::format("{}{:08}.{}", kPrefix, name.step, name.edition);
}

std::optional<CheckpointName> parse_name(const std::string& name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  CheckpointName parsed;
  const char* const end = name.data() + name.size();
  auto read = std::from_chars(name.data() + kPrefix.size(), end, parsed.step);
  if (read.ec == std::errc() && read.ptr != end && *read.ptr == '.')
    read = std::from_chars(read.ptr + 1, end, parsed.edition);
  if (read.ec != std::errc() || read.ptr != end || text(parsed) != name) return std::nullopt;
  return parsed;
}

bool is_temporary(const std::string& name) {
  return name.starts_with(".") && name.ends_with(".tmp");
}

/// Names of checkpoints in a folder, newest first.
Result<std::vector<std::string>> checkpoint_names(const std::string& folder, FileSystem& files) {
  const std::vector<std::string> all = files.list(folder);
  if (errno != 0)
    return Failure{fmt::format("cannot read the folder {}: {}", folder, system_reason())};
  std::vector<CheckpointName> found;
  for (const std::string& name : all)
    if (const auto parsed = parse_name(name)) found.push_back(*parsed);
  std::sort(found.begin(), found.end(), [](const CheckpointName& a, const CheckpointName& b) {
    return std::tie(a.step, a.edition) > std::tie(b.step, b.edition);
  });
  std::vector<std::string> names;
  for (const CheckpointName& name : found) names.push_back(text(name));
  return names;
}

/// What of a checkpoint is cheap to know: the manifest and the record.
Result<LatestCheckpoint::Found> look_at(const std::string& path, FileSystem& files) {
  if (!files.link_target(path).empty())
    return Failure{fmt::format("{} is a symbolic link: a run's checkpoints are its own", path)};
  Result<CheckpointFolder> checkpoint = open_checkpoint_folder(path, files);
  if (!checkpoint.ok()) return Failure{checkpoint.error()};
  Result<RunRecord> record = read_run_record(checkpoint.value());
  if (!record.ok()) return Failure{record.error()};
  return LatestCheckpoint::Found{std::move(checkpoint).value(), std::move(record).value()};
}

}  // namespace

CheckpointStore::CheckpointStore(std::string folder, Retention retention, FileSystem& files)
    : folder_(std::move(folder)), retention_(retention), files_(&files) {}

Result<std::vector<std::string>> CheckpointStore::list() const {
  Result<std::vector<std::string>> names = checkpoint_names(folder_, *files_);
  if (names.ok())
    for (std::string& name : names.value()) name.insert(0, folder_ + "/");
  return names;
}

void CheckpointStore::remove_stale() {
  for (const std::string& name : files_->list(folder_)) {
    if (!is_temporary(name)) continue;
    const std::string path = folder_ + "/" + name;
    // What cannot be removed harms nobody: its name is never read.
    if (files_->remove(path) != 0) (void)remove_folder_with_contents(path, *files_).ok();
  }
}

std::string CheckpointStore::free_name(int64_t step) const {
  CheckpointName name{step, 1};
  FileStatus status;
  while (files_->status(folder_ + "/" + text(name), status) == 0) ++name.edition;
  return text(name);
}

Status CheckpointStore::save(int64_t step, const CheckpointContents& contents, bool best) {
  const std::string name = free_name(step);
  const std::string path = folder_ + "/" + name;
  const std::string temporary = fmt::format("{}/.{}.tmp", folder_, name);
  const auto failure = [&] {
    return Failure{fmt::format("cannot write {}: {}", path, system_reason())};
  };
  FileStatus status;
  if (files_->status(temporary, status) == 0)
    if (Status removed = remove_folder_with_contents(temporary, *files_); !removed.ok())
      return removed;
  if (Status written = write_checkpoint_folder(temporary, contents, *files_); !written.ok()) {
    (void)remove_folder_with_contents(temporary, *files_).ok();  // the disk may be full of it
    return written;
  }
  if (files_->rename(temporary, path) != 0) return failure();
  if (files_->sync_folder(folder_) != 0) return failure();
  if (Status pointed = point("last", name); !pointed.ok()) return pointed;
  if (best)
    if (Status pointed = point_best(name); !pointed.ok()) return pointed;
  if (files_->sync_folder(folder_) != 0) return failure();
  retain();
  return success();
}

Status CheckpointStore::adopt(const std::string& path, bool best) {
  const std::string name = path.substr(path.rfind('/') + 1);
  bool changed = false;
  if (target("last") != name) {
    if (Status pointed = point("last", name); !pointed.ok()) return pointed;
    changed = true;
  }
  if (best && target(best_link(1)) != name) {
    if (Status pointed = point_best(name); !pointed.ok()) return pointed;
    changed = true;
  }
  if (changed && files_->sync_folder(folder_) != 0)
    return Failure{fmt::format("cannot write {}: {}", folder_, system_reason())};
  return success();
}

std::string CheckpointStore::target(const std::string& link) const {
  return files_->link_target(folder_ + "/" + link);
}

Status CheckpointStore::point(const std::string& link, const std::string& name) {
  const std::string path = folder_ + "/" + link;
  const std::string temporary = fmt::format("{}/.{}.tmp", folder_, link);
  if (!files_->link_target(temporary).empty()) files_->remove(temporary);
  if (files_->make_link(name, temporary) != 0 || files_->rename(temporary, path) != 0)
    return Failure{fmt::format("cannot write the link {}: {}", path, system_reason())};
  return success();
}

// From the last rank to the first: whenever this is cut off, all but the last of the former best still have a link.
Status CheckpointStore::point_best(const std::string& name) {
  for (int64_t rank = retention_.best; rank > 1; --rank) {
    const std::string former = target(best_link(rank - 1));
    if (former.empty() || former == name) continue;
    if (Status pointed = point(best_link(rank), former); !pointed.ok()) return pointed;
  }
  return point(best_link(1), name);
}

// A checkpoint too many is no failure of a run: whatever cannot be removed stays.
void CheckpointStore::retain() {
  const Result<std::vector<std::string>> names = checkpoint_names(folder_, *files_);
  if (retention_.newest == 0 || !names.ok()) return;
  std::set<std::string> kept = {target("last")};
  std::set<std::string> links;
  for (int64_t rank = 1; rank <= retention_.best; ++rank) {
    links.insert(best_link(rank));
    kept.insert(target(best_link(rank)));
  }
  // Of a run that kept more of them before: what they lead to may go.
  for (const std::string& name : files_->list(folder_))
    if (is_former_best(name) && !links.contains(name) && !target(name).empty())
      files_->remove(folder_ + "/" + name);
  int64_t newest = 0;
  for (const std::string& name : names.value())
    if (newest++ >= retention_.newest && !kept.contains(name)) discard(name);
}

void CheckpointStore::discard(const std::string& name) {
  const std::string temporary = fmt::format("{}/.{}.tmp", folder_, name);
  if (files_->rename(folder_ + "/" + name, temporary) != 0) return;
  if (files_->sync_folder(folder_) != 0) return;
  (void)remove_folder_with_contents(temporary, *files_).ok();
}

Result<LatestCheckpoint> find_latest(const CheckpointStore& store, FileSystem& files) {
  // The step in the record, not the one in the name, says which is newest: folders are copied.
  LatestCheckpoint latest;
  std::vector<LatestCheckpoint::Found> candidates;
  const Result<std::vector<std::string>> paths = store.list();
  if (!paths.ok()) return Failure{paths.error()};
  for (const std::string& path : paths.value()) {
    Result<LatestCheckpoint::Found> found = look_at(path, files);
    if (found.ok())
      candidates.push_back(std::move(found).value());
    else
      latest.rejected.push_back(found.error());
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.record.step > b.record.step; });
  for (LatestCheckpoint::Found& candidate : candidates) {
    if (const Status verified = candidate.checkpoint.verify(); !verified.ok()) {
      latest.rejected.push_back(verified.error());
      continue;
    }
    latest.found.emplace(std::move(candidate));
    break;
  }
  return latest;
}

}  // namespace fullbore
