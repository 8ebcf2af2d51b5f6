#include "fullbore/text/context_curriculum.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <sstream>
#include <string>

#include "fullbore/base/error.h"
#include "fullbore/text/text_keys.h"

namespace fullbore {
namespace {

struct Item {
  int64_t until_step = 0;
  int64_t length = 0;
};

bool parse_count(std::string_view text, int64_t& number) {
  constexpr int64_t kMost = 1000000000;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 1 && number <= kMost;
}

/// "until_step=200 length=128", in either order.
std::optional<Item> parse_item(const std::string& text) {
  Item item;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return std::nullopt;
    const std::string key = word.substr(0, equals);
    int64_t* const place = key == "until_step" ? &item.until_step
                           : key == "length"   ? &item.length
                                               : nullptr;
    if (place == nullptr || *place != 0 || !parse_count(word.substr(equals + 1), *place))
      return std::nullopt;
  }
  if (item.until_step == 0 || item.length == 0) return std::nullopt;
  return item;
}

}  // namespace

std::vector<ContextStage> context_stages(const Config& config) {
  const int64_t context = text_keys(config).model.context;
  std::vector<ContextStage> stages;
  uint64_t first = 0;
  for (const std::string& text : text_keys(config).data.context_curriculum) {
    const auto refuse = [&](const std::string& reason) {
      throw UsageError(fmt::format("data.context_curriculum: '{}' {}", text.substr(0, 60), reason));
    };
    const std::optional<Item> item = parse_item(text);
    if (!item) {
      refuse("is no {until_step: STEPS, length: TOKENS}, of whole numbers from 1 on");
      continue;
    }
    if (item->length > context)
      refuse(fmt::format("goes beyond model.context, which is {}", context));
    if (text_keys(config).data.batching == "windows" && context % item->length != 0)
      refuse(fmt::format(
          "does not divide model.context, {}: a batch could not have as many tokens throughout",
          context));
    if (static_cast<uint64_t>(item->until_step) <= first)
      refuse(fmt::format("ends no later than what is before it, at step {}", first));
    stages.push_back({first, item->length});
    first = static_cast<uint64_t>(item->until_step);
  }
  stages.push_back({first, context});
  return stages;
}

}  // namespace fullbore
