#include "fullbore/ckpt/run_record.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "fullbore/ckpt/flat_json.h"

namespace fullbore {
namespace {

constexpr const char* kPosition = "position.json";
constexpr const char* kConfig = "config.json";
constexpr const char* kTokenizer = "tokenizer.json";
constexpr const char* kMetrics = "metrics.json";
constexpr const char* kFrozen = "frozen.json";

/// "{\n  "a": 1,\n ...}\n" of values that are JSON already.
std::string object(const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string text = "{";
  std::string_view comma;
  for (const auto& [name, value] : values) {
    text += fmt::format("{}\n  {}: {}", comma, quoted_json(name), value);
    comma = ",";
  }
  return text + "\n}\n";
}

std::string number(double value) {
  // The shortest form that reads back to the same double.
  return std::isfinite(value) ? fmt::format("{}", value) : fmt::format("\"{}\"", value);
}

bool parse_metric(const JsonValue& json, double& value) {
  value = json.real;
  if (json.kind != JsonValue::Kind::kText) return json.kind != JsonValue::Kind::kOther;
  const char* const end = json.text.data() + json.text.size();
  const auto [at, error] = std::from_chars(json.text.data(), end, value);
  return error == std::errc() && at == end && !std::isfinite(value);
}

/// One JSON file of a checkpoint, with sentences about what is wrong in it.
class Document {
 public:
  static Result<Document> read(const CheckpointFolder& checkpoint, const std::string& name) {
    const Result<std::string> text = checkpoint.text(name);
    if (!text.ok()) return Failure{text.error()};
    const std::string path = checkpoint.path() + "/" + name;
    Result<FlatJson> json = parse_flat_json(text.value());
    if (!json.ok()) return Failure{fmt::format("{}: {}", path, json.error())};
    return Document(path, std::move(json).value());
  }

  const FlatJson& json() const { return json_; }
  Failure malformed(const std::vector<std::string>& key, const char* expected) const {
    const auto found = json_.find(key);
    return {fmt::format(
        "{}: '{}' is {}, {} was expected", path_, fmt::join(key, "."),
        found == json_.end() ? "missing" : "'" + found->second.text.substr(0, 80) + "'", expected)};
  }
  bool number(const char* key, uint64_t& value) const {
    const auto found = json_.find({key});
    if (found == json_.end() || found->second.kind != JsonValue::Kind::kUnsigned) return false;
    value = found->second.number;
    return true;
  }

 private:
  Document(std::string path, FlatJson json) : path_(std::move(path)), json_(std::move(json)) {}
  std::string path_;
  FlatJson json_;
};

Status read_position(const CheckpointFolder& checkpoint, RunRecord& record) {
  const Result<Document> read = Document::read(checkpoint, kPosition);
  if (!read.ok()) return Failure{read.error()};
  const Document& document = read.value();
  uint64_t step = 0;
  if (!document.number("step", step) || step > uint64_t{INT64_MAX})
    return document.malformed({"step"}, "a number of steps");
  record.step = static_cast<int64_t>(step);
  if (!document.number("data_position", record.data_position))
    return document.malformed({"data_position"}, "a position");
  if (!document.number("seed", record.seed)) return document.malformed({"seed"}, "a seed");
  for (const auto& [path, value] : document.json()) {
    if (path.size() != 2 || path[0] != "identity") continue;
    if (value.kind != JsonValue::Kind::kText) return document.malformed(path, "a text");
    record.identity[path[1]] = value.text;
  }
  return success();
}

std::string frozen_text(const std::map<std::string, FrozenTensor>& frozen) {
  std::vector<std::pair<std::string_view, std::string>> tensors;
  for (const auto& [name, tensor] : frozen)
    tensors.emplace_back(name, fmt::format("{{\"hash\": {}, \"file\": {}}}",
                                           quoted_json(tensor.hash), quoted_json(tensor.file)));
  return object(tensors);
}

Status read_frozen(const CheckpointFolder& checkpoint, RunRecord& record) {
  if (!checkpoint.manifest().contains(kFrozen)) return success();
  const Result<Document> read = Document::read(checkpoint, kFrozen);
  if (!read.ok()) return Failure{read.error()};
  for (const auto& [path, value] : read.value().json()) {
    const bool known = path.size() == 2 && (path[1] == "hash" || path[1] == "file");
    if (!known || value.kind != JsonValue::Kind::kText)
      return read.value().malformed(path, "hash or file of a tensor, a text,");
    FrozenTensor& tensor = record.frozen[path[0]];
    (path[1] == "hash" ? tensor.hash : tensor.file) = value.text;
  }
  for (const auto& [name, tensor] : record.frozen)
    if (tensor.hash.empty()) return read.value().malformed({name, "hash"}, "a text");
  return success();
}

}  // namespace

std::map<std::string, std::string> to_texts(const RunRecord& record) {
  std::vector<std::pair<std::string_view, std::string>> identity;
  for (const auto& [name, text] : record.identity) identity.emplace_back(name, quoted_json(text));
  std::string identity_text = object(identity);
  identity_text.pop_back();
  for (size_t at = 0; (at = identity_text.find('\n', at)) != std::string::npos; at += 3)
    identity_text.insert(at + 1, "  ");
  std::vector<std::pair<std::string_view, std::string>> metrics;
  for (const auto& [name, value] : record.metrics) metrics.emplace_back(name, number(value));
  std::map<std::string, std::string> texts = {
      {kPosition, object({{"step", std::to_string(record.step)},
                          {"data_position", std::to_string(record.data_position)},
                          {"seed", std::to_string(record.seed)},
                          {"identity", identity_text}})},
      {kMetrics, object(metrics)},
      {kConfig, record.config},
      {kTokenizer, record.tokenizer}};
  if (!record.frozen.empty()) texts[kFrozen] = frozen_text(record.frozen);
  return texts;
}

Result<RunRecord> read_run_record(const CheckpointFolder& checkpoint) {
  RunRecord record;
  if (const Status read = read_position(checkpoint, record); !read.ok())
    return Failure{read.error()};
  if (Status read = read_frozen(checkpoint, record); !read.ok()) return Failure{read.error()};
  const Result<Document> metrics = Document::read(checkpoint, kMetrics);
  if (!metrics.ok()) return Failure{metrics.error()};
  for (const auto& [path, value] : metrics.value().json())
    if (path.size() != 1 || !parse_metric(value, record.metrics[path[0]]))
      return metrics.value().malformed(path, "a number");
  for (const auto& [name, place] :
       {std::pair{kConfig, &record.config}, std::pair{kTokenizer, &record.tokenizer}}) {
    Result<std::string> text = checkpoint.text(name);
    if (!text.ok()) return Failure{text.error()};
    *place = std::move(text).value();
  }
  return record;
}

}  // namespace fullbore
