#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/base/philox.h"
#include "fullbore/ops/ops.h"
#include "tests/support/random_graph.h"

namespace fullbore {

/// What random choices are made from: a graph, its values so far, and a way to ask for new inputs.
struct Workbench {
  GraphBuilder& builder;
  PhiloxStream& draws;
  const RandomGraphOptions& options;
  /// A new input of the outermost graph with these values.
  std::function<Tensor(Literal)> new_input;
  std::vector<Tensor> values = {};
  int depth = 0;  ///< number of loops around

  int64_t below(int64_t n) const {
    return static_cast<int64_t>(draws.below(static_cast<uint64_t>(n)));
  }
  bool chance(double probability) const { return draws.uniform() < probability; }
  template <class T>
  const T& one_of(const std::vector<T>& all) const {
    return all[static_cast<size_t>(below(static_cast<int64_t>(all.size())))];
  }
  /// A value for which `fits` holds, the later ones more often; nothing if there is none.
  std::optional<Tensor> pick(const std::function<bool(Tensor)>& fits) const;
  /// A floating value of the options' dtype; a new input if there is none.
  Tensor pick_floating();
  /// Random extents of at most `most_rank` axes.
  Shape shape(int most_rank) const;
  Tensor normal_input(const Shape& shape);
};

/// x as a value of another shape: flattened, cropped or padded, and shaped anew. With its elements
/// in place where the shapes are equal.
Tensor adapt(Tensor x, const Shape& shape);

/// `sum` [m, n] plus up to three products of values over one to three rows, some of them transposed and
/// some with a factor in common: as the gradient of a shared weight is made. Of one row, that a loop was
/// given where it can be, if m is at least kWide: then the pass batch_weight_gradients has something to do.
constexpr int64_t kWide = 16;
Tensor sum_of_products(Workbench& bench, Tensor sum);

/// Each adds nodes and returns their results, or nothing where it does not apply.
using Choice = std::vector<Tensor> (*)(Workbench&);
std::vector<Tensor> call_by_sample(Workbench& bench);  ///< any registered op
std::vector<Tensor> call_elementwise(Workbench& bench);
std::vector<Tensor> move_elements(Workbench& bench);
std::vector<Tensor> reduce_elements(Workbench& bench);
std::vector<Tensor> multiply_matrices(Workbench& bench);
std::vector<Tensor> add_depth(Workbench& bench);
std::vector<Tensor> add_constant(Workbench& bench);
std::vector<Tensor> repeat_node(Workbench& bench);  ///< emits a node that is there again
std::vector<Tensor> run_loop(Workbench& bench);
std::vector<Tensor> differentiate(Workbench& bench);

}  // namespace fullbore
