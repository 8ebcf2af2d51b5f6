#include "fullbore/train/config.h"

#include <fmt/format.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "fullbore/base/error.h"
#include "fullbore/base/input_file.h"
#include "fullbore/base/printable.h"
#include "fullbore/base/text.h"
#include "fullbore/base/threads.h"
#include "fullbore/monitor/process.h"
#include "fullbore/optim/parameter_groups.h"
#include "fullbore/train/config_keys.h"
#include "fullbore/train/config_override.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/config_yaml.h"
#include "fullbore/train/default_job.h"
#include "fullbore/train/foreign_model.h"
#include "fullbore/train/memory_fit.h"
#include "fullbore/train/retired_names.h"
#include "fullbore/train/run_config.h"
#include "fullbore/train/stored_config.h"

namespace fullbore {
namespace {

/// A config under construction, which remembers where each key was set.
class ConfigBuilder {
 public:
  /// With `ignored`, what is read was found (stored_config.h): what it may not set is described there.
  explicit ConfigBuilder(std::vector<std::string>* ignored = nullptr) : ignored_(ignored) {}
  /// The same, and a run of another program's model is read as far as it is known here; the rest goes to `foreign`.
  ConfigBuilder(std::vector<std::string>* ignored, std::map<std::string, std::string>* foreign)
      : ignored_(ignored), foreign_(foreign) {}

  void read(std::string_view yaml, const std::string& source) {
    const ConfigDocument document = read_config_yaml(yaml, source);
    if (ignored_ != nullptr) {
      const ConfigEntry* const foreign = foreign_model(document);
      if (foreign != nullptr && foreign_ == nullptr) refuse_foreign_model(*foreign, yaml, source);
      if (foreign != nullptr) return read_foreign(document, *foreign, source);
    }
    std::map<std::string, int> section_lines;
    for (const ConfigSection& section : document.sections) {
      const std::string where = fmt::format("{}:{}", source, section.line);
      check_section(section.name, where);
      const auto [first, is_new] = section_lines.emplace(section.name, section.line);
      if (!is_new) refuse_twice(where, "section '" + section.name + "'", first->second);
    }
    std::map<std::string, int> lines;
    for (const ConfigEntry& entry : document.entries) {
      std::string key = entry.section + "." + entry.name;
      ConfigText value = entry.value;
      const std::string where = fmt::format("{}:{}", source, entry.line);
      if (ignored_ != nullptr) {
        translate(key, value);
        if (is_ignored(key, value, where)) continue;
      }
      set(key, value, where);
      const auto [first, is_new] = lines.emplace(key, entry.line);
      if (!is_new) refuse_twice(where, "'" + key + "'", first->second);
    }
  }

  void override_with(const std::string& text, const std::string& where = "command line") {
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError(fmt::format(
          "config: {}: '{}' is no override; section.key=value was expected", where, text));
    const std::string key = text.substr(0, equals);
    const std::string written = text.substr(equals + 1);
    const ConfigField* field = find_config_field(key);
    ConfigText value{written, false, false, {}};
    try {
      if (field != nullptr) value = read_override(*field, written);
    } catch (const UsageError& error) {
      throw UsageError(fmt::format("config: {}: {}: {}", where, key, error.what()));
    }
    set(key, value, where);
  }

