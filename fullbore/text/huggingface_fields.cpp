#include "fullbore/text/huggingface_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/json.h"
#include "fullbore/base/text.h"

namespace fullbore {

using nlohmann::json;

HuggingFaceFields::HuggingFaceFields(const json& object, std::string path, std::string within)
    : object_(object), path_(std::move(path)), within_(std::move(within)) {}

void HuggingFaceFields::refuse(const std::string& key, const std::string& expected) const {
  const auto found = object_.find(key);
  if (found == object_.end())
    throw DataError(fmt::format("{}: '{}{}' is missing", path_, within_, key));
  throw DataError(
      fmt::format("{}: '{}{}' is {}; {}", path_, within_, key, json_excerpt(*found), expected));
}

const json* HuggingFaceFields::find(const std::string& key) {
  asked_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool HuggingFaceFields::has(const std::string& key) { return find(key) != nullptr; }

int64_t HuggingFaceFields::whole(const std::string& key, int64_t least, int64_t most,
                                 int64_t fallback) {
  const json* const value = find(key);
  if (value == nullptr && fallback != kNone) return fallback;
  if (value == nullptr || !value->is_number_integer() || *value < least || *value > most)
    refuse(key, fmt::format("a whole number from {} to {} was expected", least, most));
  return *value;
}

double HuggingFaceFields::number(const std::string& key, double fallback, bool zero) {
  const json* const value = find(key);
  if (value == nullptr) return fallback;
  const double number = value->is_number() ? value->get<double>() : -1;
  // No model has larger ones, and nothing that is made of these overflows.
  constexpr double kMost = 1e12;
  if (!(number > 0 || (zero && number == 0)) || number > kMost)
    refuse(key, fmt::format("a number {} 0 was expected", zero ? "from" : "above"));
  return number;
}

double HuggingFaceFields::positive(const std::string& key, double fallback) {
  return number(key, fallback, false);
}
double HuggingFaceFields::not_negative(const std::string& key, double fallback) {
  return number(key, fallback, true);
}

bool HuggingFaceFields::flag(const std::string& key, bool fallback) {
  const json* const value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) refuse(key, "true or false was expected");
  return *value;
}

std::string HuggingFaceFields::word(const std::string& key, const std::string& fallback) {
  const json* const value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) refuse(key, "a word was expected");
  return *value;
}

std::vector<int64_t> HuggingFaceFields::numbers(const std::string& key) {
  const json* const value = find(key);
  if (value == nullptr) return {};
  std::vector<int64_t> numbers;
  for (const json& each : value->is_array() ? *value : json::array({*value})) {
    if (!each.is_number_integer() || each < 0 || each > int64_t{INT32_MAX})
      refuse(key, "a token's number, or a list of such, was expected");
    numbers.push_back(each);
  }
  return numbers;
}

std::vector<std::string> HuggingFaceFields::words(const std::string& key) {
  const json* const value = find(key);
  if (value == nullptr) return {};
  std::vector<std::string> words;
  if (!value->is_array()) refuse(key, "a list of words was expected");
  for (const json& each : *value) {
    if (!each.is_string()) refuse(key, "a list of words was expected");
    words.push_back(each);
  }
  return words;
}

HuggingFaceFields HuggingFaceFields::object(const std::string& key) {
  const json* const value = find(key);
  if (value == nullptr || !value->is_object()) refuse(key, "an object was expected");
  return {*value, path_, within_ + key + "."};
}

void HuggingFaceFields::require(const std::string& key, const json& value) {
  const json* const found = find(key);
  if (found != nullptr && *found != value)
    refuse(key, fmt::format("only {} is known here", value.dump()));
}

void HuggingFaceFields::ignore(std::initializer_list<const char*> keys) {
  asked_.insert(keys.begin(), keys.end());
}

void HuggingFaceFields::ignore_bookkeeping() {
  ignore({"_name_or_path",
          "architectures",
          "model_type",
          "transformers_version",
          "transformers.js_config",
          "torch_dtype",
          "dtype",
          "use_cache",
          "return_dict",
          "output_attentions",
          "output_hidden_states",
          "initializer_range",
          "bos_token_id",
          "pad_token_id",
          "id2label",
          "label2id",
          "num_labels",
          "problem_type",
          "task_specific_params",
          "finetuning_task",
          "tokenizer_class",
          "model_max_length",
          "unsloth_fixed",
          "unsloth_version",
          "_attn_implementation",
          "_attn_implementation_autoset",
          "attn_implementation"});
}

void HuggingFaceFields::finish() const {
  for (const auto& [key, value] : object_.items())
    if (!asked_.contains(key) && !value.is_null())
      throw DataError(fmt::format(
          "{}: '{}{}' is a setting that is not known here.{}", path_, within_, excerpt(key),
          did_you_mean(key, std::vector<std::string>(asked_.begin(), asked_.end()))));
}

}  // namespace fullbore
