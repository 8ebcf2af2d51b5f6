#include "fullbore/app/command_tree.h"

#include <algorithm>

namespace fullbore {

std::string OptionDescription::name() const {
  if (!positional.empty()) return positional;
  return long_names.empty() ? "-" + short_names.front() : "--" + long_names.front();
}

bool CommandDescription::takes_settings() const {
  return std::any_of(options.begin(), options.end(),
                     [](const auto& option) { return option.positional == "key=value"; });
}

}  // namespace fullbore
