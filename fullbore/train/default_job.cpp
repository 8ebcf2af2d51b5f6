#include "fullbore/train/default_job.h"

#include <optional>
#include <utility>

namespace fullbore {
namespace {

std::optional<std::vector<std::string>>& registered() {
  static std::optional<std::vector<std::string>> settings;
  return settings;
}

}  // namespace

void set_default_job(std::vector<std::string> settings) { registered() = std::move(settings); }

const std::vector<std::string>* default_job() { return registered() ? &*registered() : nullptr; }

}  // namespace fullbore
