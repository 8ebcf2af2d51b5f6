#pragma once
#include <string>
#include <vector>

namespace fullbore {

/// The command line as data: completions and the manual page are written from it, so that neither
/// can know more or less than the parser does.
struct OptionDescription {
  std::vector<std::string> long_names;   ///< without the dashes
  std::vector<std::string> short_names;  ///< without the dash
  std::string positional;                ///< its name, where it has a place instead
  std::string description;
  std::string default_value;
  bool takes_value = false;
  bool takes_number = false;
  bool required = false;
  bool repeats = false;  ///< takes any number of values

  std::string name() const;  ///< "--top-k", "CONFIG"
};

struct CommandDescription {
  std::string name;
  std::string description;
  std::string footer;  ///< explanation and examples
  std::vector<OptionDescription> options;
  std::vector<CommandDescription> subcommands;  ///< of its own, as `fullbore data` has

  bool takes_settings() const;  ///< key=value
};

}  // namespace fullbore
