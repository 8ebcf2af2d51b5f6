#include "fullbore/lab/runs/run_difference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "fullbore/base/hash.h"
#include "fullbore/ckpt/checkpoint_folder.h"
#include "fullbore/ckpt/run_record.h"
#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

constexpr size_t kPiece = size_t{1} << 20;  // bytes that are read at once

Result<CheckpointFolder> last_checkpoint(const RunFolder& run) {
  return open_checkpoint_folder(run.path + "/checkpoints/last");
}

void add(std::vector<Difference>& all, const std::string& what, const std::string& a,
         const std::string& b) {
  if (a != b) all.push_back({what, a, b});
}

std::string text_of(const nlohmann::json& object, const std::string& name) {
  const auto found = object.find(name);
  if (found == object.end()) return "-";
  return found->is_string() ? found->get<std::string>()
                            : found->dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// What is left to say of a tensor once all its pieces were seen.
class Distance {
 public:
  void add(const std::byte* a, const std::byte* b, DType dtype, int64_t elements) {
    if (std::memcmp(a, b, static_cast<size_t>(elements * dtype_bytes(dtype))) == 0 &&
        !is_floating(dtype))
      return;  // squares of what is equal are wanted of real numbers alone
    for (int64_t i = 0; i < elements; ++i) {
      const double x = load_element(a, dtype, i), y = load_element(b, dtype, i);
      squares_ += std::isfinite(x) ? x * x : 0;
      if (x == y || (std::isnan(x) && std::isnan(y))) continue;
      const double distance = std::abs(x - y);
      if (!std::isfinite(distance)) is_finite_ = false;
      largest_ = std::max(largest_, std::isfinite(distance) ? distance : 0);
      distances_ += std::isfinite(distance) ? distance * distance : 0;
    }
  }
  void tell(TensorDifference& tensor) const {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    tensor.largest = is_finite_ ? largest_ : nan;
    tensor.relative = !is_finite_      ? nan
                      : squares_ > 0   ? std::sqrt(distances_ / squares_)
                      : distances_ > 0 ? std::numeric_limits<double>::infinity()
                                       : 0;
  }

 private:
  double largest_ = 0, distances_ = 0, squares_ = 0;
  bool is_finite_ = true;
};

class WeightComparison {
 public:
  WeightComparison(const Checkpoint& a, const Checkpoint& b,
                   const std::function<void(double)>& progress)
      : a_(a), b_(b), progress_(progress) {
    for (const StoredTensor& tensor : a.tensors()) all_ += static_cast<double>(tensor.bytes());
  }

  Result<std::vector<TensorDifference>> run() {
    std::set<std::string> names;
    for (const Checkpoint* each : {&a_, &b_})
      for (const StoredTensor& tensor : each->tensors()) names.insert(tensor.name);
    std::vector<TensorDifference> result;
    for (const std::string& name : names) {
      Result<TensorDifference> one = compare(name, a_.find(name), b_.find(name));
      if (!one.ok()) return Failure{one.error()};
      result.push_back(std::move(one).value());
    }
    return result;
  }

 private:
  Result<TensorDifference> compare(const std::string& name, const StoredTensor* a,
                                   const StoredTensor* b) {
    TensorDifference result;
    result.name = name;
    result.type = (a != nullptr ? a : b)->type.text();
    if (a == nullptr || b == nullptr) {
      result.problem = a != nullptr ? "only in the first" : "only in the second";
      return result;
    }
    if (!(a->type == b->type)) {
      result.problem = fmt::format("{} and {}", a->type.text(), b->type.text());
      return result;
    }
    result.equal = true;
    Distance distance;
    for (uint64_t at = 0; at < a->bytes(); at += kPiece) {
      const size_t bytes = std::min<uint64_t>(kPiece, a->bytes() - at);
      if (Status read = a_.read_part(*a, at, bytes, here_.data()); !read.ok())
        return Failure{read.error()};
      if (Status read = b_.read_part(*b, at, bytes, there_.data()); !read.ok())
        return Failure{read.error()};
      result.equal = result.equal && std::memcmp(here_.data(), there_.data(), bytes) == 0;
      distance.add(here_.data(), there_.data(), a->type.dtype,
                   static_cast<int64_t>(bytes) / dtype_bytes(a->type.dtype));
      done_ += static_cast<double>(bytes);
      if (progress_) progress_(done_ / all_);
    }
    distance.tell(result);
    return result;
  }

  const Checkpoint& a_;
  const Checkpoint& b_;
  const std::function<void(double)>& progress_;
  std::vector<std::byte> here_ = std::vector<std::byte>(kPiece);
  std::vector<std::byte> there_ = std::vector<std::byte>(kPiece);
  double all_ = 0, done_ = 0;
};

}  // namespace

