#include "workloads/chess/analysis_cache.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "fullbore/base/file_lines.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/text_lines.h"

namespace fullbore::chess {
namespace {

constexpr size_t kMostEntries = size_t{1} << 20;  // in memory; about 400 bytes each
constexpr uint64_t kMostFileBytes = uint64_t{512} << 20;
constexpr size_t kHexDigits = 16;
/// Entries between two waits for the disk: what a power cut costs is analysed anew.
constexpr int64_t kMostUnsynced = 1024;

/// Up to the next tab, which goes too.
std::string_view take_field(std::string_view& line) {
  const size_t end = std::min(line.find('\t'), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

}  // namespace

AnalysisCache::AnalysisCache(std::string path, std::string_view settings, FileSystem& files)
    : path_(std::move(path)), settings_(hash_hex(hash_text(settings))), files_(&files) {
  if (!path_.empty()) read();
}

AnalysisCache::~AnalysisCache() {
  if (unsynced_ > 0) sync();
}

void AnalysisCache::read() {
  FileStatus status;
  is_new_ = files_->status(path_, status) != 0 && errno == ENOENT;
  if (is_new_) return;
  file_bytes_ = status.bytes;
  Result<FileLines> lines = FileLines::open(path_, *files_);
  if (!lines.ok()) {
    notices_.push_back(fmt::format("{}; every position is analysed anew", lines.error()));
    return;
  }
  for (;;) {
    const Result<bool> more = lines.value().next();
    if (!more.ok()) ++damaged_;
    if (!more.ok() || !more.value()) break;
    const std::string_view line = lines.value().line();
    if (!line.empty() && (!lines.value().is_ended() || !read_entry(line))) ++damaged_;
  }
  if (damaged_ > 0)
    notices_.push_back(
        fmt::format("{}: {} lines are damaged, or no analyses; they are passed over, and their "
                    "positions are analysed anew",
                    path_, damaged_));
}

bool AnalysisCache::read_entry(std::string_view line) {
  if (line.size() <= kHexDigits || line[kHexDigits] != '\t') return false;
  const std::string_view checksum = take_field(line);
  if (checksum != hash_hex(hash_text(line))) return false;
  if (take_field(line) != settings_) return true;
  const std::string fen(take_field(line));
  std::vector<RankedMove> moves;
  for (std::string_view move = take_word(line); !move.empty(); move = take_word(line)) {
    const std::optional<double> eval = parse_number(take_word(line));
    if (!eval) return false;
    moves.push_back({std::string(move), *eval});
  }
  remember(fen, std::move(moves));
  return true;
}

void AnalysisCache::remember(const std::string& fen, std::vector<RankedMove> moves) {
  if (!entries_.insert_or_assign(fen, std::move(moves)).second) return;
  order_.push_back(fen);
  if (order_.size() <= kMostEntries) return;
  entries_.erase(order_.front());
  order_.pop_front();
}

std::optional<std::vector<RankedMove>> AnalysisCache::find(const std::string& fen) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(fen);
  if (found == entries_.end()) return std::nullopt;
  return found->second;
}

void AnalysisCache::put(const std::string& fen, const std::vector<RankedMove>& moves) {
  std::string entry = fmt::format("{}\t{}\t", settings_, fen);
  for (const RankedMove& each : moves) entry += fmt::format("{} {} ", each.move, each.eval);
  // Behind a line end of its own, it is whole even where another's line was torn before it.
  const std::string line = fmt::format("\n{}\t{}\n", hash_hex(hash_text(entry)), entry);
  const std::lock_guard lock(mutex_);
  remember(fen, moves);
  if (path_.empty()) return;
  std::string problem = append(line);
  if (!problem.empty())
    ++unwritten_;
  else if (++unsynced_ >= kMostUnsynced)
    problem = sync();
  // Once: a disk that is full is full for each of them.
  if (!problem.empty() && std::exchange(tells_writes_, false))
    notices_.push_back(
        fmt::format("{}: what engines say is not kept for later runs: {}", path_, problem));
}

/// Returns what is wrong.
std::string AnalysisCache::append(std::string_view bytes) {
  if (file_bytes_ + bytes.size() > kMostFileBytes)
    return fmt::format("it has {} MiB", kMostFileBytes >> 20);
  const int file = files_->append(path_);
  if (file < 0) return std::strerror(errno);
  // One call, so that lines of several processes do not mix. A part of a line is what the checksum is for.
  const ssize_t written = files_->write(file, bytes.data(), bytes.size());
  int reason = written < 0 ? errno : written == std::ssize(bytes) ? 0 : ENOSPC;
  if (files_->close(file) != 0 && reason == 0) reason = errno;
  if (written > 0) file_bytes_ += static_cast<uint64_t>(written);
  return reason == 0 ? "" : std::strerror(reason);
}

/// Likewise.
std::string AnalysisCache::sync() {
  unsynced_ = 0;
  const int file = files_->append(path_);
  if (file < 0) return std::strerror(errno);
  int reason = files_->sync(file) == 0 ? 0 : errno;
  if (files_->close(file) != 0 && reason == 0) reason = errno;
  const std::string folder = std::filesystem::path(path_).parent_path();
  if (reason == 0 && std::exchange(is_new_, false) &&
      files_->sync_folder(folder.empty() ? "." : folder) != 0)
    reason = errno;
  return reason == 0 ? "" : std::strerror(reason);
}

std::vector<std::string> AnalysisCache::take_notices() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notices_, {});
}

size_t AnalysisCache::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

int64_t AnalysisCache::unwritten() const {
  const std::lock_guard lock(mutex_);
  return unwritten_;
}

}  // namespace fullbore::chess
