#include "fullbore/base/program_name.h"

#include <utility>

namespace fullbore {
namespace {

std::string& name() {
  static std::string kept = "fullbore";
  return kept;
}

}  // namespace

const std::string& program_name() { return name(); }

void set_program_name(std::string given) { name() = std::move(given); }

}  // namespace fullbore
