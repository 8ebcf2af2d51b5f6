#include "fullbore/base/check.h"
#include "fullbore/device/cuda/codegen/ptx_emitter.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <llvm/IR/IntrinsicsNVPTX.h>
#pragma GCC diagnostic pop

// Threads combine in one order, whatever comes first: copies, then a warp by halves, then warps by halves.
namespace fullbore::cuda {

using jit::Instruction;
using Kind = Instruction::Kind;

namespace {

constexpr int kWarp = 32;
constexpr uint32_t kLastLane = kWarp - 1;
constexpr unsigned kShared = 3;  // address space of NVPTX
const llvm::ArrayRef<llvm::Type*> kNoTypes;

}  // namespace

llvm::Value* PtxEmitter::to_word(Value x) const {
  llvm::Type* type = x->getType();
  if (type->isDoubleTy()) return b_.CreateBitCast(x, b_.getInt64Ty());
  if (type->isFloatTy()) return b_.CreateBitCast(x, b_.getInt32Ty());
  return type->getIntegerBitWidth() < 32 ? b_.CreateZExt(x, b_.getInt32Ty()) : x;
}

llvm::Value* PtxEmitter::from_word(Value word, llvm::Type* type) const {
  return type->isFloatingPointTy() ? b_.CreateBitCast(word, type) : b_.CreateTrunc(word, type);
}

void PtxEmitter::barrier() {
#if LLVM_VERSION_MAJOR >= 21
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier_cta_sync_aligned_all, kNoTypes,
                     {b_.getInt32(0)});
#else
  b_.CreateIntrinsic(llvm::Intrinsic::nvvm_barrier0, kNoTypes, {});
#endif
}

// Of the lanes that share a row with this one.
llvm::Value* PtxEmitter::group_mask() const {
  if (combines_ || mapping_.group == 0 || mapping_.group == kWarp) return b_.getInt32(~0U);
  const auto group = static_cast<uint32_t>(mapping_.group);
  Value thread = read_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value first = b_.CreateAnd(thread, b_.getInt32(kLastLane & ~(group - 1)));
  return b_.CreateShl(b_.getInt32((1U << group) - 1), first);
}

llvm::Value* PtxEmitter::shuffled(llvm::Intrinsic::ID kind, Value x, Value by, Value clamp) {
  Value word = to_word(x);
  const auto one = [&](Value bits) {
    return b_.CreateIntrinsic(kind, kNoTypes, {group_mask(), bits, by, clamp});
  };
  if (word->getType()->isIntegerTy(32)) return from_word(one(word), x->getType());
  Value low = one(b_.CreateTrunc(word, b_.getInt32Ty()));
  Value high = one(b_.CreateTrunc(b_.CreateLShr(word, 32), b_.getInt32Ty()));
  Value both = b_.CreateOr(b_.CreateShl(b_.CreateZExt(high, b_.getInt64Ty()), 32),
                           b_.CreateZExt(low, b_.getInt64Ty()));
  return from_word(both, x->getType());
}

void PtxEmitter::finish_reductions(int walk) {
  std::vector<size_t> ids;
  for (size_t id = 0; id < kernel_.instructions.size(); ++id)
    if (kernel_.instructions[id].kind == Kind::reduce &&
        placement_.needed[static_cast<size_t>(walk)][id])
      ids.push_back(id);
  std::vector<Value> own;
  for (size_t id : ids) own.push_back(combine_threads(id, combine_copies(id)));
  // One barrier for all of them: each has shared memory of its own, written once.
  const bool is_column = mapping_.kind == ThreadMapping::Kind::columns;
  const bool meets = is_column ? mapping_.group > 1 : mapping_.group == 0;
  if (meets && !ids.empty()) barrier();
  for (size_t i = 0; i < ids.size(); ++i) {
    if (meets) own[i] = is_column ? combine_column(ids[i], own[i]) : combine_warps(ids[i], own[i]);
    values_[ids[i]] = {own[i]};
  }
}

llvm::Value* PtxEmitter::combine_copies(size_t id) {
  const Instruction& instruction = kernel_.instructions[id];
  std::vector<Value> parts;
  for (int copy = 0; copy < mapping_.copies; ++copy)
    parts.push_back(b_.CreateLoad(scalars_.vector_type(instruction.dtype), accumulator(id, copy)));
  for (size_t half = parts.size() / 2; half >= 1; half /= 2)
    for (size_t i = 0; i < half; ++i) parts[i] = combine(instruction, parts[i], parts[i + half]);
  return parts[0];
}

