#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/latentwire/latent_keys.h"

/// The seventeen ways to make a step faster or smaller that the specification names, and what each of them is here.
namespace fullbore::latentwire {

struct Switch {
  int number;             ///< in the specification
  std::string_view name;  ///< of the key switches.NAME, where there are two paths
  std::string_view about;
  /// Its mode: off, on, check, or as_set where another key says it. Null: there is nothing to choose.
  std::string LatentKeys::Switches::*mode = nullptr;
  /// Sets the keys that it stands for, most of them the engine's; null: the mode itself is what is read.
  void (*set_engine)(Config& config, bool on) = nullptr;

  bool has_two_paths() const { return mode != nullptr; }
};

/// By number.
std::span<const Switch> all_switches();
/// Those with two paths in the order in which they are to be tried, the others left out.
std::vector<const Switch*> rollout();

/// Sets the switch, and the engine's keys that it stands for.
void set_switch(Config& config, const Switch& each, bool on);
/// Switches that are on or off set the engine's keys, and are as_set from then on: what a run keeps says each thing once.
void settle_engine_switches(Config& config);

}  // namespace fullbore::latentwire
