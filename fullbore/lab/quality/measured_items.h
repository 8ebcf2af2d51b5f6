#pragma once
#include <string>
#include <vector>

namespace fullbore {

/// One figure of a model on every item that it was measured on. The figure of all of them is the mean of `values`, each
/// counted as often as its weight says.
struct ItemColumn {
  std::string metric;  ///< the loss, or a metric of it, by name: what QualityMetric::recorded names
  std::vector<double> values;   ///< of each item; anything finite where its weight is 0
  std::vector<double> weights;  ///< of how many it is the mean: predictions, residues
};

/// A model measured on held-out items, one by one, so that another can be compared on the very same.
struct MeasuredItems {
  std::string subject;  ///< the checkpoint
  std::string data;     ///< what the items are of, for people
  std::string unit;     ///< what an item is: "batches", "spectra"
  std::vector<std::string>
      keys;  ///< of each item: equal keys are equal items, such as a hash of what was read
  std::vector<ItemColumn> columns;
};

}  // namespace fullbore
