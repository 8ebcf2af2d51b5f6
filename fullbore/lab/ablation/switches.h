#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/train/config.h"

namespace fullbore {

/// Something of a job that can be on or off: a pass, or a setting in place of the configured one.
struct Switch {
  std::string name;   ///< "fuse", or "engine.precision=bf16"
  std::string key;    ///< of a setting; empty: the name is a pass
  std::string value;  ///< of the key, where it is on
  std::string off;    ///< for people: what stands in its place: "not run", "fp32"
  bool operator==(const Switch&) const = default;
};

/// Every pass that may be switched off, then every other value of every choice and truth value of the section `engine` that is a
/// job's own (ConfigField::is_place) and is of config's model: asked of the registries, in their order.
std::vector<Switch> known_switches(const Config& config);

/// What --switch says: the name of a pass; a key, for every other value of a choice; or "key=value,value,...", of which each
/// value but the configured one is a switch. Lists are "key=[a,b],[c]". UsageError: no such pass or key, with the nearest name; a
/// value that the key does not take; no value but the configured one; a key that says where a run is made.
std::vector<Switch> parse_switch(std::string_view text, const Config& config);

/// Which of the switches are on.
struct Arm {
  std::string name;      ///< "base", "+fuse", "all", "all-fuse", "ladder 3", "reverse ladder 2"
  std::vector<bool> on;  ///< by switch
  bool operator==(const Arm&) const = default;
};

/// The arms of an ablation, in the order of their weight: base, as configured (the passes alone), all together, each alone, each left out of all, the ladder in the
/// switches' order and then in the reverse. Of equal arms only the first is there. `together`: by switch, whether it takes part in
/// all, left out and ladder; alone they all are.
std::vector<Arm> ablation_arms(std::span<const Switch> switches, const std::vector<bool>& together);

/// Of several switches of one key only the first can be on along with others.
std::vector<bool> first_of_each_key(std::span<const Switch> switches);

/// The settings that make the job an arm's: engine.disabled_passes, with those of the configuration, and a setting for each
/// that is on.
std::vector<std::string> arm_settings(const Arm& arm, std::span<const Switch> switches,
                                      const Config& config);

}  // namespace fullbore
