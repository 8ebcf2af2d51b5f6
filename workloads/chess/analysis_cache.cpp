#include "workloads/chess/analysis_cache.h"

#include <fmt/format.h>

#include <utility>

#include "fullbore/base/file_lines.h"
#include "fullbore/base/hash.h"
#include "fullbore/data/text_lines.h"

namespace fullbore::chess {
namespace {

constexpr size_t kMostEntries = size_t{1} << 20;  // in memory; about 400 bytes each
constexpr uint64_t kMostFileBytes = uint64_t{512} << 20;
constexpr size_t kHexDigits = 16;

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

void AnalysisCache::read() {
  Result<FileLines> lines = FileLines::open(path_, *files_);
  if (!lines.ok()) return;  // there is none yet, or none that can be read: everything is analysed
  FileStatus status;
  if (files_->status(path_, status) == 0) file_bytes_ = status.bytes;
  for (;;) {
    const Result<bool> more = lines.value().next();
    if (!more.ok()) ++damaged_;
    if (!more.ok() || !more.value()) return;
    const std::string_view line = lines.value().line();
    if (!line.empty() && (!lines.value().is_ended() || !read_entry(line))) ++damaged_;
  }
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
  if (!path_.empty() && !append(line)) ++unwritten_;
}

bool AnalysisCache::append(const std::string& line) {
  if (file_bytes_ + line.size() > kMostFileBytes) return false;
  const int file = files_->append(path_);
  if (file < 0) return false;
  // One call, so that lines of several processes do not mix. A part of a line is what the checksum is for.
  const ssize_t written = files_->write(file, line.data(), line.size());
  const bool closed = files_->close(file) == 0;
  if (written > 0) file_bytes_ += static_cast<uint64_t>(written);
  return closed && written == static_cast<ssize_t>(line.size());
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