std::vector<Difference> setting_differences(const RunFolder& a, const RunFolder& b) {
  std::vector<Difference> all;
  if (!a.config || !b.config) return all;
  for (const ConfigField& field : config_fields()) {
    if (field.key == "run.dir") continue;
    const auto text = [&](const Config& config) {
      return field.is_for(config) ? value_yaml(field, config) : std::string("-");
    };
    add(all, field.key, text(*a.config), text(*b.config));
  }
  std::set<std::string> foreign;
  for (const RunFolder* run : {&a, &b})
    for (const auto& [key, value] : run->foreign) foreign.insert(key);
  for (const std::string& key : foreign) {
    const auto text = [&](const RunFolder& run) {
      const auto found = run.foreign.find(key);
      return found == run.foreign.end() ? std::string("-") : found->second;
    };
    add(all, key, text(a), text(b));
  }
  return all;
}

std::vector<Difference> maker_differences(const RunFolder& a, const RunFolder& b) {
  const auto maker = [](const RunFolder& run) {
    const auto found = run.summary.find("made_by");
    return found != run.summary.end() && found->is_object() ? *found : nlohmann::json::object();
  };
  const nlohmann::json of_a = maker(a), of_b = maker(b);
  std::vector<Difference> all;
  for (const char* name : {"build", "device", "hardware", "processor", "workers"})
    add(all, name, text_of(of_a, name), text_of(of_b, name));
  return all;
}

Result<std::vector<Difference>> identity_differences(const RunFolder& a, const RunFolder& b) {
  RunRecord records[2];
  const RunFolder* const runs[] = {&a, &b};
  for (int i = 0; i < 2; ++i) {
    const Result<CheckpointFolder> folder = last_checkpoint(*runs[i]);
    if (!folder.ok()) return Failure{folder.error()};
    Result<RunRecord> record = read_run_record(folder.value());
    if (!record.ok()) return Failure{record.error()};
    records[i] = std::move(record).value();
  }
  std::vector<Difference> all;
  std::set<std::string> names;
  for (const RunRecord& record : records)
    for (const auto& [name, text] : record.identity) names.insert(name);
  for (const std::string& name : names) {
    const auto text = [&](const RunRecord& record) {
      const auto found = record.identity.find(name);
      return found == record.identity.end() ? std::string("-") : found->second;
    };
    add(all, name, text(records[0]), text(records[1]));
  }
  add(all, "random key", std::to_string(records[0].seed), std::to_string(records[1].seed));
  const auto tokenizer = [](const RunRecord& record) {
    return record.tokenizer.empty() ? std::string("-") : hash_hex(hash_text(record.tokenizer));
  };
  add(all, "tokenizer", tokenizer(records[0]), tokenizer(records[1]));
  return all;
}

Result<std::vector<TensorDifference>> weight_differences(
    const RunFolder& a, const RunFolder& b, const std::function<void(double share)>& progress) {
  const Result<CheckpointFolder> first = last_checkpoint(a), second = last_checkpoint(b);
  for (const auto* folder : {&first, &second})
    if (!folder->ok()) return Failure{folder->error()};
  const Result<Checkpoint> left = first.value().group("weights"),
                           right = second.value().group("weights");
  for (const auto* group : {&left, &right})
    if (!group->ok()) return Failure{group->error()};
  return WeightComparison(left.value(), right.value(), progress).run();
}

}  // namespace fullbore
