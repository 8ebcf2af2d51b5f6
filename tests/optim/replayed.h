#pragma once
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/literal.h"
#include "fullbore/trace/trace.h"

namespace fullbore {

using Literals = std::map<std::string, Literal>;

/// A step that is replayed: each call takes the batch, keeps State, and returns results and new
/// State by name.
class Replayed {
 public:
  virtual ~Replayed() = default;
  virtual Literals step(const Literals& batch) = 0;
};
/// By the interpreter, in double precision. State that `start` leaves out is zero.
std::unique_ptr<Replayed> interpreted(Graph graph, Literals start);
/// By the cpu device.
std::unique_ptr<Replayed> compiled(const Graph& graph, const Literals& start);

/// tests/optim/golden/<name>.
nlohmann::json read_golden(const std::string& name);
/// {"w": [2, 3], ...}: parameters and their shapes, as golden files list them.
std::map<std::string, Shape> shapes_of(const nlohmann::json& list);

/// A loss whose gradient by each parameter, a name and its shape, is the batch input
/// "gradient.<parameter>".
Tensor loss_of_given_gradients(Trace& trace, const std::map<std::string, Shape>& shapes);

/// Relative to each element in double (`exact`); in f32 relative to the largest of the tensor, for
/// elements may be small differences of such.
void expect_close(const Literal& found, const std::vector<double>& expected, bool exact,
                  const std::string& what);

}  // namespace fullbore
