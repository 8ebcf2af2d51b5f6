#pragma once
#include "fullbore/ir/op_handle.h"
#include "fullbore/ops/ops.h"

namespace fullbore {

namespace op {
inline const OpHandle paged_attention{"paged_attention"};
}  // namespace op

struct PagedAttentionOptions {
  int64_t groups = 1;                ///< G, of which H is a multiple: heads that share keys
  int64_t page_tokens = 16;          ///< E, places of a page
  int64_t window = 0;                ///< of those seen only the last so many; 0: all
  std::optional<double> scale = {};  ///< default 1/sqrt(D)
};

/// Attention of one query of each row to keys and values that lie in pages of a pool.
///
/// q            [R,H,D]    floating
/// keys, values [N,G D]    the pool: of q's dtype, or of bf16 or f16, which are widened as they are read
/// pages        [R,P]      integer: place s of a row is row pages[r, s / E] E + s % E of the pool, zeros where there is
///                         no such row
/// seen         i64 [R]    how many places each row sees, from place 0 on; at most P E
/// -> y         [R,H,D]    zeros for a row that sees none
///
/// Defined by its decomposition, which gathers all P E places of every row; a kernel reads those that are seen where they
/// lie. Sums are f32, of f64 queries f64; weights may be rounded to q's dtype, as those of attention. Cost: 4 D flops per head and
/// place. Errors: UsageError if shapes or dtypes do not fit.
/// Source: Kwon et al. 2023, arXiv:2309.06180, section 4.1.
Tensor paged_attention(Tensor q, Tensor keys, Tensor values, Tensor pages, Tensor seen,
                       PagedAttentionOptions options = {}, SourceLoc loc = SourceLoc::here());

/// What infer, decomposition and kernels read of a node.
struct PagedAttentionShape {
  int64_t rows = 0, heads = 0, width = 0, groups = 1, pool = 0, pages = 0;
  int64_t page_tokens = 1, window = 0;
  DType pool_dtype = DType::f32;
  double scale = 1;

  PagedAttentionShape(std::span<const TensorType> inputs, const Attributes& attributes);
  int64_t places() const { return pages * page_tokens; }
  int64_t queries() const { return heads / groups; }  ///< that share keys
};

}  // namespace fullbore
