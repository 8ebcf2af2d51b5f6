#include "fullbore/device/kernel_ir/kernel_ir.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/ir/attributes.h"

namespace fullbore::jit {
namespace {

std::string form_text(const KernelIr& kernel, const Form& form) {
  std::string result = "[";
  for (size_t i = 0; i < form.coefficients.size(); ++i) {
    if (i > 0) result += ' ';
    if (is_parameter(kernel, form, static_cast<int>(i)))
      result += '*';
    else
      result += form.coefficients[i] == 0 ? '.' : '1';
  }
  return result + "]";
}

std::string predicates_text(const KernelIr& kernel, const std::vector<Predicate>& predicates) {
  std::string result;
  for (const Predicate& predicate : predicates) {
    result += " if " + form_text(kernel, predicate.form);
    if (predicate.divisor != 1) result += fmt::format("%{}", predicate.divisor);
  }
  return result;
}

std::string access_text(const KernelIr& kernel, const Access& access) {
  std::string result = fmt::format("b{}{}", access.buffer, form_text(kernel, access.address));
  if (access.divisor != 1) result += fmt::format("/{}", access.divisor);
  return result + predicates_text(kernel, access.predicates);
}

std::string instruction_text(const KernelIr& kernel, const Instruction& instruction) {
  using Kind = Instruction::Kind;
  const auto operands = [&] {
    std::string result;
    for (int operand : instruction.operands) result += fmt::format(" %{}", operand);
    return result;
  };
  switch (instruction.kind) {
    case Kind::constant: return "constant " + double_text(instruction.value);
    case Kind::index: return "index " + form_text(kernel, instruction.form);
    case Kind::inside: return "inside" + predicates_text(kernel, instruction.access.predicates);
    case Kind::load: return "load " + access_text(kernel, instruction.access);
    case Kind::scalar: return std::string(scalar_op_name(instruction.op)) + operands();
    case Kind::reduce: return fmt::format("reduce {}", scalar_op_name(instruction.op)) + operands();
    case Kind::scan: return (instruction.exclusive ? "scan exclusive" : "scan") + operands();
  }
  return "";
}

int64_t product(const std::vector<int64_t>& extents) {
  int64_t result = 1;
  for (int64_t extent : extents) result *= extent;
  return result;
}

}  // namespace

int64_t KernelIr::rows() const { return product(outer); }
int64_t KernelIr::points() const { return rows() * product(serial) * lanes; }

bool sums_along_lanes(const KernelIr& kernel) {
  return !kernel.columns() && std::ranges::any_of(kernel.instructions, [](const Instruction& each) {
    return (each.kind == Instruction::Kind::reduce || each.kind == Instruction::Kind::scan) &&
           is_floating(each.dtype);
  });
}

bool is_parameter(const KernelIr& kernel, const Form& form, int i) {
  const int64_t coefficient = form.coefficients[static_cast<size_t>(i)];
  return coefficient != 0 && !(i == kernel.lane_loop() && coefficient == 1);
}

int form_parameters(const KernelIr& kernel, const Form& form) {
  int count = 1;
  for (int i = 0; i < static_cast<int>(form.coefficients.size()); ++i)
    count += is_parameter(kernel, form, i) ? 1 : 0;
  return count;
}

bool has_long_predicates(const KernelIr& kernel) {
  // Vectors reach beyond the last lane, and by no more than this leaves.
  constexpr int64_t kMost = int64_t{1} << 30;
  std::vector<int64_t> largest;  // index of each loop, start of each symbol
  for (const std::vector<int64_t>* loops : {&kernel.outer, &kernel.serial})
    for (int64_t extent : *loops) largest.push_back(extent - 1);
  largest.push_back(kernel.lanes - 1);
  for (const Symbol& symbol : kernel.symbols) largest.push_back(symbol.limit);
  bool found = false;
  for_each_form(kernel, [&](const Form& form, const Predicate* predicate) {
    if (predicate == nullptr) return;
    int64_t low = form.offset, high = form.offset;
    for (size_t i = 0; i < form.coefficients.size(); ++i)
      (form.coefficients[i] < 0 ? low : high) += form.coefficients[i] * largest[i];
    found = found || low < -kMost || high > kMost || predicate->limit > kMost;
  });
  return found;
}

std::string text(const KernelIr& kernel) {
  std::string result =
      fmt::format("kernel outer={} serial={} lanes={}{}{}\n", kernel.outer.size(),
                  kernel.serial.size(), kernel.lanes_reduced ? "reduced" : "kept",
                  has_long_predicates(kernel) ? " long" : "", kernel.one_order ? " one order" : "");
  for (size_t i = 0; i < kernel.buffers.size(); ++i)
    result += fmt::format("b{} {}{}\n", i, dtype_name(kernel.buffers[i].dtype),
                          kernel.buffers[i].written ? " written" : "");
  for (size_t i = 0; i < kernel.symbols.size(); ++i)
    result += fmt::format("s{} = b{}\n", i, kernel.symbols[i].buffer);
  for (size_t i = 0; i < kernel.instructions.size(); ++i)
    result += fmt::format("%{} = {} : {}\n", i, instruction_text(kernel, kernel.instructions[i]),
                          dtype_name(kernel.instructions[i].dtype));
  for (const Store& store : kernel.stores)
    result += fmt::format("store {} %{}\n", access_text(kernel, store.access), store.value);
  return result;
}

std::vector<int64_t> parameters(const KernelIr& kernel, const Partition& partition) {
  std::vector<int64_t> result{kernel.rows(), partition.rows_per_item, partition.lanes_per_item,
                              partition.lane_blocks, kernel.lanes};
  result.insert(result.end(), kernel.outer.begin(), kernel.outer.end());
  result.insert(result.end(), kernel.serial.begin(), kernel.serial.end());
  for (const Symbol& symbol : kernel.symbols) result.push_back(symbol.limit);
  for_each_form(kernel, [&](const Form& form, const Predicate* predicate) {
    result.push_back(form.offset);
    for (int i = 0; i < static_cast<int>(form.coefficients.size()); ++i)
      if (is_parameter(kernel, form, i))
        result.push_back(form.coefficients[static_cast<size_t>(i)]);
    if (predicate != nullptr) result.push_back(predicate->limit);
  });
  return result;
}

}  // namespace fullbore::jit