llvm::Value* PtxEmitter::shared_slots(size_t id, llvm::Type* type, uint64_t count) {
  const std::string name = "shared_" + std::to_string(id);
  if (llvm::GlobalVariable* known = module_.getNamedGlobal(name)) return known;
  auto* array = llvm::ArrayType::get(type, count);
  auto* made = new llvm::GlobalVariable(module_, array, false, llvm::GlobalValue::InternalLinkage,
                                        llvm::UndefValue::get(array), name, nullptr,
                                        llvm::GlobalValue::NotThreadLocal, kShared);
  made->setAlignment(llvm::Align(8));
  return made;
}

// Within the group of a row; of a block or a column, up to what goes into shared memory.
llvm::Value* PtxEmitter::combine_threads(size_t id, Value own) {
  const Instruction& instruction = kernel_.instructions[id];
  llvm::Type* i32 = b_.getInt32Ty();
  if (mapping_.kind == ThreadMapping::Kind::columns) {
    if (mapping_.group == 1) return own;
    Value word = to_word(own);
    Value slots = shared_slots(id, word->getType(), uint64_t{kColumnThreads} * kColumnLanes);
    Value x = read_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
    Value y = read_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y);
    Value at = b_.CreateAdd(b_.CreateMul(y, b_.getInt32(kColumnLanes)), x);
    b_.CreateStore(word, b_.CreateGEP(word->getType(), slots, at));
    return own;
  }
  const int group = mapping_.group == 0 ? kWarp : mapping_.group;
  own = combine_lanes(instruction, own, group);
  if (mapping_.group > 0) return own;
  Value word = to_word(own);
  Value slots = shared_slots(id, word->getType(), most_warps());
  Value thread = read_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  emit_if(b_.CreateICmpEQ(b_.CreateAnd(thread, b_.getInt32(kLastLane)), b_.getInt32(0)), [&] {
    Value warp = b_.CreateLShr(thread, llvm::ConstantInt::get(i32, 5));
    b_.CreateStore(word, b_.CreateGEP(word->getType(), slots, warp));
  });
  return own;
}