  Config finish() {
    if (!is_foreign_) {
      check_model();
      check_keys_of_model();
      for (const ConfigKeys& keys : registered_config_keys())
        if (keys.settle) keys.settle(config_);
    }
    check_name();
    check_together(config_.optim.schedule == "constant" ||
                       config_.optim.minimum_learning_rate <= config_.optim.learning_rate,
                   "optim.minimum_learning_rate", "is above", "optim.learning_rate");
    check_together(config_.train.evaluate != "ema" || config_.optim.ema_decay > 0, "train.evaluate",
                   "has no moving average to look at, for", "optim.ema_decay");
    check_together(!config_.optim.noise_scale || config_.train.batch_size % 2 == 0,
                   "optim.noise_scale", "needs an even batch, and", "train.batch_size");
    check_together(
        config_.engine.accumulate == 0 || config_.train.batch_size % config_.engine.accumulate == 0,
        "train.batch_size", "is not a multiple of", "engine.accumulate");
    check_together(config_.engine.accumulate > 0 || config_.train.batch_size > 0,
                   "train.batch_size", "cannot be solved together with", "engine.accumulate");
    check_together(!config_.optim.noise_scale || config_.engine.accumulate == 1,
                   "optim.noise_scale", "does not go with", "engine.accumulate");
    const int64_t parallel = std::max<int64_t>(1, config_.engine.parallel_microbatches);
    check_together(
        config_.train.batch_size % (parallel * std::max<int64_t>(1, config_.engine.accumulate)) ==
            0,
        "train.batch_size", "is not a multiple of engine.accumulate times",
        "engine.parallel_microbatches");
    check_together(!config_.optim.noise_scale || parallel == 1, "optim.noise_scale",
                   "does not go with", "engine.parallel_microbatches");
    check_memory_budget();
    check_groups();
    if (!is_foreign_)
      for (const ConfigKeys& keys : registered_config_keys())
        if (keys.check) keys.check(ConfigCheck(config_, origins_));
    return std::move(config_);
  }

 private:
  /// What all models have; a setting that is known of others alone, or that cannot be read here, is kept as it stands.
  void read_foreign(const ConfigDocument& document, const ConfigEntry& model,
                    const std::string& source) {
    is_foreign_ = true;
    config_.model.name = model.value.text;
    for (const ConfigEntry& entry : document.entries) {
      std::string key = entry.section + "." + entry.name;
      if (key == "model.name") continue;
      ConfigText value = entry.value;
      const std::string where = fmt::format("{}:{}", source, entry.line);
      translate(key, value);
      const ConfigField* const field = find_config_field(key);
      Config changed = config_;
      if (field != nullptr && field->is_for(config_) && assign(*field, changed, value)) {
        if (!is_ignored(key, value, where)) set(key, value, where);
      } else {
        foreign_->emplace(
            key, value.is_list ? fmt::format("[{}]", fmt::join(value.items, ", ")) : value.text);
      }
    }
  }

  static void check_section(const std::string& name, const std::string& where) {
    const std::vector<std::string> sections = config_sections();
    if (std::find(sections.begin(), sections.end(), name) != sections.end()) return;
    throw UsageError(fmt::format("config: {}: unknown section '{}'.{} The sections are {}.", where,
                                 name, did_you_mean(name, sections), fmt::join(sections, ", ")));
  }
  [[noreturn]] static void refuse_twice(const std::string& where, const std::string& what,
                                        int first_line) {
    throw UsageError(fmt::format("config: {}: {} occurs twice; it stands in line {} already", where,
                                 what, first_line));
  }

  // Names that people know from elsewhere deserve a reason.
  static void refuse_precision(const std::string& key, const std::string& name,
                               const std::string& where) {
    if (key != "engine.precision" || name != "fp8") return;
    throw UsageError(fmt::format(
        "config: {}: engine.precision is {}; 8-bit floats are of some matmuls alone, on "
        "cards: engine.fp8=true beside it. fp32, tf32, bf16 or fp16 was expected.",
        where, name));
  }

  /// To the names of today, as a stored configuration of an earlier version needs.
  static void translate(std::string& key, ConfigText& value) {
    if (const std::string_view now = renamed_key(key); !now.empty()) key = now;
    const auto translate_word = [&](std::string& word) {
      if (const std::string_view now = renamed_value(key, word); !now.empty()) word = now;
    };
    translate_word(value.text);
    std::ranges::for_each(value.items, translate_word);
  }

  static void refuse_retired(const std::string& key, const ConfigText& value,
                             const std::string& where) {
    if (const std::string_view now = renamed_key(key); !now.empty())
      throw UsageError(fmt::format("config: {}: '{}' is called {} now", where, key, now));
    const auto refuse_word = [&](const std::string& word) {
      if (const std::string_view now = renamed_value(key, word); !now.empty())
        throw UsageError(
            fmt::format("config: {}: {}: '{}' is called {} now", where, key, word, now));
    };
    refuse_word(value.text);
    std::ranges::for_each(value.items, refuse_word);
  }

