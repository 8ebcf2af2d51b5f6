#include "fullbore/train/weight_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/optim/optimizer.h"
#include "fullbore/passes/quantize_linears.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMostTextBytes = uint64_t{64} << 20;

/// Refuses a file that is none, or lies outside of `root` (canonical), or is a text of excessive length.
void check_file(const fs::path& root, const fs::path& file) {
  std::error_code error;
  const fs::path real = fs::canonical(file, error);
  if (error) throw DataError(fmt::format("cannot read {}: {}", file.string(), error.message()));
  const auto [end, in_root] = std::mismatch(root.begin(), root.end(), real.begin(), real.end());
  if (end != root.end())
    throw DataError(fmt::format("{} is a link that leads out of {}, to {}", file.string(),
                                root.string(), real.string()));
  if (!fs::is_regular_file(real, error))
    throw DataError(fmt::format("{} is no regular file", file.string()));
  const bool is_text = file.extension() == ".json";
  const uintmax_t bytes = fs::file_size(real, error);
  if (error || (is_text && bytes > kMostTextBytes))
    throw DataError(
        fmt::format("{} has {} bytes, at most {} are read", file.string(), bytes, kMostTextBytes));
}

OpenedCheckpoint open_within(const std::string& named) {
  const std::string path = checkpoint_of(named);
  std::error_code error;
  const fs::path around = fs::is_directory(named, error) ? fs::path(named) : fs::path(path);
  const fs::path root = fs::canonical(around, error);
  if (error) throw DataError(fmt::format("cannot read {}: {}", named, error.message()));
  check_file(root, fs::path(path) / kManifestName);
  CheckpointFolder folder = open_checkpoint_folder(path).take_or_throw();
  for (const auto& [name, entry] : folder.manifest()) check_file(root, fs::path(path) / name);
  folder.verify().take_or_throw();
  RunRecord record = read_run_record(folder).take_or_throw();
  return {std::move(folder), std::move(record)};
}

void refuse_8_bits(const std::string& path, const Checkpoint& file) {
  const std::string suffix = int8_weight_name("");
  for (const StoredTensor& tensor : file.tensors())
    if (tensor.name.ends_with(suffix))
      throw DataError(fmt::format(
          "{} has '{}', a weight in 8 bits, which is not trained: start from the run that it was "
          "exported from",
          path, tensor.name));
}

uint64_t row_bytes(const TensorType& type) {
  const int64_t rows = type.shape.rank() == 0 ? 0 : type.shape[0];
  return rows == 0 ? 0 : static_cast<uint64_t>(type.bytes() / rows);
}

/// May the rows of the one become rows of the other?
bool rows_go_together(const TensorType& here, const TensorType& there) {
  const Shape &a = here.shape, &b = there.shape;
  if (here.dtype != there.dtype || a.rank() == 0 || a.rank() != b.rank()) return false;
  for (int axis = 1; axis < a.rank(); ++axis)
    if (a[axis] != b[axis]) return false;
  return true;
}

/// A tokenizer of more tokens than the table has rows is no reason to read beyond it.
void check_rows(const RowOrigins& origins, const TensorType& there) {
  const int64_t rows = there.shape.rank() == 0 ? 0 : there.shape[0];
  for (const int64_t row : origins.rows)
    if (row >= rows)
      throw DataError(fmt::format("row {} of '{}' is asked for, which is {}", row, origins.source,
                                  there.text()));
}

/// "layers.*.norm.weight": parts that are numbers become stars.
std::string numberless(const std::string& name) {
  std::string text;
  for (size_t at = 0; at < name.size();) {
    const size_t end = std::min(name.find('.', at), name.size());
    const std::string part = name.substr(at, end - at);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string::npos;
    text += (at > 0 ? "." : "") + (number ? "*" : part);
    at = end + 1;
  }
  return text;
}

