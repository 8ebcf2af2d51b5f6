#include <algorithm>

#include "fullbore/device/kernel_ir/body_lowering.h"

namespace fullbore::jit {
namespace {

using Kind = Instruction::Kind;

// Every form of the kernel, to be rewritten.
template <class Visit>
void edit_forms(KernelIr& kernel, const Visit& visit) {
  const auto access = [&](Access& a) {
    visit(a.address);
    for (Predicate& predicate : a.predicates) visit(predicate.form);
  };
  for (Instruction& instruction : kernel.instructions) {
    if (instruction.kind == Kind::index) visit(instruction.form);
    if (instruction.kind == Kind::load) access(instruction.access);
    if (instruction.kind == Kind::inside)
      for (Predicate& predicate : instruction.access.predicates) visit(predicate.form);
  }
  for (Store& store : kernel.stores) access(store.access);
}

void drop_unused(KernelIr& kernel) {
  std::vector<bool> used(kernel.instructions.size(), false);
  for (const Store& store : kernel.stores) used[static_cast<size_t>(store.value)] = true;
  for (size_t i = kernel.instructions.size(); i-- > 0;)
    if (used[i])
      for (int operand : kernel.instructions[i].operands) used[static_cast<size_t>(operand)] = true;
  std::vector<int> renamed(kernel.instructions.size(), -1);
  std::vector<Instruction> kept;
  for (size_t i = 0; i < kernel.instructions.size(); ++i) {
    if (!used[i]) continue;
    renamed[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(kernel.instructions[i]));
    for (int& operand : kept.back().operands) operand = renamed[static_cast<size_t>(operand)];
  }
  for (Store& store : kernel.stores) store.value = renamed[static_cast<size_t>(store.value)];
  kernel.instructions = std::move(kept);
}

// A loop of the kernel: which dim it walks, or several that every form sees as one.
struct Loop {
  int64_t extent = 1;
  int dim = -1;  // the innermost of the merged ones; -1: none, a loop of one
};

// Neighbouring loops (a, then b inside it) are one if for every form a step of a is as long as all
// of b.
void merge_loops(KernelIr& kernel, std::vector<Loop>& loops) {
  for (size_t i = 0; i + 1 < loops.size();) {
    const auto a = static_cast<size_t>(loops[i].dim);
    const auto b = static_cast<size_t>(loops[i + 1].dim);
    bool mergeable = true;
    edit_forms(kernel, [&](Form& form) {
      mergeable = mergeable && form.coefficients[a] == form.coefficients[b] * loops[i + 1].extent;
    });
    if (!mergeable) {
      ++i;
      continue;
    }
    loops[i + 1].extent *= loops[i].extent;
    loops.erase(loops.begin() + static_cast<ptrdiff_t>(i));
  }
}

// Kernels that only copy do not care what they copy: one kernel for each width of element.
void forget_dtypes(KernelIr& kernel) {
  for (const Instruction& instruction : kernel.instructions)
    if (instruction.kind != Kind::load) return;
  const auto plain = [](DType dtype) {
    switch (dtype_bytes(dtype)) {
      case 8: return DType::i64;
      case 4: return DType::i32;
      case 2: return DType::bf16;
      default: return DType::u8;
    }
  };
  for (const Symbol& symbol : kernel.symbols)
    if (kernel.buffers[static_cast<size_t>(symbol.buffer)].dtype != DType::i64) return;
  for (Instruction& instruction : kernel.instructions) instruction.dtype = plain(instruction.dtype);
  for (KernelBuffer& buffer : kernel.buffers) buffer.dtype = plain(buffer.dtype);
}

}  // namespace

KernelIr shape_loops(const Domain& domain, KernelIr kernel) {
  drop_unused(kernel);
  std::vector<Loop> kept;
  std::vector<Loop> reduced;
  for (size_t i = 0; i < domain.dims().size(); ++i)
    (domain.dims()[i].reduced ? reduced : kept)
        .push_back({domain.dims()[i].extent, static_cast<int>(i)});
  // Neighbours in memory are neighbours in the lanes: the innermost dim is vectorised.
  kernel.lanes_reduced = !domain.dims().empty() && domain.dims().back().reduced;
  merge_loops(kernel, kept);
  merge_loops(kernel, reduced);
  std::vector<Loop>& with_lanes = kernel.lanes_reduced ? reduced : kept;
  Loop lane;
  if (!with_lanes.empty()) {
    lane = with_lanes.back();
    with_lanes.pop_back();
  }
  kernel.lanes = lane.extent;
  for (const Loop& loop : kept) kernel.outer.push_back(loop.extent);
  for (const Loop& loop : reduced) kernel.serial.push_back(loop.extent);
  edit_forms(kernel, [&](Form& form) {
    std::vector<int64_t> coefficients;
    for (const Loop& loop : kept)
      coefficients.push_back(form.coefficients[static_cast<size_t>(loop.dim)]);
    for (const Loop& loop : reduced)
      coefficients.push_back(form.coefficients[static_cast<size_t>(loop.dim)]);
    coefficients.push_back(lane.dim < 0 ? 0 : form.coefficients[static_cast<size_t>(lane.dim)]);
    for (size_t s = 0; s < kernel.symbols.size(); ++s)
      coefficients.push_back(form.coefficients[domain.dims().size() + s]);
    form.coefficients = std::move(coefficients);
  });
  forget_dtypes(kernel);
  return kernel;
}

}  // namespace fullbore::jit
