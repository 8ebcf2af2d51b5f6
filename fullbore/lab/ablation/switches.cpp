#include "fullbore/lab/ablation/switches.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "fullbore/base/error.h"
#include "fullbore/base/text.h"
#include "fullbore/device/automatic_device.h"
#include "fullbore/device/registry.h"
#include "fullbore/passes/pass.h"
#include "fullbore/train/config_override.h"
#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

constexpr std::string_view kDisabledPasses = "engine.disabled_passes";

/// For debugging: a step may take a hundred times as long, and more than all other arms together.
constexpr std::string_view kAskedForByName = "engine.compile=off";

/// Of cards that multiply 8-bit floats.
constexpr std::string_view kOfNewCards = "engine.fp8=true";

/// Of cards alone: elsewhere they are refused, and an arm of theirs would end the comparison.
constexpr std::array<std::string_view, 3> kOfCards = {"engine.precision=tf32",
                                                      "engine.offload=optimizer", kOfNewCards};

/// Without its library it would be the arm that it is compared with.
constexpr std::string_view kOfLibrary = "engine.cublaslt=true";

bool multiplies_8_bits(const std::string& device) {
  try {
    return open_device(device)->target().why_no_fp8.empty();
  } catch (const Error&) {
    return false;  // what is wrong with it is told by the runs
  }
}

/// Without what the configuration's device does not have.
void erase_foreign(std::vector<Switch>& switches, const Config& config) {
  if (std::ranges::find(switches, kOfLibrary, &Switch::name) != switches.end() &&
      !device_has_library(config.engine.device, "cuBLASLt"))
    std::erase_if(switches, [](const Switch& each) { return each.name == kOfLibrary; });
  if (resolved_device(config.engine.device).starts_with("cuda")) {
    if (std::ranges::find(switches, kOfNewCards, &Switch::name) != switches.end() &&
        !multiplies_8_bits(config.engine.device))
      std::erase_if(switches, [](const Switch& each) { return each.name == kOfNewCards; });
    return;
  }
  std::erase_if(switches, [](const Switch& each) {
    return std::ranges::find(kOfCards, each.name) != kOfCards.end();
  });
}

Switch pass_switch(std::string_view name) { return {std::string(name), "", "", "not run"}; }

/// What a choice or a truth value may be; nothing of other keys.
std::vector<std::string> choices_of(const ConfigField& field) {
  if (field.is_list()) return {};
  Config config;
  if (std::holds_alternative<bool*>(field.place(config))) return {"true", "false"};
  return field.choices;
}

/// The value as YAML has it; empty where the field does not take it.
std::string settled_value(const ConfigField& field, const Config& config, std::string_view value) {
  Config changed = config;
  const ConfigText text = read_override(field, value);
  return assign(field, changed, text) ? value_yaml(field, changed) : "";
}

std::vector<Switch> other_values(const ConfigField& field, const std::vector<std::string>& values,
                                 const Config& config) {
  std::vector<Switch> switches;
  const std::string now = value_yaml(field, config);
  std::set<std::string> seen = {now};
  for (const std::string& value : values) {
    const std::string settled = settled_value(field, config, value);
    if (settled.empty())
      throw UsageError(
          fmt::format("lab: --switch {}={}: expected {}", field.key, value, field.expectation()));
    if (!seen.insert(settled).second) continue;
    switches.push_back({fmt::format("{}={}", field.key, value), field.key, value, now});
  }
  return switches;
}

/// "a,b" as {"a", "b"}; commas within brackets are part of an item.
std::vector<std::string> items_of(std::string_view text) {
  std::vector<std::string> items(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == ',' && depth <= 0)
      items.emplace_back();
    else
      items.back() += c;
  }
  return items;
}

const Pass* find_pass(std::string_view name) {
  for (const Pass& pass : pipeline())
    if (pass.name == name) return &pass;
  return nullptr;
}

void refuse_unknown(std::string_view name) {
  std::vector<std::string> known = config_keys();
  for (const Pass& pass : pipeline())
    if (pass.optional) known.emplace_back(pass.name);
  throw UsageError(fmt::format("lab: --switch {}: there is no such pass or key.{}", name,
                               did_you_mean(std::string(name), known)));
}

}  // namespace