/// Each once, in order, with how often it came where that is more than once.
std::vector<std::string> counted(const std::vector<std::string>& texts) {
  std::vector<std::pair<std::string, int>> found;
  for (const std::string& text : texts) {
    const auto same = std::ranges::find(found, text, &std::pair<std::string, int>::first);
    if (same == found.end())
      found.emplace_back(text, 1);
    else
      ++same->second;
  }
  std::vector<std::string> lines;
  for (const auto& [text, count] : found)
    lines.push_back(count > 1 ? fmt::format("{} ({})", text, count) : text);
  return lines;
}

std::vector<std::string> left_texts(const std::vector<LeftTensor>& tensors) {
  std::vector<std::string> texts;
  for (const LeftTensor& each : tensors)
    texts.push_back(fmt::format("{}: {}", numberless(each.name), each.reason));
  return counted(texts);
}

}  // namespace

WeightSource::WeightSource(OpenedCheckpoint checkpoint, Config config,
                           std::vector<Checkpoint> files)
    : checkpoint_(std::move(checkpoint)),
      config_(std::move(config)),
      averages_(config_.train.evaluate == "ema"),
      files_(std::move(files)) {
  const std::string suffix = average_name("");
  std::map<std::string, Stored> by_name;
  for (size_t file = 0; file < files_.size(); ++file)
    for (size_t i = 0; i < files_[file].tensors().size(); ++i) {
      std::string name = files_[file].tensors()[i].name;
      // The average of a parameter goes before the parameter; frozen ones have none.
      if (averages_ && name.ends_with(suffix)) name.resize(name.size() - suffix.size());
      by_name[name] = {name, file, i};
    }
  for (auto& [name, each] : by_name) stored_.push_back(std::move(each));
}

WeightSource WeightSource::open(const std::string& run_or_checkpoint) {
  OpenedCheckpoint checkpoint = open_within(run_or_checkpoint);
  Config config =
      parse_stored_config(checkpoint.record.config, checkpoint.folder.path() + "/config.json")
          .config;
  const bool averages = config.train.evaluate == "ema";
  std::vector<Checkpoint> files;
  for (const char* group : {"weights", "averages"}) {
    if (group == std::string("averages") && !averages) continue;
    if (!checkpoint.folder.has_group(group)) continue;
    files.push_back(checkpoint.folder.group(group).take_or_throw());
    refuse_8_bits(checkpoint.folder.path(), files.back());
  }
  return WeightSource(std::move(checkpoint), std::move(config), std::move(files));
}

const WeightSource::Stored* WeightSource::stored(const std::string& parameter) const {
  const auto found = std::ranges::lower_bound(stored_, parameter, {}, &Stored::parameter);
  return found == stored_.end() || found->parameter != parameter ? nullptr : &*found;
}

const TensorType* WeightSource::find(const std::string& parameter) const {
  const Stored* const found = stored(parameter);
  return found == nullptr ? nullptr : &tensor(*found).type;
}

WeightTransfer WeightSource::plan(const std::vector<StateEntry>& entries,
                                  const std::vector<RowOrigins>& rows) const {
  std::map<std::string, const RowOrigins*> by_rows;
  for (const RowOrigins& each : rows) by_rows.emplace(each.parameter, &each);
  WeightTransfer transfer;
  std::set<std::string> used;
  for (const StateEntry& entry : entries) {
    if (entry.role != Role::parameter && entry.role != Role::frozen) continue;
    const auto origin = by_rows.find(entry.name);
    const bool rowwise = origin != by_rows.end();
    const std::string& source = rowwise ? origin->second->source : entry.name;
    const TensorType* const there = find(source);
    if (rowwise && there != nullptr) check_rows(*origin->second, *there);
    if (there == nullptr) {
      transfer.left.push_back({entry.name, "the checkpoint has none"});
    } else if (rowwise && rows_go_together(entry.type, *there)) {
      used.insert(source);
      transfer.taken.push_back({entry.name, source, origin->second->rows});
    } else if (*there == entry.type) {
      used.insert(source);
      transfer.taken.push_back({entry.name, source});
    } else {
      used.insert(source);  // the one line about it says enough
      transfer.left.push_back({entry.name, fmt::format("{} here, {} in the checkpoint",
                                                       entry.type.text(), there->text())});
    }
  }
  for (const Stored& each : stored_)
    if (!used.contains(each.parameter))
      transfer.unused.push_back({each.parameter, "the model has none"});
  return transfer;
}

