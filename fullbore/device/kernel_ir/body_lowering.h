#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/device/kernel_ir/index_map.h"
#include "fullbore/device/kernel_ir/kernel_ir.h"
#include "fullbore/ir/graph.h"

namespace fullbore::jit {

/// A result of a body and where it goes.
struct BodyOutput {
  Value value;
  int buffer = 0;
  TensorType target;               ///< of the buffer: the value's, or larger if it is placed inside
  std::vector<int64_t> offsets{};  ///< of the value in the target; empty: they are the same
  int symbol_axis = -1;            ///< the offset along this axis is read at run time...
  Value start{};                   ///< ...from here, clamped so that the value fits
};

/// Part of a graph as one kernel: the values in `leaves` are buffers, everything between them and
/// the outputs is evaluated in registers.
///
/// Lowering goes backwards, from what is stored to what is loaded, with a map that says which
/// element is meant: movements change the map and cost nothing, arithmetic becomes instructions,
/// leaves become loads whose addresses follow from the map.
class BodyLowering {
 public:
  BodyLowering(const Graph& graph, std::map<Value, int> leaves, std::vector<BodyOutput> outputs,
               std::vector<KernelBuffer> buffers)
      : graph_(graph),
        leaves_(std::move(leaves)),
        outputs_(std::move(outputs)),
        buffers_(std::move(buffers)) {}

  /// The kernel, or nothing and the reason.
  std::optional<KernelIr> run(std::string* why_not);

 private:
  // Why it does not work out, or that a dim must be split first; caught in run().
  struct Failure {
    std::string reason;
    std::optional<SplitRequest> split;
  };
  [[noreturn]] static void fail(std::string reason) { throw Failure{std::move(reason), {}}; }

  void choose_domain();
  void lower_outputs();
  int build(Value value, const IndexMap& map);
  int build_node(const Node& node, const IndexMap& map);
  int build_movement(const Node& node, const IndexMap& map);
  int build_source(const Node& node, const IndexMap& map);
  bool is_zero_outside(int value) const;
  int build_pad(const Node& node, const IndexMap& map);
  int build_concat(const Node& node, const IndexMap& map);
  int build_dynamic_slice(const Node& node, const IndexMap& map);
  int build_dynamic_update(const Node& node, const IndexMap& map);
  int build_reduction(const Node& node, const IndexMap& map);
  int build_argmax(const Node& node, const IndexMap& map);
  int build_scan(const Node& node, const IndexMap& map);
  int build_load(Value value, int buffer, const IndexMap& map);
  IndexMap reduction_operand_map(const Node& node, const IndexMap& map);
  IndexMap reshaped(const IndexMap& map, const Shape& from, const Shape& to) const;
  /// `value` where the predicates hold, else `otherwise`.
  int guarded(const std::vector<Predicate>& predicates, int value, int otherwise);
  int symbol(Value start, int64_t limit);
  int emit(Instruction instruction);
  int constant(DType dtype, double value);
  int scalar(ScalarOp op, DType dtype, std::vector<int> operands);
  int reduce(ScalarOp op, DType dtype, int operand);

  const Graph& graph_;
  std::map<Value, int> leaves_;
  std::vector<BodyOutput> outputs_;
  std::vector<KernelBuffer> buffers_;
  Domain domain_;
  std::vector<SplitRequest> splits_;
  KernelIr kernel_;
  std::vector<std::pair<std::pair<Value, IndexMap>, int>> built_;
};

/// Turns forms over the domain's dims into loops: chooses the vectorised dim, orders and merges the
/// others, and drops what nothing is stored of.
KernelIr shape_loops(const Domain& domain, KernelIr kernel);

}  // namespace fullbore::jit