// Behind the barrier: each warp combines what all have written.
llvm::Value* PtxEmitter::combine_warps(size_t id, Value own) {
  const Instruction& instruction = kernel_.instructions[id];
  llvm::Type* word = to_word(own)->getType();
  Value thread = read_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value threads = read_register(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  Value slot = b_.CreateAnd(thread, b_.getInt32(most_warps() - 1));
  Value is_warp = b_.CreateICmpULT(slot, b_.CreateLShr(threads, 5));
  Value at = b_.CreateSelect(is_warp, slot, b_.getInt32(0));
  Value read = b_.CreateLoad(word, b_.CreateGEP(word, shared_slots(id, word, most_warps()), at));
  Value sum = b_.CreateSelect(is_warp, from_word(read, own->getType()), identity(instruction));
  return combine_lanes(instruction, sum, static_cast<int>(most_warps()));
}

llvm::Value* PtxEmitter::combine_lanes(const Instruction& instruction, Value own, int lanes) {
  for (int distance = lanes / 2; distance >= 1; distance /= 2)
    own = combine(instruction, own,
                  shuffled(llvm::Intrinsic::nvvm_shfl_sync_bfly_i32, own,
                           b_.getInt32(static_cast<uint32_t>(distance)), b_.getInt32(kLastLane)));
  return own;
}

llvm::Value* PtxEmitter::combine_column(size_t id, Value own) {
  const Instruction& instruction = kernel_.instructions[id];
  llvm::Type* word = to_word(own)->getType();
  Value slots = shared_slots(id, word, uint64_t{kColumnThreads} * kColumnLanes);
  Value x = read_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value sum = nullptr;
  for (int y = 0; y < kColumnThreads; ++y) {
    Value at = b_.CreateAdd(x, b_.getInt32(static_cast<uint32_t>(y * kColumnLanes)));
    Value part = from_word(b_.CreateLoad(word, b_.CreateGEP(word, slots, at)), own->getType());
    sum = sum == nullptr ? part : combine(instruction, sum, part);
  }
  return sum;
}

// Columns: a running sum in the thread. Rows: a prefix sum over the warp by doubling, on top of what came before; of a block,
// on top of the warps before as well, whose sums each warp adds up for itself.
llvm::Value* PtxEmitter::scan_value(size_t id, int copy) {
  const Instruction& instruction = kernel_.instructions[id];
  Value slot = accumulator(id, 0);
  llvm::Type* type = scalars_.vector_type(instruction.dtype);
  const auto add = [&](Value a, Value b) {
    return is_floating(instruction.dtype) ? b_.CreateFAdd(a, b) : b_.CreateAdd(a, b);
  };
  Value before = b_.CreateLoad(type, slot);
  Value x = value(instruction.operands[0], copy);
  if (mapping_.kind == ThreadMapping::Kind::columns) {
    Value after = add(before, x);
    b_.CreateStore(after, slot);
    return instruction.exclusive ? before : after;
  }
  FB_CHECK(mapping_.group == kWarp || mapping_.group == 0);
  Value zero = llvm::Constant::getNullValue(type);
  Value lane = b_.CreateAnd(read_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x),
                            b_.getInt32(kLastLane));
  const auto from_below = [&](Value v, uint32_t distance) {  // 0 where there is no such lane
    Value moved =
        shuffled(llvm::Intrinsic::nvvm_shfl_sync_up_i32, v, b_.getInt32(distance), b_.getInt32(0));
    return b_.CreateSelect(b_.CreateICmpUGE(lane, b_.getInt32(distance)), moved, zero);
  };
  const auto over_warp = [&](Value v) {
    for (uint32_t distance = 1; distance < kWarp; distance *= 2)
      v = add(v, from_below(v, distance));
    return v;
  };
  const auto of_lane = [&](Value v, Value which) {
    return shuffled(llvm::Intrinsic::nvvm_shfl_sync_idx_i32, v, which, b_.getInt32(kLastLane));
  };
  Value prefix = over_warp(mask_ == nullptr ? x : b_.CreateSelect(mask_, x, zero));
  if (mapping_.group == kWarp) {
    b_.CreateStore(of_lane(add(before, prefix), b_.getInt32(kLastLane)), slot);
  } else {
    Value word = to_word(prefix);
    Value slots = shared_slots(id, word->getType(), kWarp);
    Value thread = read_register(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
    Value warp = b_.CreateLShr(thread, 5);
    emit_if(b_.CreateICmpEQ(b_.CreateAnd(thread, b_.getInt32(kLastLane)), b_.getInt32(kLastLane)),
            [&] { b_.CreateStore(word, b_.CreateGEP(word->getType(), slots, warp)); });
    barrier();
    Value warps = b_.CreateLShr(read_register(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x), 5);
    Value is_warp = b_.CreateICmpULT(lane, warps);
    Value at = b_.CreateSelect(is_warp, lane, b_.getInt32(0));
    Value read = b_.CreateLoad(word->getType(), b_.CreateGEP(word->getType(), slots, at));
    barrier();  // before the next step writes there
    Value sums = over_warp(b_.CreateSelect(is_warp, from_word(read, type), zero));
    b_.CreateStore(add(before, of_lane(sums, b_.getInt32(kLastLane))), slot);
    before = add(before, of_lane(from_below(sums, 1), warp));
  }
  return instruction.exclusive ? add(before, from_below(prefix, 1)) : add(before, prefix);
}

// Eight bytes each: reduction, then chunk, then result.
llvm::Value* PtxEmitter::partial_pointer(size_t id, Value chunk, Value result) {
  llvm::Type* i64 = b_.getInt64Ty();
  int64_t ordinal = 0;
  for (size_t each : reductions(kernel_))
    if (each < id) ++ordinal;
  const auto wide = [&](Value x) { return b_.CreateSExt(x, i64); };
  Value results = wide(parameter(jit::ParameterLayout::kRows));
  if (kernel_.columns())
    results = b_.CreateMul(results, wide(parameter(jit::ParameterLayout::kLanes)));
  Value at = b_.CreateMul(wide(parameter(jit::ParameterLayout::kLanesPerItem)),
                          b_.getInt64(static_cast<uint64_t>(ordinal)));
  at = b_.CreateMul(b_.CreateAdd(at, wide(chunk)), results);
  return b_.CreateGEP(i64, partials_, b_.CreateAdd(at, wide(result)));
}

void PtxEmitter::write_partial(size_t id, Value result) {
  b_.CreateStore(to_word(result), partial_pointer(id, chunk_, result_));
}

}  // namespace fullbore::cuda
