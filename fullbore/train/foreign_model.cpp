#include "fullbore/train/foreign_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "fullbore/base/error.h"
#include "fullbore/base/input_file.h"
#include "fullbore/base/printable.h"
#include "fullbore/base/program_name.h"
#include "fullbore/base/text.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/retired_names.h"
#include "fullbore/train/run_directory.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMadeBy = "# Made by the program ";
constexpr size_t kMostBefore = 1024;  // bytes of comments that stand before the settings

/// "" where it does not say so.
std::string maker_of(std::string_view yaml) {
  yaml = yaml.substr(0, kMostBefore);
  size_t at = yaml.find(kMadeBy);
  if (at == std::string_view::npos || (at > 0 && yaml[at - 1] != '\n')) return "";
  at += kMadeBy.size();
  const size_t end = yaml.find('\n', at);
  if (end == std::string_view::npos) return "";
  return printable_name(yaml.substr(at, end - at));
}

std::string maker_in(const fs::path& folder) {
  const fs::path path = folder / RunDirectory::kConfig;
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "";
  const Result<InputFile> file = InputFile::open(path.string());
  if (!file.ok()) return "";
  std::string text(kMostBefore, '\0');
  const Result<size_t> count = file.value().read(0, text.data(), text.size());
  return count.ok() ? maker_of(std::string_view(text).substr(0, count.value())) : "";
}

/// A checkpoint's configuration lies three folders below the run's.
std::string maker_around(const fs::path& source) {
  constexpr int kMostFolders = 4;
  fs::path folder = source;
  for (int i = 0; i < kMostFolders; ++i, folder = folder.parent_path()) {
    if (folder.empty()) return "";
    if (std::string maker = maker_in(folder); !maker.empty()) return maker;
  }
  return "";
}

}  // namespace

const ConfigEntry* foreign_model(const ConfigDocument& document) {
  const auto is_model = [](const ConfigEntry& entry) {
    return entry.section == "model" && entry.name == "name";
  };
  const auto entry = std::ranges::find_if(document.entries, is_model);
  if (entry == document.entries.end() || entry->value.is_list) return nullptr;
  const std::string& name = entry->value.text;
  const std::vector<std::string>& known = find_config_field("model.name")->choices;
  const bool is_known = known.empty() || !renamed_value("model.name", name).empty() ||
                        std::ranges::find(known, name) != known.end();
  return is_known ? nullptr : &*entry;
}

void refuse_foreign_model(const ConfigEntry& model, std::string_view yaml,
                          const std::string& source) {
  const std::string name = printable_name(model.value.text);
  const ConfigField& field = *find_config_field("model.name");
  std::string maker = maker_of(yaml);
  if (maker.empty()) maker = maker_around(source);
  throw UsageError(fmt::format(
      "config: {}:{}: model.name is '{}', which this program has not; {} was expected.{} {} "
      "`runs`, "
      "`metrics`, `watch` and `record` read the folder without it, and its weights are in "
      "checkpoints/last/weights.safetensors",
      source, model.line, name, field.expectation(), did_you_mean(name, field.choices),
      maker.empty()
          ? fmt::format("It may be the model of a program of its own: go on with that, most often "
                        "called '{}' too.",
                        name)
          : fmt::format("It is the model of the program '{}': go on with that.", maker)));
}

std::string with_maker(const std::string& yaml) {
  static const std::string kCommand = "fullbore";
  if (program_name() == kCommand) return yaml;
  return fmt::format("{}{}\n{}", kMadeBy, printable_name(program_name()), yaml);
}

}  // namespace fullbore
