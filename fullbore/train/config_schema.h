#pragma once
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "fullbore/train/config.h"

namespace fullbore {

/// Bounds of a number; `open` ones are excluded.
struct ConfigRange {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false;
  bool high_open = false;
  bool contains(double value) const;  ///< false for NaN
  std::string text() const;           ///< "[0, 1)"
};

using ConfigPlace = std::variant<int64_t*, double*, bool*, std::string*, std::vector<std::string>*,
                                 std::vector<int64_t>*>;

/// One key. Its type is that of the member it is stored in.
struct ConfigField {
  std::string key;  ///< "train.steps"
  ConfigPlace (*place)(Config&);
  ConfigRange range;                     ///< numbers, and each in a list of them
  std::vector<std::string> choices;      ///< texts, and each in a list of them; empty: any text
  std::string meaning;                   ///< one line
  bool maps = false;                     ///< lists only: items may be maps, read as "key=value ..."
  bool automatic = false;                ///< whole numbers only: may be `auto`, which is kept as 0
  std::vector<std::string> models = {};  ///< values of model.name that it is for; empty: all
  std::string example = {};              ///< of lists of maps: a value as on the command line
  bool one_without_brackets = false;     ///< lists of texts only: a single item may go without
  bool is_size = false;                  ///< memory grows with it
  bool is_taken =
      false;  ///< a text that stored configurations may set all the same (stored_config.h)
  bool names_file = false;  ///< names what is read
  bool is_place =
      false;  ///< says on what and with which caches a run is made: no switch of the lab

  std::string_view section() const;
  std::string_view name() const;  ///< without the section
  bool is_list() const;
  bool is_for(const Config& config) const;  ///< has its model such a key?
  std::string expectation() const;          ///< "a whole number in [1, 1000]"
  std::string restriction() const;          ///< "; of model.name=mine", or ""
};

/// Sets `trait` of the fields with these keys.
void mark(std::vector<ConfigField>& fields, bool ConfigField::*trait,
          const std::vector<std::string_view>& keys);

/// All keys, those that were registered (config_keys.h) among them, grouped by section.
const std::vector<ConfigField>& config_fields();
const ConfigField* find_config_field(std::string_view key);
std::vector<std::string> config_keys();
std::vector<std::string> config_sections();

/// A value as it is written.
struct ConfigText {
  std::string text;
  bool quoted = false;   ///< then it is a text, whatever it looks like
  bool is_list = false;  ///< then `items` holds it
  std::vector<std::string> items;
};

/// Stores the value; false when it has not the field's type or range, or is not UTF-8.
bool assign(const ConfigField& field, Config& config, const ConfigText& value);
/// The field's value in `config`, as YAML.
std::string value_yaml(const ConfigField& field, const Config& config);
/// The same as JSON.
std::string value_json(const ConfigField& field, const Config& config);

}  // namespace fullbore
