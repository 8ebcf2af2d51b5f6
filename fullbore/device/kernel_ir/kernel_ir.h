#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "fullbore/base/dtype.h"
#include "fullbore/ir/scalar.h"

/// The small IR between graphs and machine code: one nest of loops, a list of instructions in
/// static single assignment that is evaluated at every point of the nest, and stores.
///
/// The loops, outermost first:
///   outer    indices of independent rows: what items are made of and workers share
///   serial   walked one after the other for each row; only where something is reduced
///   lane     vectorised; `lanes_reduced` says whether a reduction combines its lanes
///
/// Where lanes are not reduced but serial loops exist (a reduction over outer axes), the serial
/// loops run inside a group of lanes, which then accumulate independently.
///
/// Nothing says in which loop an instruction is evaluated: it follows from the indices that it
/// depends on (see loop_placement.h). An instruction that depends on a reduction which depends on the
/// same row is evaluated in a later phase: one more walk over the row, in which cheap values are
/// computed again rather than stored. Softmax is three phases, layer normalisation two or three.
namespace fullbore::jit {

/// offset + sum of coefficient * index. One coefficient per loop in the order outer..., serial...,
/// lane, then one per symbol.
struct Form {
  int64_t offset = 0;
  std::vector<int64_t> coefficients;
  bool operator==(const Form&) const = default;
};

/// Holds where 0 <= form < limit and form is a multiple of divisor.
struct Predicate {
  Form form;
  int64_t limit = 0;
  int64_t divisor = 1;
  bool operator==(const Predicate&) const = default;
};

/// Element address / divisor of a buffer. A load gives zero where a predicate does not hold; there
/// nothing is read.
struct Access {
  int buffer = 0;
  Form address;
  int64_t divisor = 1;
  std::vector<Predicate> predicates;
  bool operator==(const Access&) const = default;
};

struct Instruction {
  enum class Kind : uint8_t {
    constant,  ///< `value`
    index,     ///< `form` as a number
    inside,    ///< bool: do all of access.predicates hold?
    load,      ///< `access`; low-precision floats become f32
    scalar,    ///< `op` of the operands
    reduce,    ///< combines its operand with `op` (add, mul, maximum, minimum) over the row
    scan       ///< running sum over the row in order; `exclusive` leaves out the element itself
  };
  Kind kind = Kind::constant;
  DType dtype = DType::f32;  ///< of the result
  ScalarOp op = ScalarOp::add;
  std::vector<int> operands;
  double value = 0;
  bool exclusive = false;
  Form form;
  Access access;
  bool operator==(const Instruction&) const = default;
};

struct Store {
  Access access;
  int value = 0;  ///< instruction
};

/// What the plan calls a buffer, as a kernel reads or writes it.
struct KernelBuffer {
  DType dtype = DType::f32;
  int64_t elements = 0;
  bool written = false;
};

/// An index that is read at run time: an i64 scalar, clamped to [0, limit].
struct Symbol {
  int buffer = 0;
  int64_t limit = 0;
};

struct KernelIr {
  std::vector<KernelBuffer> buffers;
  std::vector<int64_t> outer;
  std::vector<int64_t> serial;
  int64_t lanes = 1;
  bool lanes_reduced = false;
  /// Are reductions and scans along lanes made in one order, whatever else the kernel does and however wide its other
  /// values are? (Target::row_invariant)
  bool one_order = false;
  std::vector<Symbol> symbols;
  std::vector<Instruction> instructions;
  std::vector<Store> stores;

  int loops() const { return static_cast<int>(outer.size() + serial.size()) + 1; }
  int lane_loop() const { return loops() - 1; }
  int64_t lane_coefficient(const Form& form) const {
    return form.coefficients[static_cast<size_t>(lane_loop())];
  }
  /// Serial loops inside a group of independent lanes?
  bool columns() const { return !serial.empty() && !lanes_reduced; }
  int64_t rows() const;
  int64_t points() const;  ///< of the whole nest
};

/// How a kernel's rows and lanes are cut into items; independent of the number of workers.
struct Partition {
  int64_t rows_per_item = 1;
  int64_t lanes_per_item = 1;
  int64_t lane_blocks = 1;
  int64_t items = 0;
};

/// Does the kernel sum or otherwise reduce floating numbers along its lanes, so that the order of the lanes tells?
bool sums_along_lanes(const KernelIr& kernel);

/// The code's identity: everything but extents, strides and offsets, which are parameters of the
/// code, so that kernels which differ in those alone share it. Coefficients are written `.` for 0,
/// `*` for a parameter, and in the lane loop `1` for contiguous.
std::string text(const KernelIr& kernel);
/// Do forms of predicates, or their limits, leave what 32 bits hold? Part of the text.
bool has_long_predicates(const KernelIr& kernel);
/// The numbers that text() leaves out, in the order in which the code expects them.
std::vector<int64_t> parameters(const KernelIr& kernel, const Partition& partition);

/// Positions in parameters(). The same walk as there.
struct ParameterLayout {
  static constexpr int kRows = 0;
  static constexpr int kRowsPerItem = 1;
  static constexpr int kLanesPerItem = 2;
  static constexpr int kLaneBlocks = 3;
  static constexpr int kLanes = 4;
  static constexpr int kOuter = 5;  ///< extents of outer, then of serial loops, then symbol limits
};

/// Calls visit(form, predicate or null) for every form of the kernel, in the order of parameters().
template <class Visit>
void for_each_form(const KernelIr& kernel, const Visit& visit) {
  const auto access = [&](const Access& a) {
    visit(a.address, static_cast<const Predicate*>(nullptr));
    for (const Predicate& predicate : a.predicates) visit(predicate.form, &predicate);
  };
  for (const Instruction& instruction : kernel.instructions) {
    if (instruction.kind == Instruction::Kind::index)
      visit(instruction.form, static_cast<const Predicate*>(nullptr));
    if (instruction.kind == Instruction::Kind::load) access(instruction.access);
    if (instruction.kind == Instruction::Kind::inside)
      for (const Predicate& predicate : instruction.access.predicates)
        visit(predicate.form, &predicate);
  }
  for (const Store& store : kernel.stores) access(store.access);
}

/// Number of parameters that a form takes: its offset and each coefficient that the text writes *.
int form_parameters(const KernelIr& kernel, const Form& form);
/// Is the coefficient of loop or symbol `i` a parameter, rather than part of the text?
bool is_parameter(const KernelIr& kernel, const Form& form, int i);

}  // namespace fullbore::jit
