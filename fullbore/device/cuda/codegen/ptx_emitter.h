#pragma once
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "fullbore/device/codegen/llvm_headers.h"
#include "fullbore/device/codegen/scalar_emitter.h"
#include "fullbore/device/cuda/codegen/thread_mapping.h"
#include "fullbore/device/kernel_ir/kernel_ir.h"
#include "fullbore/device/kernel_ir/loop_placement.h"

namespace fullbore::cuda {

/// Writes one kernel as an entry of a module for LLVM's NVPTX target: `name(buffers..., partial results if it splits,
/// parameters...)`, the addresses as pointers to global memory, the numbers of parameters() as integers of the width that
/// indices have. Its chunk is rows_per_item, and the number of them lanes_per_item, of ParameterLayout. Every value is a
/// scalar of one thread; a value that is evaluated at several points side by side has a copy for each.
class PtxEmitter {
 public:
  /// The entry `combines` of a kernel that splits: a thread for each result.
  PtxEmitter(llvm::Module& module, const jit::KernelIr& kernel, const jit::LoopPlacement& placement,
             const ThreadMapping& mapping, std::string name, bool combines);
  void emit();

 private:
  using Value = llvm::Value*;
  using Body = std::function<void(Value)>;

  // An affine form: its parameters.
  struct FormParameters {
    Value offset = nullptr;
    std::vector<Value> coefficients;  // null where 0
    Value limit = nullptr;            // of predicates
  };
  // The values of all forms at a point, in the order of for_each_form.
  using Point = std::vector<Value>;

  // --- structure (ptx_emitter.cpp)
  void emit_prologue();
  /// Of a block: ptxas gives each as many registers as all may have.
  void bound_threads(uint32_t most);
  void enter_row(Value row);
  void leave_unless(Value condition);
  void emit_loop(Value begin, Value end, Value step, const Body& body);
  void emit_if(Value condition, const std::function<void()>& body);
  Point moved(const Point& point, size_t loop, Value index) const;
  Point at_reduced(const Point& row, Value index) const;
  void set_points(const std::function<Point(int)>& of_copy, int copies);

  // --- which thread walks over which points (ptx_emitter_loops.cpp)
  void emit_map();
  /// Of a reduction that several blocks share: the block's own row or column, and where its chunk begins and ends.
  void cut_to_chunk(Value& block, Value& begin, Value& end);
  void emit_rows();
  void emit_columns();
  void emit_combination();
  void emit_walks(const std::function<void(int)>& points, Value writes);
  void emit_row_points(int walk, Value begin, Value end, Value member, Value threads);
  void emit_column_points(int walk, Value begin, Value end, Value member, Value threads);
  void emit_element(int walk);
  void emit_row_stores(Value condition);

  // --- values (ptx_emitter_values.cpp)
  void emit_uniform(jit::Scope scope, int available);
  void emit_needed(int walk);
  void emit_instruction(size_t id, int copies);
  Value instruction_value(size_t id, int copy);
  Value value(int id, int copy) const;
  Value identity(const jit::Instruction& instruction) const;
  Value accumulator(size_t id, int copy);
  void reset_accumulators(int walk);
  void accumulate(int walk);
  Value combine(const jit::Instruction& instruction, Value a, Value b);

  // --- what threads do together (ptx_emitter_threads.cpp)
  void finish_reductions(int walk);
  Value combine_copies(size_t id);
  Value combine_threads(size_t id, Value own);
  Value combine_warps(size_t id, Value own);
  Value combine_column(size_t id, Value own);
  Value scan_value(size_t id, int copy);
  Value shuffled(llvm::Intrinsic::ID kind, Value x, Value by, Value clamp);
  /// Of so many lanes, a power of two: each gets what all of them have.
  Value combine_lanes(const jit::Instruction& instruction, Value own, int lanes);
  Value group_mask() const;
  /// Warps of a block at most, which each have a slot of shared memory.
  uint32_t most_warps() const {
    return static_cast<uint32_t>(mapping_.by_large_blocks ? kMostRowThreads : kMostThreads) / 32;
  }
  void write_partial(size_t id, Value result);
  Value partial_pointer(size_t id, Value chunk, Value result);
  Value to_word(Value x) const;  // 32 or 64 bits
  Value from_word(Value word, llvm::Type* type) const;
  void barrier();

  // --- memory (ptx_emitter_memory.cpp)
  Value load(const jit::Access& access, DType dtype, int copy);
  std::vector<Value> load_wide(const jit::Access& access, DType dtype);
  void store(const jit::Store& store, int copy);
  void store_all(const jit::Store& store);
  bool is_wide(const jit::Access& access) const;
  Value inside(const std::vector<jit::Predicate>& predicates, int copy);  // i1, or null
  Value element_pointer(const jit::Access& access, int copy);
  llvm::Type* storage_type(DType dtype) const;
  llvm::Type* register_type(DType dtype) const;
  Value to_registers(Value stored, DType dtype);
  Value to_storage(Value value, DType dtype);
  Value loaded_if(Value condition, const std::function<Value()>& loads);

  size_t form_of(const jit::Form& form) const { return form_index_.at(&form); }
  Value form_value(const jit::Form& form, int copy) const {
    return points_[points_.size() == 1 ? 0 : static_cast<size_t>(copy)][form_of(form)];
  }
  Value number(int64_t n) const {
    return llvm::ConstantInt::get(index_type_, static_cast<uint64_t>(n), true);
  }
  Value parameter(int index) const { return numbers_[static_cast<size_t>(index)]; }
  Value read_register(llvm::Intrinsic::ID id) const;  // 32 bits
  Value special(llvm::Intrinsic::ID id) const;        // the same as an index
  Value minimum(Value a, Value b) const;
  Value entry_alloca(llvm::Type* type);
  Value shared_slots(size_t id, llvm::Type* type, uint64_t count);

  const jit::KernelIr& kernel_;
  const jit::LoopPlacement& placement_;
  const ThreadMapping& mapping_;
  llvm::Module& module_;
  mutable llvm::IRBuilder<> b_;
  jit::ScalarEmitter scalars_;
  llvm::Type* const index_type_;
  const bool raw_;  // only moves 16-bit floats: they stay bits
  const bool combines_;
  std::string name_;
  int copies_ = 1;           // of the points being evaluated
  bool neighbours_ = false;  // are they neighbours?

  llvm::Function* function_ = nullptr;
  llvm::BasicBlock* entry_ = nullptr;
  llvm::BasicBlock* done_ = nullptr;
  std::vector<Value> buffers_;
  Value partials_ = nullptr;
  std::vector<Value> numbers_;  // as parameters()
  std::vector<Value> extents_;  // outer, then serial
  std::vector<FormParameters> forms_;
  std::unordered_map<const jit::Form*, size_t> form_index_;
  std::map<const jit::Access*, bool> aligned_;
  Point row_;                  // of the row, and in column kernels the lane
  std::vector<Point> points_;  // being evaluated, one a copy
  Value mask_ = nullptr;       // is the point one of the row's? null: it is
  Value aligned_buffers_ = nullptr;
  Value chunk_ = nullptr;                         // that this block reduces
  Value result_ = nullptr;                        // number of the row, or of its lane
  std::vector<std::vector<Value>> values_;        // per instruction, per copy
  std::vector<std::vector<Value>> accumulators_;  // allocas
};

}  // namespace fullbore::cuda
