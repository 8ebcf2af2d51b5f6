#include <fmt/format.h>

#include <array>

#include "fullbore/device/cuda/kernels/attention_problem.h"
#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/op_handles.h"
#include "fullbore/ops/packed_attention.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kColumns = 64;
constexpr uint32_t kThreads = 128;
constexpr int64_t kWidestOfTensorCores = 128;

/// How blocks of kernels/attention_unbiased*.cpp are made up: rows of a block, rows of a tile that it walks over, columns.
struct Form {
  int64_t rows, tile, width;
  bool is_ruled;
  std::string suffix() const {
    return fmt::format("{}_{}{}", width, rows, is_ruled ? "_ruled" : "");
  }
  /// A block's own rows of `own` operands, and four tiles.
  int64_t shared_bytes(int64_t own) const { return (own * rows + 4 * tile) * width * 2; }
};

AttentionStorage storage_of(DType dtype) {
  switch (dtype) {
    case DType::boolean: return kStoredBool;
    case DType::f64: return kStoredF64;
    case DType::bf16: return kStoredBf16;
    case DType::f16: return kStoredF16;
    default: return kStoredF32;
  }
}

/// [B,H,T,width] as it lies; `is_packed`: [B,T,H,width].
AttentionStrides strides_of(int64_t heads, int64_t tokens, int64_t width, bool is_packed) {
  if (is_packed) return {tokens * heads * width, width, heads * width};
  return {heads * tokens * width, tokens * width, width};
}

/// What the four ops have in common: a call by its types, and its operands as parameters.
class Attention {
 public:
  Attention(const Request& request, bool is_gradient)
      : request_(request),
        is_packed_(is_packed_attention(request.node)),
        is_gradient_(is_gradient),
        shape_(shape_of()),
        by_tensor_cores_((request.input(0).dtype == DType::bf16 ||
                          (request.input(0).dtype == DType::f16 && !is_gradient)) &&
                         shape_.width <= kWidestOfTensorCores) {
    set_strides();
    set_options();
    // A bias, or statistics of another dtype, are what the other kernels are for; a largest score is one of a largest product
    // where the scale is above 0.
    is_unbiased_ = by_tensor_cores_ && problem_.scale > 0 &&
                   (problem_.mask == kStoredNone || problem_.mask == kStoredBool) &&
                   problem_.log_sum_exp == kStoredF32 && problem_.delta == kStoredF32;
  }

  /// Are numbers of tokens and heads, and blocks of a launch, within what kernels count with?
  bool fits() const {
    constexpr int64_t kMost = int64_t{1} << 30;
    return shape_.queries < kMost && shape_.keys < kMost &&
           std::max(shape_.queries * shape_.heads, shape_.keys * shape_.groups) *
                   std::max<int64_t>(1, shape_.batch) <
               kMost;
  }
  bool by_tensor_cores() const { return by_tensor_cores_; }

  std::vector<Launch> forward() const {
    std::vector<Argument> arguments = {q(), k(), v()};
    add_options(arguments);
    const size_t outputs = request_.node.inputs.size();
    arguments.insert(arguments.end(), {operand(outputs), operand(outputs + 1), value(problem_)});
    if (!is_unbiased_)
      return {launched("attention", shape_.queries, shape_.heads, chunks_of_queries(), 3,
                       std::move(arguments))};
    const Form form = form_of(shape_.queries, 128, 64);
    return {launched_unbiased("attention_unbiased", "attention", form,
                              blocks_of(form, shape_.queries, shape_.heads), form.shared_bytes(1),
                              std::move(arguments))};
  }
  std::vector<Launch> gradient() const {
    if (!is_unbiased_) return {queries_gradient(), keys_gradient()};
    std::vector<Argument> arguments = gradient_operands();
    arguments.insert(arguments.end(), {result(0), result(1), result(2), value(problem_)});
    const Form form = form_of(std::max(shape_.queries, shape_.keys), 64, 32);
    const int64_t statistics = 16 * form.tile;
    return {launched_unbiased(
        "attention_unbiased_gradient", "attention_gradient", form,
        blocks_of(form, shape_.keys, shape_.groups) + blocks_of(form, shape_.queries, shape_.heads),
        form.shared_bytes(2) + statistics, std::move(arguments))};
  }

  const AttentionShape& shape() const { return shape_; }

 private:
  Launch queries_gradient() const {
    std::vector<Argument> arguments = gradient_operands();
    arguments.insert(arguments.end(), {result(0), value(problem_)});
    return launched("attention_queries", shape_.queries, shape_.heads, chunks_of_queries(), 4,
                    std::move(arguments));
  }
  Launch keys_gradient() const {
    std::vector<Argument> arguments = gradient_operands();
    arguments.insert(arguments.end(), {result(1), result(2), value(problem_)});
    return launched("attention_keys", shape_.keys, shape_.groups, chunks(), 4,
                    std::move(arguments));
  }

