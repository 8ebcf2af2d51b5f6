#include "apps/command_tree.h"

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

CommandDescription describe(const CLI::App& command) {
  CommandDescription result{command.get_name(),
                            command.get_description(),
                            command.get_footer(),
                            {},
                            describe_commands(command)};
  for (const CLI::Option* option : command.get_options()) {
    OptionDescription each;
    each.long_names = option->get_lnames();
    each.short_names = option->get_snames();
    if (option->get_positional()) each.positional = option->get_name(true, false);
    each.description = option->get_description();
    each.default_value = option->get_default_str();
    each.takes_value = option->get_items_expected_max() > 0;
    each.required = option->get_required();
    each.repeats = option->get_items_expected_max() > 1;
    result.options.push_back(std::move(each));
  }
  return result;
}

std::vector<CommandDescription> describe_commands(const CLI::App& app) {
  std::vector<CommandDescription> result;
  for (const CLI::App* command : app.get_subcommands({})) result.push_back(describe(*command));
  return result;
}

}  // namespace fullbore