void WeightSource::fill(const WeightTransfer& transfer, State& state) const {
  for (const TakenTensor& each : transfer.taken) {
    const Stored& from = *stored(each.source);
    const Checkpoint& file = files_[from.file];
    const StoredTensor& there = tensor(from);
    const int entry = state.find(each.parameter);
    FB_CHECK(entry >= 0, "no State '{}'", each.parameter);
    auto* to = static_cast<char*>(state.mutable_data(entry));
    if (each.rows.empty()) {
      file.read(there, to).take_or_throw();
      continue;
    }
    const TensorType& type = state.entries()[static_cast<size_t>(entry)].type;
    const uint64_t bytes = row_bytes(type);
    FB_CHECK(static_cast<int64_t>(each.rows.size()) == type.shape[0], "rows of '{}'", type.text());
    for (const int64_t row : each.rows) {
      if (row >= 0)
        file.read_part(there, static_cast<uint64_t>(row) * bytes, bytes, to).take_or_throw();
      to += bytes;
    }
  }
}

std::vector<std::string> listed_lines(const std::string& word,
                                      const std::vector<std::string>& names) {
  constexpr size_t kWidth = 100;
  std::vector<std::string> patterns;
  for (const std::string& name : names) patterns.push_back(numberless(name));
  std::vector<std::string> lines;
  for (const std::string& item : counted(patterns)) {
    if (lines.empty() || lines.back().size() + item.size() + 2 > kWidth)
      lines.push_back(fmt::format("{:<9}{}", word, item));
    else
      lines.back() += ", " + item;
  }
  return lines;
}

std::vector<std::string> transfer_lines(const WeightSource& source,
                                        const WeightTransfer& transfer) {
  std::vector<std::string> names, rows;
  for (const TakenTensor& each : transfer.taken) {
    if (each.rows.empty()) {
      names.push_back(each.parameter);
      continue;
    }
    const auto taken = std::ranges::count_if(each.rows, [](int64_t row) { return row >= 0; });
    std::string text = fmt::format("{}: {} of {} rows", each.parameter, taken, each.rows.size());
    if (each.source != each.parameter) text += " of " + each.source;
    rows.push_back(text);
  }
  std::vector<std::string> lines = {fmt::format(
      "weights  {} (step {}){}: {} of {} tensors taken; moments, step and data begin anew",
      source.path(), source.record().step, source.averages() ? ", moving averages" : "",
      transfer.taken.size(), transfer.taken.size() + transfer.left.size())};
  for (std::string& line : listed_lines("taken", names)) lines.push_back(std::move(line));
  for (const std::string& text : rows) lines.push_back("by rows  " + text);
  for (const std::string& text : left_texts(transfer.left)) lines.push_back("random   " + text);
  for (const std::string& text : left_texts(transfer.unused)) lines.push_back("unused   " + text);
  return lines;
}

std::string transfer_differences(const WeightTransfer& transfer) {
  constexpr size_t kMost = 6;
  std::vector<std::string> texts = left_texts(transfer.left);
  for (std::string& text : left_texts(transfer.unused)) texts.push_back(std::move(text));
  const size_t more = texts.size() > kMost ? texts.size() - kMost : 0;
  texts.resize(texts.size() - more);
  return fmt::format("{}{}", fmt::join(texts, "; "),
                     more > 0 ? fmt::format("; and {} more", more) : "");
}

}  // namespace fullbore
