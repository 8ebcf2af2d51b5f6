#pragma once
#include <memory>
#include <string>
#include <vector>

#include "fullbore/device/device.h"
#include "fullbore/ir/literal.h"
#include "fullbore/ir/op_def.h"

namespace fullbore::testing_support {

/// One call of an op on the CPU, node by node: a composite that the device does not support natively is run as its
/// decomposition. Compiles on construction, runs after Compiler::finish().
class OpCheck {
 public:
  OpCheck(const Target& target, Compiler& compiler, const OpDef& op, const Sample& sample,
          DType dtype, uint64_t seed);

  /// Runs every node on what the device made of the nodes before it, in all the ways that must give
  /// the same bits, and holds it to the reference on the same operands. "" or, in full, what is
  /// wrong: op, sample, dtype, node, element, expected, got, bound.
  std::string run() const;

  /// With what the device computed changed in place before it is compared: does the check see it?
  using Tamper = void (*)(Literal&);
  std::string run(Tamper tamper) const;

 private:
  std::string run_node(const Node& node, const Kernel* kernel,
                       const std::vector<const Literal*>& operands, std::vector<Literal>& results,
                       Tamper tamper) const;

  std::string name_;
  Graph graph_;
  std::vector<Literal> inputs_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  ///< per node; null: the reference itself
};

}  // namespace fullbore::testing_support
