#pragma once
#include <string>
#include <string_view>

#include "fullbore/train/config_yaml.h"

/// A program of one model (app/own_model.h) leaves runs whose model other programs have not.
namespace fullbore {

/// Where a stored configuration names a model that nobody here brings; null: it does not.
const ConfigEntry* foreign_model(const ConfigDocument& document);

/// UsageError: that model is not here. It names the program that made the run, where the configuration, `yaml`, or the
/// run folder around the file or folder `source` tells it (with_maker()), and what can be had without it.
[[noreturn]] void refuse_foreign_model(const ConfigEntry& model, std::string_view yaml,
                                       const std::string& source);

/// A configuration as a run keeps it: a comment before it names this program, if it is another than `fullbore`.
std::string with_maker(const std::string& yaml);

}  // namespace fullbore
