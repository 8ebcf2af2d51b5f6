#include <algorithm>

#include "fullbore/device/cuda/codegen/ptx_emitter.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wconversion"
#include <llvm/IR/IntrinsicsNVPTX.h>
#pragma GCC diagnostic pop

// Which thread walks over which points.
namespace fullbore::cuda {

using jit::Scope;
using Layout = jit::ParameterLayout;

// Blocks go over lanes, then rows; block.y rows each.
void PtxEmitter::emit_map() {
  Value block = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  Value thread = special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value across = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  Value lane_blocks = parameter(Layout::kLaneBlocks);
  Value row_block = b_.CreateUDiv(block, lane_blocks);
  Value lane_block = b_.CreateSub(block, b_.CreateMul(row_block, lane_blocks));
  Value row =
      b_.CreateAdd(b_.CreateMul(row_block, special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_y)),
                   special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y));
  leave_unless(b_.CreateICmpSLT(row, parameter(Layout::kRows)));
  enter_row(row);
  emit_uniform(Scope::row, 0);

  const int copies = mapping_.copies;
  const auto lane_loop = static_cast<size_t>(kernel_.lane_loop());
  Value lanes = parameter(Layout::kLanes);
  Value first = b_.CreateMul(b_.CreateMul(lane_block, across), number(copies));
  Value step = across;
  if (mapping_.wide) {
    first = b_.CreateAdd(first, b_.CreateMul(thread, number(copies)));
    step = number(1);
  } else {
    first = b_.CreateAdd(first, thread);
  }
  const auto evaluate = [&](Value lane, int count) {
    set_points(
        [&](int copy) {
          return moved(row_, lane_loop, b_.CreateAdd(lane, b_.CreateMul(step, number(copy))));
        },
        count);
    if (placement_.walks > 0) emit_element(placement_.walks - 1);
    points_ = {row_};
    copies_ = 1;
    emit_row_stores(b_.CreateICmpEQ(lane, number(0)));
  };
  Value end = minimum(b_.CreateAdd(first, b_.CreateMul(step, number(copies))), lanes);
  if (copies == 1) {
    emit_if(b_.CreateICmpSLT(first, lanes), [&] { evaluate(first, 1); });
    return;
  }
  Value whole =
      b_.CreateICmpSLT(b_.CreateAdd(first, b_.CreateMul(step, number(copies - 1))), lanes);
  if (mapping_.wide) whole = b_.CreateAnd(whole, aligned_buffers_);
  auto* all = llvm::BasicBlock::Create(module_.getContext(), "all", function_);
  auto* some = llvm::BasicBlock::Create(module_.getContext(), "some", function_);
  b_.CreateCondBr(whole, all, some);
  b_.SetInsertPoint(all);
  neighbours_ = mapping_.wide;
  evaluate(first, copies);
  neighbours_ = false;
  b_.CreateBr(done_);
  b_.SetInsertPoint(some);
  emit_loop(first, end, step, [&](Value lane) { evaluate(lane, 1); });
}

// A walk for each of the placement's: its points, then what threads have reduced, in all of them. `writes`: in the
// thread that stores the row's results.
void PtxEmitter::emit_walks(const std::function<void(int)>& points, Value writes) {
  emit_uniform(Scope::row, 0);
  for (int walk = 0; walk < placement_.walks; ++walk) {
    reset_accumulators(walk);
    points(walk);
    points_ = {row_};
    copies_ = 1;
    finish_reductions(walk);
    if (mapping_.splits) {
      emit_if(writes, [&] {
        for (size_t id : reductions(kernel_)) write_partial(id, value(static_cast<int>(id), 0));
      });
      return;
    }
    emit_uniform(Scope::row, walk + 1);
  }
  emit_row_stores(writes);
}

void PtxEmitter::emit_row_stores(Value condition) {
  if (std::all_of(placement_.in_walk.begin(), placement_.in_walk.end(), [](bool in) { return in; }))
    return;
  emit_if(condition, [&] {
    for (size_t s = 0; s < kernel_.stores.size(); ++s)
      if (!placement_.in_walk[s]) store(kernel_.stores[s], 0);
  });
}

void PtxEmitter::cut_to_chunk(Value& block, Value& begin, Value& end) {
  Value chunks = parameter(Layout::kLanesPerItem);
  Value group = b_.CreateUDiv(block, chunks);
  chunk_ = b_.CreateSub(block, b_.CreateMul(group, chunks));
  block = group;
  begin = b_.CreateMul(chunk_, parameter(Layout::kRowsPerItem));
  end = minimum(b_.CreateAdd(begin, parameter(Layout::kRowsPerItem)), end);
}

