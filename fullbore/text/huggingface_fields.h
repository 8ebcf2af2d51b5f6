#pragma once
#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace fullbore {

/// The settings of a config.json, each of which is obeyed, known to change nothing, or refused by name. All throw a
/// DataError that names the file, the setting and its value. A setting that is null is one that is missing.
class HuggingFaceFields {
 public:
  /// `within`: of settings within another: "rope_scaling."
  HuggingFaceFields(const nlohmann::json& object, std::string path, std::string within = "");

  [[noreturn]] void refuse(const std::string& key, const std::string& expected) const;
  bool has(const std::string& key);
  /// From `least` to `most`; with a fallback it may be missing.
  int64_t whole(const std::string& key, int64_t least, int64_t most, int64_t fallback = kNone);
  /// Above 0, or from 0 on.
  double positive(const std::string& key, double fallback);
  double not_negative(const std::string& key, double fallback);
  bool flag(const std::string& key, bool fallback);
  std::string word(const std::string& key, const std::string& fallback);
  /// A whole number that is not negative, or a list of such; none: empty.
  std::vector<int64_t> numbers(const std::string& key);
  std::vector<std::string> words(const std::string& key);
  /// An object within.
  HuggingFaceFields object(const std::string& key);
  /// A setting that must have one value, which is also what its absence means.
  void require(const std::string& key, const nlohmann::json& value);
  /// Settings that change nothing of what the model computes.
  void ignore(std::initializer_list<const char*> keys);
  /// Those that transformers writes beside any model: its version, labels of heads, how to attend.
  void ignore_bookkeeping();
  /// Refuses the first setting that was not asked for.
  void finish() const;

 private:
  static constexpr int64_t kNone = INT64_MIN;
  const nlohmann::json* find(const std::string& key);
  double number(const std::string& key, double fallback, bool zero);

  nlohmann::json object_;
  std::string path_, within_;
  std::set<std::string> asked_;
};

}  // namespace fullbore
