#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "fullbore/ir/tensor.h"

/// The builders of every op, one declaration each. All check their operands where they are called
/// and throw UsageError naming the line of the caller. Shapes: dims B T C H D V as usual; `...` is
/// any number of leading axes. An axis may be negative, counting from the end. Unless said
/// otherwise the result has the dtype of x.
namespace fullbore {

/// An operand of an arithmetic operator: a Tensor, or a number that takes the other side's dtype.
/// Remembers the line of code where it became an operand.
struct Operand {
  Tensor tensor;
  double number = 0;
  bool is_number = false;  ///< not the same as an empty tensor, which is a mistake
  SourceLoc loc;
  Operand(Tensor t, SourceLoc l = SourceLoc::here()) : tensor(t), loc(l) {}  // NOLINT
  Operand(double x, SourceLoc l = SourceLoc::here())                         // NOLINT
      : number(x), is_number(true), loc(l) {}
};

// --- sources -------------------------------------------------------------------------------------
/// Values given element by element (row-major), rounded to the dtype. For small tables.
Tensor constant(GraphBuilder& builder, TensorType type, std::vector<double> values,
                SourceLoc loc = SourceLoc::here());
/// `value` everywhere: a rank-0 constant, broadcast.
Tensor full(GraphBuilder& builder, TensorType type, double value,
            SourceLoc loc = SourceLoc::here());
Tensor zeros_like(Tensor x, SourceLoc loc = SourceLoc::here());
/// 0, 1, 2, ... along `axis`, the same along all others.
Tensor iota(GraphBuilder& builder, TensorType type, int axis, SourceLoc loc = SourceLoc::here());

// --- elementwise: one ScalarOp each; operands are broadcast (numpy rules) and must share a dtype --
Tensor neg(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor abs(Tensor x, SourceLoc loc = SourceLoc::here());   ///< derivative 0 at 0
Tensor sign(Tensor x, SourceLoc loc = SourceLoc::here());  ///< zero gradient
Tensor exp(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor expm1(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor log(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor log1p(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor sqrt(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor rsqrt(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor sin(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor cos(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor tanh(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor erf(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor floor(Tensor x, SourceLoc loc = SourceLoc::here());      ///< zero gradient
Tensor ceil(Tensor x, SourceLoc loc = SourceLoc::here());       ///< zero gradient
Tensor round(Tensor x, SourceLoc loc = SourceLoc::here());      ///< half to even; zero gradient
Tensor is_finite(Tensor x, SourceLoc loc = SourceLoc::here());  ///< -> bool
Tensor logical_not(Tensor x, SourceLoc loc = SourceLoc::here());
/// To another dtype: floats round to nearest even, floats to integers truncate towards zero.
Tensor cast(Tensor x, DType dtype, SourceLoc loc = SourceLoc::here());
Tensor add(Operand a, Operand b);
Tensor sub(Operand a, Operand b);
Tensor mul(Operand a, Operand b);
Tensor div(Operand a, Operand b);
Tensor remainder(Operand a, Operand b);  ///< sign of b; derivative 1 in a, -floor(a/b) in b
Tensor pow(Operand a, Operand b);        ///< floats; derivative in b is 0 where a <= 0
Tensor maximum(Operand a, Operand b);    ///< a tie sends half of the cotangent each way
Tensor minimum(Operand a, Operand b);
Tensor equal(Operand a, Operand b);  ///< comparisons -> bool
Tensor not_equal(Operand a, Operand b);
Tensor less(Operand a, Operand b);
Tensor less_equal(Operand a, Operand b);
Tensor greater(Operand a, Operand b);        ///< less(b, a)
Tensor greater_equal(Operand a, Operand b);  ///< less_equal(b, a)
Tensor logical_and(Operand a, Operand b);    ///< bool
Tensor logical_or(Operand a, Operand b);     ///< bool
Tensor bit_and(Operand a, Operand b);        ///< integers
Tensor bit_or(Operand a, Operand b);
Tensor bit_xor(Operand a, Operand b);
Tensor shift_left(Operand a, Operand b);
Tensor shift_right(Operand a, Operand b);  ///< logical: zeros come in
/// condition (bool) ? a : b
Tensor select(Tensor condition, Operand a, Operand b);
inline Tensor operator+(Operand a, Operand b) { return add(a, b); }
inline Tensor operator-(Operand a, Operand b) { return sub(a, b); }
inline Tensor operator*(Operand a, Operand b) { return mul(a, b); }
inline Tensor operator/(Operand a, Operand b) { return div(a, b); }
inline Tensor operator-(Tensor x) { return neg(x); }

// --- random --------------------------------------------------------------------------------------
/// 64 random bits per element from i64 key and counters (Philox4x32-10, base/philox.h), broadcast.
/// Everything random is made of this, so that it is equal on every device and is recomputed, never
/// stored. By convention key = seed, counter_high = step + site * 2^40, counter_low = element.
Tensor philox(Tensor key, Tensor counter_low, Tensor counter_high,
              SourceLoc loc = SourceLoc::here());
/// The other 64 bits that the same call of Philox4x32-10 gives.
Tensor philox_upper(Tensor key, Tensor counter_low, Tensor counter_high,
                    SourceLoc loc = SourceLoc::here());
/// Where a draw comes from: two i64 scalars of State and a number that no other draw of the step
/// has. `iteration` (optional i64 scalar) tells the draws of a loop's iterations apart.
struct RandomSource {
  Tensor seed;
  Tensor step;
  int64_t site = 0;
  Tensor iteration = {};
};
/// Composite. Uniform in [0, 1), 24 bits (f64: 53), f32 or f64.
Tensor random_uniform(const RandomSource& source, TensorType type,
                      SourceLoc loc = SourceLoc::here());
/// Composite. Standard normal by Box-Muller; f32 or f64.
Tensor random_normal(const RandomSource& source, TensorType type,
                     SourceLoc loc = SourceLoc::here());
/// Composite. x / (1 - p) with probability 1 - p, else 0; p is `probability` to the nearest multiple of 2^-16.
Tensor dropout(Tensor x, double probability, const RandomSource& source,
               SourceLoc loc = SourceLoc::here());

// --- movement ------------------------------------------------------------------------------------
/// Numpy broadcasting: aligned at the last axis, extents equal or 1.
Tensor broadcast_to(Tensor x, Shape shape, SourceLoc loc = SourceLoc::here());
Tensor reshape(Tensor x, Shape shape, SourceLoc loc = SourceLoc::here());  ///< one extent may be -1
/// Output axis i is input axis permutation[i].
Tensor transpose(Tensor x, std::vector<int64_t> permutation, SourceLoc loc = SourceLoc::here());
Tensor swap_axes(Tensor x, int first, int second, SourceLoc loc = SourceLoc::here());
/// Elements start, start+stride, ... below stop along one axis.
Tensor slice(Tensor x, int axis, int64_t start, int64_t stop, int64_t stride = 1,
             SourceLoc loc = SourceLoc::here());
/// Zeros before, after and between (interior) the elements of one axis; negative widths crop.
Tensor pad(Tensor x, int axis, int64_t before, int64_t after, int64_t interior = 0,
           SourceLoc loc = SourceLoc::here());
Tensor concat(std::span<const Tensor> parts, int axis, SourceLoc loc = SourceLoc::here());
std::vector<Tensor> split(Tensor x, int axis, std::vector<int64_t> extents,
                          SourceLoc loc = SourceLoc::here());
Tensor reverse(Tensor x, int axis, SourceLoc loc = SourceLoc::here());
Tensor expand_dims(Tensor x, int axis, SourceLoc loc = SourceLoc::here());
Tensor squeeze(Tensor x, int axis, SourceLoc loc = SourceLoc::here());
/// x itself; cotangents end here.
Tensor stop_gradient(Tensor x, SourceLoc loc = SourceLoc::here());

// --- reductions (axes are removed unless keep_dims; accumulate in f32 or better) -----------------
Tensor reduce_sum(Tensor x, std::vector<int64_t> axes, bool keep_dims = false,
                  SourceLoc loc = SourceLoc::here());  ///< also of integers; empty extent gives 0
Tensor reduce_max(Tensor x, std::vector<int64_t> axes, bool keep_dims = false,
                  SourceLoc loc = SourceLoc::here());  ///< ties share the cotangent equally
Tensor reduce_min(Tensor x, std::vector<int64_t> axes, bool keep_dims = false,
                  SourceLoc loc = SourceLoc::here());
Tensor reduce_prod(Tensor x, std::vector<int64_t> axes, bool keep_dims = false,
                   SourceLoc loc = SourceLoc::here());
Tensor reduce_mean(Tensor x, std::vector<int64_t> axes, bool keep_dims = false,
                   SourceLoc loc = SourceLoc::here());  ///< composite: sum / count
/// Index (i32) of the largest element along the axis, the lowest on ties.
Tensor argmax(Tensor x, int axis, SourceLoc loc = SourceLoc::here());
/// Running sum along an axis; `exclusive` starts from 0; `reverse` runs from the end.
Tensor cumsum(Tensor x, int axis, bool exclusive = false, bool reverse = false,
              SourceLoc loc = SourceLoc::here());

// --- contraction ---------------------------------------------------------------------------------
/// Batched matrix product: a [..., M, K], b [..., K, N] with equal leading axes -> [..., M, N].
/// transpose_a: a is [..., K, M]; transpose_b: b is [..., N, K]. Products are accumulated in f32
/// (f64 for f64). out_dtype: the result's dtype, by default a's.
struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  std::optional<DType> out_dtype = {};
  bool tf32 =
      false;  ///< f32 operands may be rounded to 10 bits of mantissa, where a device gains by it
};
Tensor matmul(Tensor a, Tensor b, MatmulOptions options = {}, SourceLoc loc = SourceLoc::here());
/// x [..., I] times weight [O, I], transposed, plus bias [O] (optional): [..., O]. One matmul whose
/// rows are all of x's leading axes.
Tensor linear(Tensor x, Tensor weight, Tensor bias = {}, SourceLoc loc = SourceLoc::here());

// --- indexing (integer indices; one out of [0, extent) reads zero and writes nothing) ------------
/// Rows of x along axis 0: x [N, ...], indices [...I] -> [...I, ...].
Tensor gather(Tensor x, Tensor indices, SourceLoc loc = SourceLoc::here());
/// Adds rows into zeros of `rows` rows: updates [...I, ...], indices [...I] -> [rows, ...]. The sum
/// for a row runs over updates in order, so it is deterministic on any number of threads.
Tensor scatter_add(Tensor updates, Tensor indices, int64_t rows, SourceLoc loc = SourceLoc::here());
/// How many leading rows of each side of a `gather_sum` there are. Both or neither.
struct GatherSumCounts {
  Tensor count = {};  ///< i64 scalar, rows of the result: those at or above it are undefined
  /// i64 scalar, rows of x: those at or above it are never read. Where x is what a loop has stacked, the caller answers for
  /// it that those below it come from iterations that were made.
  Tensor inverse_count = {};
};
/// Sum of rows by index, in the order of the indices: y[r] = sum over k of x[indices[r, k]]. x [C, ...],
/// indices i32 [R, m] -> [R, ...]. An index that is no row of x (-1, say) adds nothing, and a row without any
/// is 0. With m = 1 of any dtype, truth values too. bf16 and f16 are summed in f32.
///
/// inverse i32 [C, n] lists, in order, the rows of y that read each row of x, -1 for none. With it the gradient is
/// the same op with the roles exchanged, an ordered sum too: no atomics, and the same bits on any number of threads.
/// The caller answers for it: an inverse that does not fit the indices gives a wrong gradient.
///
/// Compaction is one with m = 1: row r comes from indices[r], and row c goes to the rows inverse[c], its new place
/// and its copies. Its transpose is the sum of contiguous children into their parents.
Tensor gather_sum(Tensor x, Tensor indices, Tensor inverse, GatherSumCounts counts = {},
                  SourceLoc loc = SourceLoc::here());
/// Element per position: y[..., i, ...] = x[..., indices[..., i, ...], ...] along the axis; other
/// extents equal.
Tensor take_along_axis(Tensor x, Tensor indices, int axis, SourceLoc loc = SourceLoc::here());
/// Its transpose: adds updates[..., i, ...] into zeros at indices[..., i, ...], in order.
Tensor scatter_along_axis(Tensor updates, Tensor indices, int axis, int64_t extent,
                          SourceLoc loc = SourceLoc::here());
/// `extent` elements of one axis from a start (i64 scalar) known only at run time; the start is
/// clamped so that the window fits.
Tensor dynamic_slice(Tensor x, Tensor start, int axis, int64_t extent,
                     SourceLoc loc = SourceLoc::here());
/// x with the window at `start` along the axis replaced by update.
Tensor dynamic_update_slice(Tensor x, Tensor update, Tensor start, int axis,
                            SourceLoc loc = SourceLoc::here());
/// Stable ascending (or descending) sort along the last axis: values and original indices (i32).
/// NaN sorts last. With it: top-k, nucleus sampling, compaction, segment ordering.
std::tuple<Tensor, Tensor> sort(Tensor x, bool descending = false,
                                SourceLoc loc = SourceLoc::here());
Tensor one_hot(Tensor indices, int64_t classes, DType dtype,
               SourceLoc loc = SourceLoc::here());  ///< composite: [...] -> [..., classes]

// --- loop ----------------------------------------------------------------------------------------
struct LoopBody {
  Tensor index;  ///< i64 scalar, the iteration
  std::vector<Tensor> carried;
  std::vector<Tensor> slices;  ///< row `index` of each sliced operand
};
struct IterationResults {
  std::vector<Tensor> carried;  ///< next values: same types as before
  std::vector<Tensor> stacked = {};
  Tensor stop = {};  ///< bool scalar; with it the loop ends after this iteration when true
};
struct LoopResult {
  std::vector<Tensor> carried;
  std::vector<Tensor> stacked;  ///< each with a leading axis of `iterations`
  Tensor executed = {};         ///< i64 scalar, only with stop
};
struct LoopOptions {
  int64_t iterations = 0;
  bool reverse = false;
  Tensor count = {};  ///< i64 scalar: makes min(count, iterations) iterations
  /// Workers may make iterations side by side, each with memory of its own. Asks for a loop that carries nothing, makes
  /// all iterations, and whose body gives no stop.
  bool parallel = false;
  /// Of the gradient's memory: with 2 or more, as many stretches of equal length. Only the carried values at the
  /// beginning of each are kept, and integers and truth values of every iteration; the rest is computed a second time
  /// in the backward pass, one segment at a time, by the same operations: the gradient's bits do not depend on
  /// segments. Decisions are not taken twice, and random draws repeat by their counters. sqrt(iterations) segments
  /// need the least memory, for one more forward pass. 0 and 1 keep everything.
  int64_t segments = 0;
};
/// Runs `body` for each iteration; see ir/loop.h for the exact semantics. Tensors of enclosing scopes
/// that the body uses are captured. Differentiable through carried, sliced and captured operands,
/// through stop and count too (decisions are constants).
LoopResult loop(GraphBuilder& builder, std::vector<Tensor> carried, std::vector<Tensor> sliced,
                LoopOptions options, const std::function<IterationResults(const LoopBody&)>& body,
                SourceLoc loc = SourceLoc::here());

// --- composites (defined by decomposition; a device may support them natively) -----------------------------
Tensor relu(Tensor x, SourceLoc loc = SourceLoc::here());  ///< derivative 0 at 0
Tensor sigmoid(Tensor x, SourceLoc loc = SourceLoc::here());
Tensor silu(Tensor x, SourceLoc loc = SourceLoc::here());      ///< x * sigmoid(x)
Tensor softplus(Tensor x, SourceLoc loc = SourceLoc::here());  ///< max(x,0) + log1p(exp(-|x|))
/// Exact: x/2 (1 + erf(x/sqrt 2)). Tanh form: Hendrycks, Gimpel 2016, arXiv:1606.08415.
Tensor gelu(Tensor x, bool tanh_form = false, SourceLoc loc = SourceLoc::here());
/// Limits to [low, high]; derivative 1 on the closed interval.
Tensor clamp(Tensor x, double low, double high, SourceLoc loc = SourceLoc::here());
/// exp(x - max) / sum along the axis; a row of -inf gives zeros with zero gradient.
Tensor softmax(Tensor x, int axis = -1, SourceLoc loc = SourceLoc::here());
Tensor log_softmax(Tensor x, int axis = -1, SourceLoc loc = SourceLoc::here());
Tensor log_sum_exp(Tensor x, int axis = -1, SourceLoc loc = SourceLoc::here());  ///< axis removed
/// (x - mean) * rstd * gain + bias over the last axis; x [..., C], gain [C], bias [C] or none;
/// biased variance; statistics in f32. Ba, Kiros, Hinton 2016, arXiv:1607.06450, section 3.
Tensor layer_norm(Tensor x, Tensor gain, Tensor bias = {}, double epsilon = 1e-5,
                  SourceLoc loc = SourceLoc::here());
/// x * rsqrt(mean(x^2) + epsilon) * gain. Zhang, Sennrich 2019, arXiv:1910.07467.
Tensor rms_norm(Tensor x, Tensor gain, double epsilon = 1e-6, SourceLoc loc = SourceLoc::here());
/// What a row's loss is beside -log softmax(logits)[target].
struct CrossEntropyOptions {
  /// Share of each target, in [0, 1), that is spread evenly over all classes (Szegedy et al. 2016,
  /// arXiv:1512.00567, section 7).
  double label_smoothing = 0;
  /// Factor of log^2(sum(exp(logits))), which is added (Chowdhery et al. 2022, arXiv:2204.02311,
  /// section 5, which takes 1e-4).
  double z_loss = 0;
  int64_t ignore_index = -1;  ///< a target that is ignored, as all outside [0, V) are
};
/// -log softmax(logits)[target] per row: logits [..., V], targets [...] integer -> [...] f32 (f64
/// for f64). A target outside [0, V) gives loss 0 and no gradient (ignored row).
Tensor cross_entropy(Tensor logits, Tensor targets, CrossEntropyOptions options = {},
                     SourceLoc loc = SourceLoc::here());

struct LinearCrossEntropyOptions {
  CrossEntropyOptions loss = {};
  Tensor weights = {};  ///< [...] floating: a factor of each row's loss; none: all 1
  int64_t rows = 0;     ///< whose logits exist at a time; 0: linear_cross_entropy_rows(V)
};
/// Sum over all rows of weights * cross_entropy(linear(hidden, weight), targets): hidden [..., C],
/// weight [V, C] of the same dtype, targets [...] integer -> f32 [] (f64 for f64).
///
/// The logits never exist whole: a `loop` makes `rows` of them at a time. Because the result is a sum
/// its cotangent is one number, so the gradient is made on the same way with cotangent 1, block by
/// block (op `linear_cross_entropy_gradient`, which then stands for this one), and multiplied by that
/// number at the end: no product is made twice. The gradient of weight is summed in f32.
/// Cost: 2 V C flops per row, 6 V C with the gradient.
Tensor linear_cross_entropy(Tensor hidden, Tensor weight, Tensor targets,
                            LinearCrossEntropyOptions options = {},
                            SourceLoc loc = SourceLoc::here());
/// Rows of logits of so many classes that linear_cross_entropy makes at a time by itself: 32 MiB of
/// f32, and at least 512, for each block moves the gradient of weight once in and out of memory.
int64_t linear_cross_entropy_rows(int64_t classes);
/// softmax(q k^T * scale + mask) v. q [B,H,T,D], k and v [B,G,S,D] with H a multiple of G (grouped
/// queries), -> [B,H,T,D]. causal: query t sees keys s <= t + S - T. mask (optional): bool
/// [B or 1, H or 1, T or 1, S], true = may attend; or floating, added. A row with no key gives 0.
///
/// The op has a second result, the log-sum-exp of each row of scores [B,H,T] (f32; 0 where no key is
/// seen), from which `attention_gradient` makes the weights anew: no [T,S] matrix is kept, except
/// where the mask itself wants a gradient. Cost: 4 D flops per visible pair, 10 D in the gradient.
/// Source: Dao 2023, arXiv:2307.08691.
struct AttentionOptions {
  bool causal = false;
  std::optional<double> scale = {};  ///< default 1/sqrt(D)
  Tensor mask = {};
  double dropout = 0;
  RandomSource random = {};
};
Tensor attention(Tensor q, Tensor k, Tensor v, AttentionOptions options = {},
                 SourceLoc loc = SourceLoc::here());

/// The nodes of a body as one kernel: made by the fusion pass, not by models. Inputs and outputs
/// are the body's.
std::vector<Tensor> fused(GraphBuilder& builder, std::span<const Tensor> inputs,
                          std::shared_ptr<const Graph> body, SourceLoc loc = SourceLoc::here());

}  // namespace fullbore