void PtxEmitter::emit_rows() {
  Value block = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  Value thread = special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value threads = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  Value begin = number(0);
  Value end = kernel_.serial.empty() ? parameter(Layout::kLanes) : nullptr;
  if (end == nullptr) {
    end = parameter(Layout::kLanes);
    for (size_t i = 0; i < kernel_.serial.size(); ++i)
      end = b_.CreateMul(end, extents_[kernel_.outer.size() + i]);
  }
  if (mapping_.splits) cut_to_chunk(block, begin, end);
  Value row = block, member = thread;
  if (mapping_.group > 0) {
    Value group = number(mapping_.group);
    row = b_.CreateAdd(b_.CreateMul(block, b_.CreateUDiv(threads, group)),
                       b_.CreateUDiv(thread, group));
    member = b_.CreateURem(thread, group);
    threads = group;
    leave_unless(b_.CreateICmpSLT(row, parameter(Layout::kRows)));
  }
  result_ = row;
  enter_row(row);
  emit_walks([&](int walk) { emit_row_points(walk, begin, end, member, threads); },
             b_.CreateICmpEQ(member, number(0)));
}

// Whole groups of `copies` points, then single ones. The same thread has a point in every walk.
void PtxEmitter::emit_row_points(int walk, Value begin, Value end, Value member, Value threads) {
  if (mapping_.scans) {
    // All threads of the warp, or of the block, come to each step. Several at once have all of their points.
    Value step = b_.CreateMul(threads, number(mapping_.copies));
    Value whole = b_.CreateMul(b_.CreateUDiv(b_.CreateSub(end, begin), step), step);
    Value rest = mapping_.copies > 1 ? b_.CreateAdd(begin, whole) : begin;
    if (mapping_.copies > 1)
      emit_loop(begin, rest, step, [&](Value first) {
        Value index = b_.CreateAdd(first, member);
        set_points(
            [&](int copy) {
              return at_reduced(row_, b_.CreateAdd(index, b_.CreateMul(threads, number(copy))));
            },
            mapping_.copies);
        emit_element(walk);
      });
    emit_loop(rest, end, threads, [&](Value first) {
      Value index = b_.CreateAdd(first, member);
      mask_ = b_.CreateICmpSLT(index, end);
      set_points([&](int) { return at_reduced(row_, index); }, 1);
      emit_element(walk);
      mask_ = nullptr;
    });
    return;
  }
  const int copies = mapping_.copies;
  Value tail = begin;
  if (copies > 1) {
    Value step = b_.CreateMul(threads, number(copies));
    Value left = b_.CreateSub(end, begin);
    Value grain = mapping_.wide ? number(copies) : step;
    Value whole = b_.CreateMul(b_.CreateUDiv(left, grain), grain);
    if (mapping_.wide) whole = b_.CreateSelect(aligned_buffers_, whole, number(0));
    tail = b_.CreateAdd(begin, whole);
    Value first =
        b_.CreateAdd(begin, mapping_.wide ? b_.CreateMul(member, number(copies)) : member);
    neighbours_ = mapping_.wide;
    emit_loop(first, tail, step, [&](Value index) {
      Point of_first;
      set_points(
          [&](int copy) {
            if (copy == 0) return of_first = at_reduced(row_, index);
            if (neighbours_)
              return moved(of_first, static_cast<size_t>(kernel_.lane_loop()), number(copy));
            return at_reduced(row_, b_.CreateAdd(index, b_.CreateMul(threads, number(copy))));
          },
          copies);
      emit_element(walk);
    });
    neighbours_ = false;
  }
  emit_loop(b_.CreateAdd(tail, member), end, threads, [&](Value index) {
    set_points([&](int) { return at_reduced(row_, index); }, 1);
    emit_element(walk);
  });
}