  AttentionShape shape_of() const {
    std::vector<TensorType> types;
    for (size_t i = 0; i < request_.node.inputs.size(); ++i) types.push_back(request_.input(i));
    const Attributes& attributes = request_.node.attributes;
    if (is_packed_)
      return packed_attention_shape(types, attributes,
                                    is_gradient_ ? kPackedGradientOperands : kPackedOperands);
    return {types, attributes, is_gradient_ ? kAttentionGradientOperands : kAttentionOperands};
  }

  void set_strides() {
    const AttentionShape& s = shape_;
    if (is_packed_) {
      problem_.q = problem_.k = problem_.v =
          strides_of(s.heads + 2 * s.groups, s.queries, s.width, true);
    } else {
      problem_.q = strides_of(s.heads, s.queries, s.width, false);
      problem_.k = problem_.v = strides_of(s.groups, s.keys, s.width, false);
    }
    problem_.y = strides_of(s.heads, s.queries, s.width, is_packed_);
    problem_.log_sum_exp_strides = strides_of(s.heads, s.queries, 1, false);
    problem_.delta_strides = strides_of(s.heads, s.queries, 1, is_packed_);
    if (is_gradient_) {
      problem_.log_sum_exp = storage_of(request_.input(is_packed_ ? 2 : 4).dtype);
      problem_.delta = storage_of(request_.input(is_packed_ ? 3 : 5).dtype);
    }
    if (!s.masked) return;
    const TensorType& mask = request_.input(s.mask);
    const std::vector<int64_t> lie = mask.shape.strides();
    const auto stride = [&](int axis) {
      return mask.shape[axis] == 1 ? 0 : lie[static_cast<size_t>(axis)];
    };
    problem_.mask = storage_of(mask.dtype);
    problem_.mask_strides = {stride(0), stride(1), stride(2)};
  }

  void set_options() {
    const AttentionShape& s = shape_;
    const auto narrow = [](int64_t number) { return static_cast<int>(number); };
    problem_.batch = narrow(s.batch);
    problem_.heads = narrow(s.heads);
    problem_.groups = narrow(s.groups);
    problem_.queries = narrow(s.queries);
    problem_.keys = narrow(s.keys);
    problem_.width = narrow(s.width);
    problem_.is_causal = s.causal ? 1 : 0;
    problem_.scale = static_cast<float>(s.scale);
    if (s.dropout == 0) return;
    problem_.drops = 1;
    problem_.threshold = narrow(dropout_threshold(s.dropout));
    problem_.kept_factor = static_cast<float>(1 / (1 - s.dropout));
    problem_.site = request_.node.attributes.get<int64_t>("site");
  }

  /// Heads [first, ...) of the packed operand or result.
  Argument heads(size_t index, int64_t first) const {
    Argument argument = operand(index);
    argument.offset = first * shape_.width * dtype_bytes(request_.input(0).dtype);
    return argument;
  }
  Argument q() const { return operand(0); }
  Argument k() const { return is_packed_ ? heads(0, shape_.heads) : operand(1); }
  Argument v() const { return is_packed_ ? heads(0, shape_.heads + shape_.groups) : operand(2); }
  /// dq, dk or dv.
  Argument result(size_t which) const {
    const size_t outputs = request_.node.inputs.size();
    if (!is_packed_) return operand(outputs + which);
    const std::array<int64_t, 3> firsts = {0, shape_.heads, shape_.heads + shape_.groups};
    return heads(outputs, firsts[which]);
  }

  void add_options(std::vector<Argument>& arguments) const {
    const bool drops = shape_.dropout != 0;
    const size_t source = shape_.source;
    arguments.push_back(shape_.masked ? operand(shape_.mask) : null());
    arguments.push_back(drops ? operand(source) : null());
    arguments.push_back(drops ? operand(source + 1) : null());
    arguments.push_back(drops && request_.node.inputs.size() > source + 2 ? operand(source + 2)
                                                                          : null());
  }
  std::vector<Argument> gradient_operands() const {
    const size_t dy = is_packed_ ? kPackedOperands : kAttentionOperands;
    std::vector<Argument> arguments = {
        q(), k(), v(), operand(dy), operand(dy + 1), operand(dy + 2)};
    add_options(arguments);
    return arguments;
  }

