#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fullbore/backend/backend.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/pass.h"
#include "fullbore/train/bad_step.h"

namespace fullbore {
namespace {

CompileOptions without_optional_passes(CompileOptions options) {
  for (const Pass& pass : pipeline())
    if (pass.optional && pass.name != "lower_precision")  // it may be what makes the infinity
      options.passes.disabled.insert(std::string(pass.name));
  return options;
}

/// 0 * x is NaN where x is not finite; x != x where it is NaN. Either, summed, is one number.
struct Probes {
  int not_finite = -1;  ///< output that is NaN if the value is not finite
  int nans = -1;        ///< output that counts its NaNs
};

Tensor sum_of_all(Tensor x) {
  std::vector<int64_t> axes(static_cast<size_t>(x.rank()));
  std::iota(axes.begin(), axes.end(), 0);
  return axes.empty() ? x : reduce_sum(x, axes);
}

/// The graph's nodes with probes for outputs; what it updated, it does not any more.
class ProbedGraph {
 public:
  explicit ProbedGraph(const Graph& graph)
      : builder_("probed " + graph.name()), probes_(static_cast<size_t>(graph.value_count())) {
    std::vector<Tensor> tensors(probes_.size());
    const auto put = [&](Value value, Tensor tensor) {
      tensors[static_cast<size_t>(value.id)] = tensor;
      if (is_floating(tensor.dtype())) probe(value, tensor);
    };
    for (const Graph::Input& input : graph.inputs())
      put(input.value, builder_.input(input.name, input.role, graph.type(input.value)));
    for (const Node& node : graph.nodes()) {
      std::vector<Tensor> operands;
      for (Value input : node.inputs) operands.push_back(tensors[static_cast<size_t>(input.id)]);
      const std::vector<Tensor> results = builder_.emit_like(node, operands);
      for (size_t i = 0; i < results.size(); ++i) put(node.outputs[i], results[i]);
    }
  }

  Graph take() { return builder_.take(); }
  const Probes& of(Value value) const { return probes_[static_cast<size_t>(value.id)]; }

 private:
  void probe(Value value, Tensor tensor) {
    const Tensor wide = cast(tensor, DType::f32);
    const Tensor is_nan = cast(not_equal(wide, wide), DType::f32);
    Probes& probes = probes_[static_cast<size_t>(value.id)];
    probes.not_finite = add(sum_of_all(wide * 0.0));
    probes.nans = add(sum_of_all(is_nan));
  }
  int add(Tensor tensor) {
    builder_.output(fmt::format("probe {}", outputs_), tensor);
    return outputs_++;
  }

  GraphBuilder builder_;
  std::vector<Probes> probes_;
  int outputs_ = 0;
};

enum class Health { kFinite, kInfinite, kNaN };

const char* text(Health health) { return health == Health::kNaN ? "NaN" : "an infinity"; }

std::string describe(const Graph& graph, const Node& node, Health health) {
  std::string where;
  if (!node.scope.empty()) where += " in " + node.scope;
  if (!node.location.empty()) where += " (" + node.location + ")";
  std::string line = print_node(graph, node);
  line = line.substr(0, line.find('\n'));
  return fmt::format("{}{} made {} first: {}", node.op->name, where, text(health), line);
}

}  // namespace

std::string first_non_finite(const Graph& graph, State& state, std::span<const void* const> batch,
                             Team& team, const CompileOptions& options) {
  const CompileOptions plain = without_optional_passes(options);
  const Graph primitive = run_passes(
      graph, compile_target(*make_backend(options.backend), options, team.workers()), plain.passes);
  ProbedGraph probed(primitive);
  Program program = Program::compile(probed.take(), state, team, plain);
  program.run(batch);
  const auto health = [&](Value value) {
    const Probes& probes = probed.of(value);
    const auto read = [&](int output) {
      return *static_cast<const float*>(program.result(output));
    };
    if (probes.nans >= 0 && read(probes.nans) > 0) return Health::kNaN;
    return probes.not_finite >= 0 && std::isnan(read(probes.not_finite)) ? Health::kInfinite
                                                                         : Health::kFinite;
  };
  for (const Graph::Input& input : primitive.inputs())
    if (health(input.value) != Health::kFinite)
      return fmt::format("{} '{}' {} held {} before the step", role_name(input.role), input.name,
                         primitive.type(input.value).text(), text(health(input.value)));
  for (const Node& node : primitive.nodes()) {
    Health worst = Health::kFinite;
    for (Value input : node.inputs) worst = std::max(worst, health(input));
    if (node.inputs.empty()) continue;
    for (Value output : node.outputs)
      if (health(output) > worst) return describe(primitive, node, health(output));
  }
  return "";
}

}  // namespace fullbore
