// Any bytes as a mapping of weights: refused with a message, or every step makes of a shape one of as many elements, or
// fewer, and every rule's stars can be replaced.
#include <string>
#include <string_view>

#include "fullbore/base/error.h"
#include "fullbore/train/weight_mapping.h"
#include "tests/fuzz/memory_file.h"

using namespace fullbore;
using fullbore::testing::require;

namespace {

void lay_out(const std::vector<LayoutStep>& steps) {
  for (const Shape& first : {Shape{}, Shape{6}, Shape{2, 3}, Shape{4, 0}, Shape{2, 3, 4}}) {
    Shape shape = first;
    try {
      for (const LayoutStep& step : steps) {
        const Shape next = laid_out(step, shape);
        require(step.kind == LayoutStep::Kind::slice ? next.elements() <= shape.elements()
                                                     : next.elements() == shape.elements());
        shape = next;
      }
    } catch (const UsageError& error) {
      require(std::string_view(error.what()).size() > 5);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    const WeightMapping mapping =
        parse_weight_mapping({reinterpret_cast<const char*>(data), size}, "m.yaml");
    require(!mapping.weights.empty());
    for (const MappingRule& rule : mapping.rules) {
      require(!rule.origins.empty());
      lay_out(rule.steps);
      const auto stars = match_stars(rule.parameter, "blocks.0.conv.weight");
      for (const MappingRule::Origin& origin : rule.origins) {
        lay_out(origin.steps);
        if (stars) require(with_stars(origin.name, *stars).size() < 4096);
      }
      // A pattern matches itself.
      require(rule.parameter.size() > 1024 || match_stars(rule.parameter, rule.parameter));
    }
  } catch (const UsageError& error) {
    require(std::string_view(error.what()).size() > 5);
  }
  return 0;
}
