#pragma once
#include "fullbore/device/cpu/gemm/gemm_unit.h"
#include "fullbore/device/cpu/kernel.h"

namespace fullbore::cpu {

/// The three parts of a linear recurrence (ops/recurrence.h) on chunks of tokens. All that is not a
/// matmul is done along rows of keys or of tokens, by the loops of row_unit.h; operands of
/// 16 bits are widened as they are read, states and sums are f32. Matmuls are of VNNI pairs where
/// operands are bf16 and the processor has them: then weights and states are rounded to bf16 as operands.
/// Blocks of one token, as in decoding, are for kernels of one_token.h.
///
/// recurrence_states: an item is one head of one stream, or 32 of its values, whose columns of the state
/// know nothing of one another; it walks from chunk to chunk. Bound: reading k, v and decays and
/// writing a state per chunk; 2 K V flops per token.
std::unique_ptr<Kernel> make_recurrence_states(KernelRequest& request);
std::unique_ptr<Kernel> make_recurrence_states(const KernelRequest& request,
                                               const MatmulUnits& units);

/// recurrence_outputs: an item is one chunk of the heads that share keys. Bound: the matmuls, chunk
/// (K + V) + 2 K V flops per token and head.
std::unique_ptr<Kernel> make_recurrence_outputs(KernelRequest& request);
std::unique_ptr<Kernel> make_recurrence_outputs(const KernelRequest& request,
                                                const MatmulUnits& units);

/// recurrence_gradient: likewise; weights are made anew. Bound: 2.5 chunk (K + V) + 6 K V flops.
std::unique_ptr<Kernel> make_recurrence_gradient(KernelRequest& request);
std::unique_ptr<Kernel> make_recurrence_gradient(const KernelRequest& request,
                                                 const MatmulUnits& units);

}  // namespace fullbore::cpu