  void set(const std::string& key, const ConfigText& value, const std::string& where) {
    refuse_retired(key, value, where);
    const ConfigField* field = find_config_field(key);
    if (field == nullptr)
      throw UsageError(fmt::format("config: {}: unknown key '{}'.{}", where, key,
                                   did_you_mean(key, config_keys())));
    if (!assign(*field, config_, value)) {
      refuse_precision(key, value.text, where);
      constexpr size_t kShown = 60;
      const std::string shown = value.text.substr(0, kShown);
      const std::string given = value.is_list  ? "a list"
                                : value.quoted ? fmt::format("the text \"{}\"", shown)
                                               : fmt::format("'{}'", shown);
      throw UsageError(fmt::format("config: {}: {} is {}; {} was expected.{}", where, key, given,
                                   field->expectation(), did_you_mean(value.text, field->choices)));
    }
    origins_[key] = where;
  }

  /// Of a stored configuration; the reader is told where that makes a difference.
  bool is_ignored(const std::string& key, const ConfigText& value, const std::string& where) {
    const ConfigField* const field = find_config_field(key);
    if (field == nullptr) return false;  // set() says so
    Config changed;
    const bool valid = assign(*field, changed, value);
    if (stored_key(*field) != StoredKey::ignored && !(valid && asks_too_much(key, changed)))
      return false;
    if (key != "run.dir" && valid && !(changed == Config()))
      ignored_->push_back(
          fmt::format("{}: {}={} is ignored: a stored configuration may not set it. Repeat it on "
                      "the command line if it is yours",
                      where, key, value_yaml(*field, changed)));
    return true;
  }

  /// More than the machine has, which only the user may ask for.
  static bool asks_too_much(const std::string& key, const Config& config) {
    if (key == "engine.threads")
      return config.engine.threads > std::max<int64_t>(64, available_processors());
    if (key != "engine.memory_budget") return false;
    try {
      return budget_is_of_the_job(config) && memory_budget_bytes(config) > memory_limit_bytes();
    } catch (const UsageError&) {
      return false;  // no budget at all: finish() says so
    }
  }

  void check_model() const {
    const std::vector<std::string>& known = find_config_field("model.name")->choices;
    if (config_.model.name.empty() && !known.empty())
      throw UsageError(
          fmt::format("config: model.name is not set; it is one of {}", fmt::join(known, ", ")));
  }

  void check_name() const {
    const std::string& name = config_.run.name;
    constexpr size_t kMost = 100;
    const char* const wrong = name.find('/') != name.npos    ? "holds a '/'"
                              : name.starts_with('.')        ? "begins with a dot"
                              : name.size() > kMost          ? "is longer than 100 bytes"
                              : printable_name(name) != name ? "holds control characters"
                                                             : nullptr;
    if (wrong != nullptr)
      throw UsageError(
          fmt::format("config: {} {}; a name of one folder in runs/ was expected, such as small-2",
                      with_origin("run.name"), wrong));
  }

  std::string with_origin(const std::string& key) const {
    return ConfigCheck(config_, origins_).with_origin(key);
  }
  void check_together(bool holds, const std::string& a, const char* relation,
                      const std::string& b) const {
    ConfigCheck(config_, origins_).together(holds, a, relation, b);
  }

  /// What the model has no use for is refused, not ignored.
  void check_keys_of_model() const {
    for (const auto& [key, where] : origins_) {
      const ConfigField& field = *find_config_field(key);
      if (field.is_for(config_)) continue;
      std::vector<std::string> known;
      for (const ConfigField& other : config_fields())
        if (other.is_for(config_)) known.push_back(other.key);
      throw UsageError(fmt::format("config: {}: '{}' is a key of model.name={}, not of {}.{}",
                                   where, key, fmt::join(field.models, "|"), config_.model.name,
                                   did_you_mean(key, known)));
    }
  }

  void check_memory_budget() const {
    try {
      budget_is_of_the_job(config_);  // reads it, and asks no device
    } catch (const UsageError& error) {
      throw UsageError(
          fmt::format("config: {}: {}", origins_.at("engine.memory_budget"), error.what()));
    }
  }

