#include "fullbore/train/config_sections.h"

#include <algorithm>

namespace fullbore {

ConfigSections::ConfigSections(const ConfigSections& other) {
  for (const auto& [type, box] : other.boxes_) boxes_.emplace(type, box->copy());
}

ConfigSections& ConfigSections::operator=(const ConfigSections& other) {
  if (this != &other) *this = ConfigSections(other);
  return *this;
}

const ConfigSections::Box* ConfigSections::find(std::type_index type) const {
  const auto found = boxes_.find(type);
  return found == boxes_.end() ? nullptr : found->second.get();
}

bool ConfigSections::operator==(const ConfigSections& other) const {
  const auto agree = [](const ConfigSections& here, const ConfigSections& there) {
    return std::ranges::all_of(here.boxes_, [&](const auto& entry) {
      return entry.second->equals(there.find(entry.first));
    });
  };
  return agree(*this, other) && agree(other, *this);
}

}  // namespace fullbore