  /// Blocks that share the columns of a result.
  int64_t chunks() const { return divide_up(shape_.width, kColumns); }
  int64_t chunks_of_queries() const { return by_tensor_cores_ ? 1 : chunks(); }

  /// `tiles`: of 64 rows in dynamic shared memory, by tensor cores.
  Launch launched(std::string_view entry, int64_t tokens, int64_t heads, int64_t chunks,
                  int64_t tiles, std::vector<Argument> arguments) const {
    const DType dtype = request_.input(0).dtype;
    const int64_t tile = by_tensor_cores_ ? 64 : 32;
    const auto blocks =
        static_cast<uint32_t>(divide_up(tokens, tile) * chunks * heads * shape_.batch);
    if (!by_tensor_cores_)
      return launch("attention", fmt::format("{}_{}", entry, dtype_name(dtype)), {.x = blocks},
                    {.x = kThreads}, std::move(arguments));
    const int64_t width = shape_.width <= 64 ? 64 : kWidestOfTensorCores;
    return launch("attention_tensor_core", fmt::format("{}_{}_{}", entry, dtype_name(dtype), width),
                  {.x = blocks}, {.x = kThreads}, std::move(arguments),
                  tiles * 64 * (width + 8) * 2);
  }

  /// For so many rows of a head; `most_rows`: of a block without rules, `wide_tile`: rows of a tile of heads wider than 64.
  Form form_of(int64_t rows, int64_t most_rows, int64_t wide_tile) const {
    const bool is_ruled = problem_.mask != kStoredNone || problem_.drops != 0;
    if (shape_.width > 64)
      return {.rows = 64, .tile = wide_tile, .width = kWidestOfTensorCores, .is_ruled = is_ruled};
    if (rows <= 32) return {.rows = 32, .tile = 32, .width = 64, .is_ruled = true};
    return {.rows = is_ruled ? 64 : most_rows, .tile = 64, .width = 64, .is_ruled = is_ruled};
  }
  int64_t blocks_of(const Form& form, int64_t tokens, int64_t heads) const {
    return divide_up(tokens, form.rows) * heads * shape_.batch;
  }
  Launch launched_unbiased(std::string_view file, std::string_view entry, const Form& form,
                           int64_t blocks, int64_t shared_bytes,
                           std::vector<Argument> arguments) const {
    // A warp has 16 rows, of large blocks 32.
    const int64_t threads = form.rows / (form.rows > 64 ? 32 : 16) * 32;
    return launch(
        file, fmt::format("{}_{}_{}", entry, dtype_name(request_.input(0).dtype), form.suffix()),
        {.x = static_cast<uint32_t>(blocks)}, {.x = static_cast<uint32_t>(threads)},
        std::move(arguments), shared_bytes);
  }

  const Request& request_;
  const bool is_packed_, is_gradient_;
  const AttentionShape shape_;
  const bool by_tensor_cores_;
  bool is_unbiased_ = false;
  AttentionProblem problem_;
};

std::unique_ptr<CudaKernel> made(const Request& request, const Attention& attention,
                                 std::vector<Launch> launches, double flops_of_pair) {
  // Without tensor cores products are of f32, one at a time.
  const double share_of_peak = attention.by_tensor_cores() ? 0.4 : 1.0 / 32;
  // A launch without blocks is none.
  std::erase_if(launches, [](const Launch& each) { return each.grid.x == 0; });
  const double flops = attention.shape().pairs() * flops_of_pair;
  return std::make_unique<CudaKernel>(
      std::move(launches),
      CudaKernel::Description{
          .text = description_of(request),
          .nanoseconds = std::max(memory_nanoseconds(request.card, operand_bytes(request)),
                                  flop_nanoseconds(request.card, flops / share_of_peak))});
}

bool is_taken(const Request& request, const Attention& attention, std::string* why_not) {
  if (request.input(0).dtype == DType::f64)
    *why_not = "needs f32, bf16 or f16, got f64";
  else if (!attention.fits())
    *why_not = fmt::format("{} is too large", description_of(request));
  else
    return true;
  return false;
}

}  // namespace

std::unique_ptr<CudaKernel> make_attention(const Request& request, std::string* why_not) {
  const Attention attention(request, false);
  if (!is_taken(request, attention, why_not)) return nullptr;
  return made(request, attention, attention.forward(),
              4 * static_cast<double>(attention.shape().width));
}

std::unique_ptr<CudaKernel> make_attention_gradient(const Request& request, std::string* why_not) {
  const Attention attention(request, true);
  if (!is_taken(request, attention, why_not)) return nullptr;
  return made(request, attention, attention.gradient(),
              14 * static_cast<double>(attention.shape().width));
}

}  // namespace fullbore::cuda
