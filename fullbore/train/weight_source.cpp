#include "fullbore/train/weight_source.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/optim/optimizer.h"
#include "fullbore/train/stored_config.h"
#include "fullbore/train/stored_weights.h"

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
  for (const StoredTensor& tensor : file.tensors())
    if (tensor.type.dtype == DType::i8)
      throw DataError(fmt::format(
          "{} has '{}', a weight in 8 bits, which is not trained: start from the run that it was "
          "exported from",
          path, tensor.name));
}

/// A tensor as a table: its first axis, and all others as columns.
int64_t row_count(const TensorType& type) { return type.shape.rank() == 0 ? 0 : type.shape[0]; }
uint64_t row_bytes(const TensorType& type) {
  return row_count(type) == 0 ? 0 : static_cast<uint64_t>(type.bytes() / row_count(type));
}

/// May rows and columns of the one become those of the other?
bool goes_by_origins(const TableOrigins& origins, const TensorType& here, const TensorType& there) {
  const Shape &a = here.shape, &b = there.shape;
  const bool same_kind = is_convertible_weight({there.dtype, a}, here);
  if (!same_kind || a.rank() == 0 || a.rank() != b.rank()) return false;
  if (origins.rows.empty() && a[0] != b[0]) return false;
  if (!origins.columns.empty()) return a.rank() == 2;
  for (int axis = 1; axis < a.rank(); ++axis)
    if (a[axis] != b[axis]) return false;
  return true;
}

/// A tokenizer of more tokens than the table has rows is no reason to read beyond it.
void check_origins(const TableOrigins& origins, const TensorType& there) {
  const auto check = [&](const char* what, const std::vector<int64_t>& wanted, int axis) {
    const int64_t count = there.shape.rank() > axis ? there.shape[axis] : 0;
    for (const int64_t each : wanted)
      if (each >= count)
        throw DataError(fmt::format("{} {} of '{}' is asked for, which is {}", what, each,
                                    origins.source, there.text()));
  };
  check("row", origins.rows, 0);
  check("column", origins.columns, 1);
}