  void check_groups() const {
    for (const std::string& group : config_.optim.groups) {
      try {
        parse_parameter_group(group);
      } catch (const UsageError& error) {
        throw UsageError(fmt::format("config: {}: optim.groups: '{}': {}",
                                     origins_.at("optim.groups"), group.substr(0, 60),
                                     error.what()));
      }
    }
  }

  Config config_;
  std::map<std::string, std::string> origins_;
  std::vector<std::string>* ignored_;
  std::map<std::string, std::string>* foreign_ = nullptr;
  bool is_foreign_ = false;
};

std::string read_config_file(const std::string& path) {
  // A config that cannot be read is a slip of the command line, hence of the user.
  constexpr size_t kMost = (size_t{1} << 20) + 1;
  const Result<InputFile> file = InputFile::open(path);
  if (!file.ok()) throw UsageError("config: " + file.error());
  std::string yaml(kMost, '\0');
  const Result<size_t> count = file.value().read(0, yaml.data(), yaml.size());
  if (!count.ok()) throw UsageError("config: " + count.error());
  yaml.resize(count.value());
  check_run_config(yaml, path);
  return yaml;
}

}  // namespace

Config parse_config(std::string_view yaml, const std::string& source,
                    std::span<const std::string> overrides) {
  ConfigBuilder builder;
  builder.read(yaml, source);
  for (const std::string& text : overrides) builder.override_with(text);
  return builder.finish();
}

Config load_config(const std::string& path, std::span<const std::string> overrides) {
  ConfigBuilder builder;
  const std::vector<std::string>* const own = default_job();
  if (own != nullptr)
    for (const std::string& text : *own) builder.override_with(text, "the program's own job");
  if (own == nullptr || path != kDefaultJob) builder.read(read_config_file(path), path);
  for (const std::string& text : overrides) builder.override_with(text);
  return builder.finish();
}

StoredConfig parse_stored_config(std::string_view yaml, const std::string& source,
                                 std::span<const std::string> overrides, ForeignModels foreign) {
  StoredConfig stored;
  ConfigBuilder builder(&stored.notices,
                        foreign == ForeignModels::read ? &stored.foreign : nullptr);
  builder.read(yaml, source);
  for (const std::string& text : overrides) builder.override_with(text);
  stored.config = builder.finish();
  return stored;
}

StoredConfig load_stored_config(const std::string& path, std::span<const std::string> overrides,
                                ForeignModels foreign) {
  return parse_stored_config(read_config_file(path), path, overrides, foreign);
}

std::string config_yaml(const Config& config) {
  std::string yaml;
  std::string_view section;
  for (const ConfigField& field : config_fields()) {
    if (!field.is_for(config)) continue;
    if (field.section() != section) {
      section = field.section();
      yaml += fmt::format("{}:\n", section);
    }
    yaml += fmt::format("  {}: {}\n", field.name(), value_yaml(field, config));
  }
  return yaml;
}

std::string config_json(const Config& config) {
  std::string json = "{";
  std::string_view section;
  for (const ConfigField& field : config_fields()) {
    if (!field.is_for(config)) continue;
    if (field.section() != section)
      json += fmt::format("{}\n  \"{}\": {{", section.empty() ? "" : "\n  },", field.section());
    json += fmt::format("{}\n    \"{}\": {}", field.section() == section ? "," : "", field.name(),
                        value_json(field, config));
    section = field.section();
  }
  return json + "\n  }\n}\n";
}

std::string config_documentation() {
  const Config defaults;
  std::string text;
  std::string_view section;
  for (const ConfigField& field : config_fields()) {
    if (field.section() != section)
      text += fmt::format("{}{}:\n", text.empty() ? "" : "\n", field.section());
    section = field.section();
    const std::string value = value_yaml(field, defaults);
    text += fmt::format("  {:<28} {}\n  {:<28} {}, default {}{}\n", field.key, field.meaning, "",
                        field.expectation(), value, field.restriction());
  }
  return text;
}

}  // namespace fullbore
