#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/shape.h"

namespace fullbore {

/// A change of layout on the way from a file to a parameter.
struct LayoutStep {
  enum class Kind : uint8_t { slice, reshape, transpose };
  Kind kind = Kind::reshape;
  /// slice: axis, begin, end. reshape: extents, of which one may be -1. transpose: the axes in their new order.
  std::vector<int64_t> numbers;
  std::string text() const;  ///< "transpose 1 0"
};

/// Which tensors of a file make a parameter.
struct MappingRule {
  struct Origin {
    std::string name;  ///< its stars stand for what those of `parameter` have matched, in order
    std::vector<LayoutStep> steps;
  };
  std::string parameter;  ///< a pattern: `*` stands for any characters
  std::vector<Origin> origins;
  std::vector<LayoutStep> steps;  ///< of what the origins are joined to along their first axes
  int line = 0;
};

/// How the names and layouts of a file of others become those of a model. As YAML:
///
///     file:
///       weights: theirs.safetensors        # or a list, or a folder; from where this file lies
///       ignored: ["*.num_batches_tracked"] # tensors that nothing takes, by patterns
///     tensors:                             # what is not named has the same name on both sides
///       encoder.*: model.enc.*
///       conv.weight: conv.kernel | transpose 3 2 0 1
///       head.weight: table | slice 0 0 10 | reshape 10 -1
///       attention.qkv.weight: [q.weight, k.weight, v.weight]
///       mixer.weight: [a.weight, b.weight, "| transpose 1 0"]
struct WeightMapping {
  std::string source;  ///< of the YAML, for messages; empty: there is none
  std::vector<std::string> weights;
  std::vector<std::string> ignored;
  std::vector<MappingRule> rules;
};

/// Throws UsageError with `source` and line: malformed YAML, a key or step that there is not (nearest name), a parameter
/// named twice, more stars in an origin than in its parameter, `file.weights` missing. Whatever the bytes, time and memory
/// stay in proportion to them.
WeightMapping parse_weight_mapping(std::string_view yaml, const std::string& source);

/// What the stars of the pattern stand for in `name`, each as short as can be, the first first; none: it does not match.
std::optional<std::vector<std::string>> match_stars(std::string_view pattern,
                                                    std::string_view name);
/// The pattern with its stars replaced, the first by the first of `stars`, which are as many or more.
std::string with_stars(std::string_view pattern, const std::vector<std::string>& stars);

/// What a step makes of a tensor of that shape. UsageError: it cannot.
Shape laid_out(const LayoutStep& step, const Shape& shape);

}  // namespace fullbore