/// ": 24 of 25 rows and 9 of 9 columns".
std::string parts_text(const TakenTensor& taken) {
  std::vector<std::string> texts;
  const auto add = [&](const char* what, const std::vector<int64_t>& origins) {
    if (origins.empty()) return;
    const auto known = std::ranges::count_if(origins, [](int64_t each) { return each >= 0; });
    texts.push_back(fmt::format("{} of {} {}", known, origins.size(), what));
  };
  add("rows", taken.rows);
  add("columns", taken.columns);
  return fmt::format("{}", fmt::join(texts, " and "));
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

bool is_weight(const StateEntry& entry) {
  return entry.role == Role::parameter || entry.role == Role::frozen ||
         (entry.role == Role::control && is_floating(entry.type.dtype));
}

WeightSource::WeightSource(OpenedCheckpoint checkpoint, Config config,
                           std::vector<Checkpoint> files, size_t required_files)
    : checkpoint_(std::move(checkpoint)),
      config_(std::move(config)),
      ema_(config_.train.evaluate == "ema"),
      files_(std::move(files)) {
  const std::string suffix = ema_name("");
  std::map<std::string, Stored> by_name;
  for (size_t file = 0; file < files_.size(); ++file)
    for (size_t i = 0; i < files_[file].tensors().size(); ++i) {
      std::string name = files_[file].tensors()[i].name;
      // The average of a parameter goes before the parameter; frozen ones have none.
      if (ema_ && name.ends_with(suffix)) name.resize(name.size() - suffix.size());
      by_name[name] = {name, file, i, file >= required_files};
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
  const size_t required = files.size();
  // For running statistics, which lie among moments and counters.
  if (checkpoint.folder.has_group("optimizer"))
    files.push_back(checkpoint.folder.group("optimizer").take_or_throw());
  return WeightSource(std::move(checkpoint), std::move(config), std::move(files), required);
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
                                  const std::vector<TableOrigins>& tables) const {
  std::map<std::string, const TableOrigins*> by_name;
  for (const TableOrigins& each : tables) by_name.emplace(each.parameter, &each);
  WeightTransfer transfer;
  std::set<std::string> used;
  for (const StateEntry& entry : entries) {
    if (!is_weight(entry)) continue;
    const auto origin = by_name.find(entry.name);
    const TableOrigins* const table = origin == by_name.end() ? nullptr : origin->second;
    const std::string& source = table != nullptr ? table->source : entry.name;
    const TensorType* const there = find(source);
    if (table != nullptr && there != nullptr) check_origins(*table, *there);
    if (there == nullptr) {
      transfer.left.push_back({entry.name, "the checkpoint has none"});
    } else if (table != nullptr && goes_by_origins(*table, entry.type, *there)) {
      used.insert(source);
      transfer.taken.push_back({entry.name, source, table->rows, table->columns});
    } else if (is_convertible_weight(*there, entry.type)) {
      used.insert(source);
      transfer.taken.push_back({entry.name, source});
    } else {
      used.insert(source);  // the one line about it says enough
      transfer.left.push_back({entry.name, fmt::format("{} here, {} in the checkpoint",
                                                       entry.type.text(), there->text())});
    }
  }
  for (const Stored& each : stored_)
    if (!each.is_optional && !used.contains(each.parameter))
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
    if (state.is_lent(entry)) continue;
    const TensorType& type = state.entries()[static_cast<size_t>(entry)].type;
    if (type.dtype != there.type.dtype) {
      const TensorType here{there.type.dtype, type.shape};
      std::vector<std::byte> values(static_cast<size_t>(type.bytes()));
      std::vector<std::byte> stored_values(static_cast<size_t>(here.bytes()));
      if (each.rows.empty() && each.columns.empty()) {
        file.read(there, stored_values.data()).take_or_throw();
      } else {  // rows and columns that are not taken keep the values that they have
        state.read(entry, values);
        convert_elements(values, type.dtype, stored_values, here.dtype);
        fill_table(each, here, reinterpret_cast<char*>(stored_values.data()));
      }
      convert_elements(stored_values, here.dtype, values, type.dtype);
      state.write(entry, values);
    } else if (each.rows.empty() && each.columns.empty()) {
      Status status = success();
      state.produce(entry, Pieces::in_order, [&](int64_t offset, std::span<std::byte> piece) {
        if (status.ok())
          status = file.read_part(there, static_cast<uint64_t>(offset), piece.size(), piece.data());
      });
      std::move(status).take_or_throw();
    } else {
      std::vector<std::byte> table(static_cast<size_t>(type.bytes()));
      state.read(entry, table);
      fill_table(each, type, reinterpret_cast<char*>(table.data()));
      state.write(entry, table);
    }
  }
}

void WeightSource::fill_table(const TakenTensor& taken, const TensorType& here, char* to) const {
  const Stored& from = *stored(taken.source);
  const TensorType& there = tensor(from).type;
  const uint64_t bytes = row_bytes(here), bytes_there = row_bytes(there);
  const auto rows = static_cast<size_t>(row_count(here));
  FB_CHECK(taken.rows.empty() || taken.rows.size() == rows, "rows of '{}'", here.text());
  FB_CHECK(taken.columns.empty() || static_cast<int64_t>(taken.columns.size()) == here.shape[1],
           "columns of '{}'", here.text());
  const size_t element = taken.columns.empty() ? 0 : bytes / taken.columns.size();
  std::vector<char> row_there(bytes_there);
  for (size_t row = 0; row < rows; ++row, to += bytes) {
    const int64_t origin = taken.rows.empty() ? static_cast<int64_t>(row) : taken.rows[row];
    if (origin < 0) continue;
    files_[from.file]
        .read_part(tensor(from), static_cast<uint64_t>(origin) * bytes_there, bytes_there,
                   row_there.data())
        .take_or_throw();
    if (taken.columns.empty()) std::memcpy(to, row_there.data(), bytes);
    for (size_t column = 0; column < taken.columns.size(); ++column)
      if (const int64_t at = taken.columns[column]; at >= 0)
        std::memcpy(to + column * element, row_there.data() + static_cast<size_t>(at) * element,
                    element);
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
  std::vector<std::string> names, parts;
  for (const TakenTensor& each : transfer.taken) {
    if (each.rows.empty() && each.columns.empty()) {
      names.push_back(each.parameter);
      continue;
    }
    std::string text = fmt::format("{}: {}", each.parameter, parts_text(each));
    if (each.source != each.parameter) text += " of " + each.source;
    parts.push_back(text);
  }
  std::vector<std::string> lines = {fmt::format(
      "weights  {} (step {}){}: {} of {} tensors taken; moments, step and data begin anew",
      source.path(), source.record().step, source.ema() ? ", moving averages" : "",
      transfer.taken.size(), transfer.taken.size() + transfer.left.size())};
  for (std::string& line : listed_lines("taken", names)) lines.push_back(std::move(line));
  for (const std::string& text : parts) lines.push_back("in part  " + text);
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