std::vector<Switch> known_switches(const Config& config) {
  std::vector<Switch> switches;
  const std::vector<std::string>& disabled = config.engine.disabled_passes;
  for (const Pass& pass : pipeline())
    if (pass.optional && std::ranges::find(disabled, pass.name) == disabled.end())
      switches.push_back(pass_switch(pass.name));
  for (const ConfigField& field : config_fields()) {
    if (field.section() != "engine" || field.is_place || !field.is_for(config)) continue;
    const std::vector<Switch> others = other_values(field, choices_of(field), config);
    switches.insert(switches.end(), others.begin(), others.end());
  }
  std::erase_if(switches, [](const Switch& each) { return each.name == kAskedForByName; });
  erase_foreign(switches, config);
  return switches;
}

std::vector<Switch> parse_switch(std::string_view text, const Config& config) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  if (const Pass* pass = find_pass(name)) {
    if (!pass->optional)
      throw UsageError(fmt::format("lab: --switch {}: the pass cannot be switched off: {}", name,
                                   pass->because));
    if (equals != text.npos)
      throw UsageError(fmt::format("lab: --switch {}: a pass has no value; name it alone", text));
    return {pass_switch(name)};
  }
  const ConfigField* field = find_config_field(name);
  if (!field) refuse_unknown(name);
  if (field->is_place || name == kDisabledPasses || field->section() == "run")
    throw UsageError(
        fmt::format("lab: --switch {}: says where a run is made, or is the lab's own{}", name,
                    name == kDisabledPasses ? "; name passes by themselves" : ""));
  if (!field->is_for(config))
    throw UsageError(fmt::format("lab: --switch {}: model {} has no such key{}", name,
                                 config.model.name, field->restriction()));
  std::vector<std::string> values =
      equals == text.npos ? choices_of(*field) : items_of(text.substr(equals + 1));
  if (values.empty())
    throw UsageError(fmt::format("lab: --switch {}: which values? Write {}=value,value: {}", name,
                                 name, field->expectation()));
  std::vector<Switch> switches = other_values(*field, values, config);
  if (equals == text.npos) erase_foreign(switches, config);
  if (switches.empty())
    throw UsageError(fmt::format("lab: --switch {}: {} is what the configuration says already",
                                 text, value_yaml(*field, config)));
  return switches;
}

std::vector<bool> first_of_each_key(std::span<const Switch> switches) {
  std::vector<bool> first;
  std::set<std::string> keys;
  for (const Switch& each : switches)
    first.push_back(each.key.empty() || keys.insert(each.key).second);
  return first;
}

std::vector<Arm> ablation_arms(std::span<const Switch> switches,
                               const std::vector<bool>& together) {
  std::vector<Arm> arms;
  const auto add = [&](std::string name, std::vector<bool> on) {
    if (std::ranges::find(arms, on, &Arm::on) == arms.end())
      arms.push_back({std::move(name), std::move(on)});
  };
  const std::vector<bool> none(switches.size(), false);
  add("base", none);
  std::vector<bool> passes;
  for (const Switch& each : switches) passes.push_back(each.key.empty());
  add("as configured", passes);
  add("all", together);
  for (size_t i = 0; i < switches.size(); ++i) {
    std::vector<bool> on = none;
    on[i] = true;
    add("+" + switches[i].name, on);
  }
  std::vector<size_t> ladder;
  for (size_t i = 0; i < switches.size(); ++i)
    if (together[i]) ladder.push_back(i);
  for (const size_t i : ladder) {
    std::vector<bool> on = together;
    on[i] = false;
    add("all-" + switches[i].name, on);
  }
  for (const bool reverse : {false, true}) {
    std::vector<bool> on = none;
    for (size_t rung = 0; rung < ladder.size(); ++rung) {
      on[ladder[reverse ? ladder.size() - 1 - rung : rung]] = true;
      add(fmt::format("{}ladder {}", reverse ? "reverse " : "", rung + 1), on);
    }
  }
  return arms;
}

std::vector<std::string> arm_settings(const Arm& arm, std::span<const Switch> switches,
                                      const Config& config) {
  std::vector<std::string> disabled;
  for (const std::string& pass : config.engine.disabled_passes)
    if (std::ranges::find(switches, pass, &Switch::name) == switches.end())
      disabled.push_back(pass);
  std::vector<std::string> settings;
  for (size_t i = 0; i < switches.size(); ++i) {
    if (switches[i].key.empty() && !arm.on[i]) disabled.push_back(switches[i].name);
    if (!switches[i].key.empty() && arm.on[i])
      settings.push_back(fmt::format("{}={}", switches[i].key, switches[i].value));
  }
  settings.push_back(fmt::format("{}=[{}]", kDisabledPasses, fmt::join(disabled, ", ")));
  return settings;
}

}  // namespace fullbore
