#pragma once
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "fullbore/device/codegen/llvm_headers.h"
#include "fullbore/device/codegen/scalar_emitter.h"
#include "fullbore/device/cpu/codegen/codegen_target.h"
#include "fullbore/device/kernel_ir/kernel_ir.h"
#include "fullbore/device/kernel_ir/loop_placement.h"

namespace fullbore::jit {

/// Writes one kernel as a function `void name(void** buffers, int64_t* parameters, int64_t begin,
/// int64_t end)` into a module. Code is straight: every value is a vector of `lanes` elements, every
/// loop is counted, ends of rows are masked, and nothing is read or written beyond a buffer.
class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const KernelIr& kernel, const CodegenTarget& target,
                const std::string& name);
  void emit();

 private:
  using Value = llvm::Value*;

  // An affine form at the current point: its parameters, and its value so far.
  struct FormCursor {
    Value offset = nullptr;
    std::vector<Value> coefficients;  // null where 0
    Value limit = nullptr;            // of predicates
    Value current = nullptr;
  };

  // --- structure (kernel_emitter.cpp)
  void emit_prologue();
  void emit_items();
  void emit_item(Value item);
  void emit_row(Value lane_begin, Value lane_end);
  void emit_row_walks(Value lane_begin, Value lane_end);
  void emit_columns(Value lane_begin, Value lane_end);
  void emit_column_group(Value lane);
  void emit_serial(size_t depth, const std::function<void()>& body);
  void emit_lanes(Value begin, Value end, const std::function<void(Value)>& body);
  void emit_loop(Value begin, Value end, int64_t step, const std::function<void(Value)>& body);
  void emit_element(int walk);
  void advance(size_t loop, Value index);  // adds coefficient * index to every form

  // --- values (kernel_emitter_values.cpp)
  void emit_uniform(Scope scope, int available);
  void emit_needed(Scope scope, int walk);
  void emit_instruction(size_t id);
  Value instruction_value(size_t id, int copy);
  Value scan_value(size_t id, int copy);
  Value value(int id, int copy) const;
  int replicas_of(Scope scope) const;
  Value identity(const Instruction& instruction) const;
  Value accumulator(size_t id, int copy);
  void reset_accumulators(int walk);
  void accumulate(int walk);
  void finish_reductions(int walk);
  Value combine(const Instruction& instruction, Value a, Value b);
  Value combine_lanes(const Instruction& instruction, Value vector);
  int unroll_factor(int walk) const;
  Value kept_pointer(size_t id, int copy);
  void keep(size_t id);
  void restore(size_t id);

  // --- memory (kernel_emitter_memory.cpp)
  Value load(const Access& access, DType dtype, int copy);
  Value reaches(const std::vector<Predicate>& predicates, int copy);  // i1, or null
  Value covers(const std::vector<Predicate>& predicates, int copy);   // i1, or null
  Value load_by_mask(llvm::Type* type, Value at, llvm::Align align, Value mask, Value whole);
  void prefetch(Value at);
  Value holds(const Predicate& predicate);
  Value load_strided(const Access& access, llvm::Type* storage, int copy, Value mask);
  void store(const Store& store, int copy, bool in_walk);
  Value inside(const std::vector<Predicate>& predicates, int copy);  // i1 vector, or null
  Value inside(const Predicate& predicate, int copy);
  Value lane_vector(const Form& form, int copy);  // the form in every lane, i64
  Value pointer(const Access& access, Value index);
  llvm::Type* storage_type(DType dtype) const;
  Value to_registers(Value stored, DType dtype);
  Value to_storage(Value value, DType dtype);
  llvm::Type* register_type(DType dtype) const;
  Value splat(Value scalar) const;
  Value merge_masks(Value a, Value b) const;

  const FormCursor& cursor(const Form& form) const { return forms_[form_index_.at(&form)]; }
  Value number(int64_t n) const {
    return llvm::ConstantInt::get(b_.getInt64Ty(), static_cast<uint64_t>(n), true);
  }
  Value iota() const;  // 0, 1, 2, ... in 32 bits
  Value parameter(int index);
  Value minimum(Value a, Value b);
  Value clamp(Value x, Value low, Value high);
  Value entry_alloca(llvm::Type* type);

  const KernelIr& kernel_;
  const CodegenTarget& target_;
  const LoopPlacement placement_;
  llvm::Module& module_;
  mutable llvm::IRBuilder<> b_;
  const int lanes_;
  ScalarEmitter scalars_;
  const bool raw_;  // only moves 16-bit floats: they stay bits
  int unroll_ = 1;  // vectors per iteration of the main loop
  int copies_ = 1;  // of the loop being emitted
  std::string name_;

  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  Value parameters_ = nullptr;
  std::vector<Value> buffers_;
  std::vector<Value> extents_;     // outer, then serial
  std::vector<FormCursor> forms_;  // in the order of for_each_form
  std::unordered_map<const Form*, size_t> form_index_;
  std::vector<std::vector<Value>> values_;        // per instruction, per copy
  std::vector<std::vector<Value>> accumulators_;  // allocas
  Value mask_ = nullptr;                          // of the lanes being emitted; null: all
  const bool has_long_predicates_;
  Value zero_slot_ = nullptr;  // a whole vector of any dtype
  Value lane_ = nullptr;       // first lane being emitted
  Value serial_ = nullptr;     // number of the serial loops' point, or null outside of them
};

}  // namespace fullbore::jit