// Blocks go over chunks, then lanes, then rows. Threads beyond the last lane reduce nothing.
void PtxEmitter::emit_columns() {
  Value block = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x);
  Value thread = special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x);
  Value across = special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x);
  Value member = special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_y);
  Value begin = number(0), end = number(1);
  for (size_t i = 0; i < kernel_.serial.size(); ++i)
    end = b_.CreateMul(end, extents_[kernel_.outer.size() + i]);
  if (mapping_.splits) cut_to_chunk(block, begin, end);
  Value lane_blocks = parameter(Layout::kLaneBlocks), lanes = parameter(Layout::kLanes);
  Value row = b_.CreateUDiv(block, lane_blocks);
  Value lane_block = b_.CreateSub(block, b_.CreateMul(row, lane_blocks));
  Value lane = b_.CreateAdd(b_.CreateMul(lane_block, across), thread);
  Value is_lane = b_.CreateICmpSLT(lane, lanes);
  Value writes = b_.CreateAnd(is_lane, b_.CreateICmpEQ(member, number(0)));
  if (mapping_.group == 1) {
    leave_unless(is_lane);
  } else {
    // They come to the barriers, with the last lane's values.
    lane = minimum(lane, b_.CreateSub(lanes, number(1)));
    end = b_.CreateSelect(is_lane, end, begin);
  }
  result_ = b_.CreateAdd(b_.CreateMul(row, lanes), lane);
  enter_row(row);
  row_ = moved(row_, static_cast<size_t>(kernel_.lane_loop()), lane);
  points_ = {row_};
  emit_walks(
      [&](int walk) { emit_column_points(walk, begin, end, member, number(mapping_.group)); },
      writes);
}

void PtxEmitter::emit_column_points(int walk, Value begin, Value end, Value member, Value threads) {
  const int copies = mapping_.copies;
  Value tail = begin;
  if (copies > 1) {
    Value step = number(int64_t{mapping_.group} * copies);
    Value whole = b_.CreateMul(b_.CreateUDiv(b_.CreateSub(end, begin), step), step);
    tail = b_.CreateAdd(begin, whole);
    emit_loop(b_.CreateAdd(begin, member), tail, step, [&](Value index) {
      set_points(
          [&](int copy) {
            return at_reduced(row_, b_.CreateAdd(index, b_.CreateMul(threads, number(copy))));
          },
          copies);
      emit_element(walk);
    });
  }
  emit_loop(b_.CreateAdd(tail, member), end, threads, [&](Value index) {
    set_points([&](int) { return at_reduced(row_, index); }, 1);
    emit_element(walk);
  });
}

// What chunks have reduced; then what the row does with it.
void PtxEmitter::emit_combination() {
  constexpr int64_t kWarp = 32;
  Value first_chunk = number(0), next_chunk = number(1), writes = b_.getTrue();
  Value thread = b_.CreateAdd(b_.CreateMul(special(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x),
                                           special(llvm::Intrinsic::nvvm_read_ptx_sreg_ntid_x)),
                              special(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x));
  if (mapping_.combines_by_warps) {
    first_chunk = b_.CreateURem(thread, number(kWarp));
    next_chunk = number(kWarp);
    writes = b_.CreateICmpEQ(first_chunk, number(0));
    thread = b_.CreateUDiv(thread, number(kWarp));  // of results from here on
  }
  Value row = thread, results = parameter(Layout::kRows);
  Value lanes = parameter(Layout::kLanes);
  if (kernel_.columns()) {
    results = b_.CreateMul(results, lanes);
    row = b_.CreateUDiv(thread, lanes);
  }
  leave_unless(b_.CreateICmpSLT(thread, results));
  result_ = thread;
  enter_row(row);
  if (kernel_.columns())
    row_ = moved(row_, static_cast<size_t>(kernel_.lane_loop()),
                 b_.CreateSub(thread, b_.CreateMul(row, lanes)));
  points_ = {row_};
  emit_uniform(Scope::row, 0);
  reset_accumulators(0);
  const std::vector<size_t> ids = reductions(kernel_);
  emit_loop(first_chunk, parameter(Layout::kLanesPerItem), next_chunk, [&](Value chunk) {
    for (size_t id : ids) {
      llvm::Type* type = scalars_.vector_type(kernel_.instructions[id].dtype);
      llvm::Type* word = to_word(llvm::PoisonValue::get(type))->getType();
      Value part = from_word(b_.CreateLoad(word, partial_pointer(id, chunk, result_)), type);
      Value sum = b_.CreateLoad(type, accumulator(id, 0));
      b_.CreateStore(combine(kernel_.instructions[id], sum, part), accumulator(id, 0));
    }
  });
  for (size_t id : ids) {
    const jit::Instruction& instruction = kernel_.instructions[id];
    Value own = b_.CreateLoad(scalars_.vector_type(instruction.dtype), accumulator(id, 0));
    values_[id] = {mapping_.combines_by_warps ? combine_lanes(instruction, own, kWarp) : own};
  }
  emit_uniform(Scope::row, 1);
  emit_row_stores(writes);
}

void PtxEmitter::emit_element(int walk) {
  emit_needed(walk);
  accumulate(walk);
  if (walk != placement_.walks - 1) return;
  for (size_t s = 0; s < kernel_.stores.size(); ++s)
    if (placement_.in_walk[s]) store_all(kernel_.stores[s]);
}

}  // namespace fullbore::cuda
