#pragma once
#include "fullbore/device/cpu/attention/problem.h"

namespace fullbore::cpu {

/// Attention without a matrix of queries by keys (Dao 2023, arXiv:2307.08691, algorithm 1): blocks of
/// 64 queries meet 64 keys at a time, and largest score and sum of each query go along.
///
/// An item is one block of queries of the heads that share keys. A tile's scores have a row per key,
/// so that the keys are a left operand as they lie and softmax runs along lanes; only the queries are
/// transposed, once per block. Tiles and blocks of tiles that a causal mask hides are skipped.
/// Bound: the two matmuls, 4 width operations per pair of query and key at the rate of f32 matmuls.
std::unique_ptr<Kernel> make_attention(KernelRequest& request);
std::unique_ptr<Kernel> make_attention(const KernelRequest& request, const MatmulUnits& units);

/// The same for up to four queries of each set of keys, as in generation, whose vectors in a tile would
/// be nearly empty: scores are sums along the width of a head, with keys and values where they lie and
/// softmax over the keys of a row. Parts of the keys that a mask hides are not read.
std::unique_ptr<Kernel> make_attention_rows(KernelRequest& request);
/// Null for more queries.
std::unique_ptr<Kernel> make_attention_rows(const KernelRequest& request, const MatmulUnits& units);

/// The same for paged_attention, one query of each row: an item is a row. Only pages with
/// places that are seen are read, each where it lies. Bound: reading keys and values once.
/// Where queries and pool are bf16 and the processor has dot products of pairs, weights are rounded to bf16, as those of
/// make_attention are.
std::unique_ptr<Kernel> make_paged_attention(KernelRequest& request);

/// Its gradient (algorithm 2): weights are made anew from the log-sum-exp of each query. The five
/// matmuls of a tile need two transposed copies, of q and dy, once per block of queries.
///
/// An item is all that concerns one set of keys; sums over blocks are then made by one worker, in one
/// order. Where those are too few to share out, items are either ranges of keys (for dk and dv) or
/// blocks of queries (for dq), and weights and slopes are made twice.
std::unique_ptr<Kernel> make_attention_gradient(KernelRequest& request);
std::unique_ptr<Kernel> make_attention_gradient(const KernelRequest& request,
                                                const MatmulUnits& units);

}  // namespace fullbore::cpu
