#pragma once
#include <optional>
#include <string>
#include <vector>

#include "fullbore/ckpt/mapped_tensors.h"
#include "fullbore/runtime/state.h"
#include "fullbore/train/weight_mapping.h"
#include "fullbore/train/weight_source.h"

namespace fullbore {

/// Weights of a safetensors file that anybody wrote, to start from: by the names that they have there, or by a
/// mapping of names and layouts. Any floating dtype becomes the parameter's.
class ForeignWeights {
 public:
  /// Is it the path of such a file, or of a mapping?
  static bool is_path(const std::string& path);
  /// `path`: a file *.safetensors, or a mapping *.yaml (weight_mapping.h). DataError: missing or malformed. UsageError: a
  /// mapping that is none.
  static ForeignWeights open(const std::string& path);
  ForeignWeights(WeightMapping mapping, MappedTensors tensors)
      : mapping_(std::move(mapping)), tensors_(std::move(tensors)) {}

  /// What is named when something is wrong: the mapping, or the file.
  const std::string& path() const;
  /// What weight entries (is_weight()) among `entries` take. UsageError: a rule is of no parameter (nearest name).
  WeightTransfer plan(const std::vector<StateEntry>& entries) const;
  /// Fills what the transfer takes.
  void fill(const WeightTransfer& transfer, State& state) const;
  /// For people, a line each.
  std::vector<std::string> lines(const WeightTransfer& transfer) const;

 private:
  /// What makes a parameter: a rule with its stars replaced.
  struct Recipe {
    std::vector<MappingRule::Origin> origins;
    std::vector<LayoutStep> steps;
    std::string text() const;
  };
  Recipe recipe(const std::string& parameter) const;
  /// Why the recipe does not make `type`; empty: it does.
  std::string obstacle(const Recipe& recipe, const TensorType& type) const;

  WeightMapping mapping_;
  MappedTensors tensors_;
};

}  // namespace fullbore
