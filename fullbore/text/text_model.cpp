#include "fullbore/text/text_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/base/error.h"
#include "fullbore/text/text_keys.h"

namespace fullbore {
namespace {

std::vector<TextModel>& models() {
  static std::vector<TextModel> all;
  return all;
}

std::vector<TextTask>& tasks() {
  static std::vector<TextTask> all;
  return all;
}

}  // namespace

void register_text_model(TextModel model) {
  std::vector<TextModel>& all = models();
  all.insert(std::ranges::upper_bound(all, model.name, {}, &TextModel::name), std::move(model));
}

void register_text_task(TextTask task) { tasks().push_back(std::move(task)); }

const TextModel& text_model(const Config& config, const std::string& what) {
  const auto found = std::ranges::find(models(), config.model.name, &TextModel::name);
  if (found == models().end())
    throw UsageError(
        fmt::format("{} is of a {} model, not of a language model", what, config.model.name));
  return *found;
}

bool is_text_model(const Config& config) {
  return std::ranges::find(models(), config.model.name, &TextModel::name) != models().end();
}

const TextTask* text_task(const Config& config) {
  const auto found = std::ranges::find(tasks(), text_keys(config).data.batching, &TextTask::name);
  return found == tasks().end() ? nullptr : &*found;
}

const std::vector<TextModel>& text_models() { return models(); }

std::vector<std::string> text_model_names() {
  std::vector<std::string> names;
  for (const TextModel& model : models()) names.push_back(model.name);
  return names;
}

}  // namespace fullbore
