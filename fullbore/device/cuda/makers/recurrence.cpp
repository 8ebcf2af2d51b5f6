#include "fullbore/ops/recurrence.h"

#include <fmt/format.h>

#include <algorithm>

#include "fullbore/device/cuda/kernels/recurrence_problem.h"
#include "fullbore/device/cuda/makers/launching.h"
#include "fullbore/device/cuda/makers/makers.h"
#include "fullbore/ir/op_def.h"

namespace fullbore::cuda {
namespace {

constexpr int64_t kStateTile = 32;
constexpr int64_t kMost = int64_t{1} << 30;

/// Float32 numbers in a kernel's scratch, one array behind the other.
class Scratch {
 public:
  explicit Scratch(const Request& request)
      : index_(request.node.inputs.size() + request.node.outputs.size()) {}
  Argument floats(int64_t count) {
    Argument argument = operand(index_);
    argument.offset = bytes_;
    bytes_ += divide_up(count * 4, 256) * 256;
    return argument;
  }
  int64_t bytes() const { return bytes_; }

 private:
  size_t index_;
  int64_t bytes_ = 0;
};

/// What the three ops have in common. k, v, g: indices of operands.
class Recurrence {
 public:
  Recurrence(const Request& request, size_t k, size_t v, size_t g)
      : request_(request),
        dtype_(request.input(0).dtype),
        shape_(request.input(k), request.input(v), request.input(g), request.node.attributes) {
    const auto narrow = [](int64_t number) { return static_cast<int>(std::min(number, kMost)); };
    problem_.batch = narrow(shape_.batch);
    problem_.tokens = narrow(shape_.tokens);
    problem_.heads = narrow(shape_.heads);
    problem_.groups = narrow(shape_.groups);
    problem_.keys = narrow(shape_.keys);
    problem_.values = narrow(shape_.values);
    problem_.decays = narrow(shape_.decays);
    problem_.chunk = narrow(shape_.chunk);
    problem_.chunks = narrow(shape_.chunks);
    problem_.inclusive = shape_.inclusive ? 1 : 0;
    problem_.wide_g = is_wide(g);
  }

  const RecurrenceShape& shape() const { return shape_; }
  RecurrenceProblem& problem() { return problem_; }
  int is_wide(size_t index) const { return request_.input(index).dtype == DType::f32 ? 1 : 0; }
  int64_t heads() const { return shape_.batch * shape_.heads; }
  int64_t rows() const { return heads() * shape_.tokens; }

  /// Are extents and numbers of blocks within what kernels count with?
  bool is_taken(std::string* why_not) const {
    const int64_t extents =
        std::max({shape_.keys, shape_.values, shape_.tokens, shape_.heads, shape_.batch});
    if (dtype_ == DType::f64)
      *why_not = "needs f32, bf16 or f16, got f64";
    else if (extents >= kMost || rows() >= kMost || rows() * (shape_.keys + shape_.values) >= kMost)
      *why_not = fmt::format("{} is too large", description_of(request_));
    else
      return true;
    return false;
  }

  /// Of square tiles of the states of all heads.
  Extent blocks(int64_t count) const { return {.x = static_cast<uint32_t>(count)}; }
  std::string entry(std::string_view name) const {
    return fmt::format("recurrence_{}_{}", name, dtype_name(dtype_));
  }
  /// Of kernels/recurrence_walks.cpp, with one block for each of `tiles(extent)`, chunk and head.
  template <class Tiles>
  Launch walks(std::string_view name, const Tiles& tiles, std::vector<Argument> arguments) const {
    const std::string_view kind = !shape_.inclusive       ? "exclusive"
                                  : shape_.scalar_decay() ? "inclusive_one_decay"
                                                          : "inclusive";
    const bool is_narrow = std::max(shape_.keys, shape_.values) <= 32;
    const int64_t extent = kind == "inclusive" || (kind == "exclusive" && is_narrow) ? 32 : 64;
    return launch("recurrence_walks", fmt::format("{}_{}_{}", entry(name), extent, kind),
                  blocks(tiles(extent) * shape_.chunks * heads()), {.x = extent == 32 ? 64U : 128U},
                  std::move(arguments));
  }
  /// Operands behind k, v, g and what else: "none" is null.
  Argument resets(size_t index) const { return shape_.resets ? operand(index) : null(); }
  /// Values are walked over again for each tile of keys: then sums are kept in f32.
  Argument value_sums(Scratch& scratch) const {
    return shape_.keys > 32 ? scratch.floats(rows() * shape_.values) : null();
  }

  std::unique_ptr<CudaKernel> made(std::vector<Launch> launches, const Scratch& scratch,
                                   double flops) const {
    // Products are of f32, one at a time, token after token.
    constexpr double kShareOfPeak = 1.0 / 32;
    std::erase_if(launches, [](const Launch& each) { return each.grid.x == 0; });
    return std::make_unique<CudaKernel>(
        std::move(launches),
        CudaKernel::Description{
            .text = description_of(request_),
            .nanoseconds = std::max(memory_nanoseconds(request_.card, operand_bytes(request_)),
                                    flop_nanoseconds(request_.card, flops / kShareOfPeak)),
            .scratch_bytes = scratch.bytes()});
  }
  /// Of one product with every element of the state at every token.
  double state_flops() const {
    return static_cast<double>(rows()) * recurrence_state_flops(shape_);
  }

 private:
  const Request& request_;
  DType dtype_;
  RecurrenceShape shape_;
  RecurrenceProblem problem_;
};

}  // namespace

std::unique_ptr<CudaKernel> make_recurrence_states(const Request& request, std::string* why_not) {
  Recurrence call(request, 0, 1, 2);
  if (!call.is_taken(why_not)) return nullptr;
  const RecurrenceShape& shape = call.shape();
  call.problem().reverse = request.node.attributes.get<bool>("reverse") ? 1 : 0;
  call.problem().wide_states = call.is_wide(3);
  const size_t outputs = request.node.inputs.size();
  const int64_t tiles = divide_up(shape.keys, kStateTile) * divide_up(shape.values, kStateTile);
  return call.made({launch("recurrence_states", call.entry("states"),
                           call.blocks(tiles * call.heads()), {.x = 128},
                           {operand(0), operand(1), operand(2), operand(3), call.resets(4),
                            operand(outputs), operand(outputs + 1), value(call.problem())})},
                   Scratch(request), 2 * call.state_flops());
}

std::unique_ptr<CudaKernel> make_recurrence_outputs(const Request& request, std::string* why_not) {
  Recurrence call(request, 1, 2, 3);
  if (!call.is_taken(why_not)) return nullptr;
  const RecurrenceShape& shape = call.shape();
  const size_t states = shape.bonus() ? 5 : 4;
  if (shape.bonus()) call.problem().wide_u = call.is_wide(4);
  call.problem().wide_states = call.is_wide(states);
  Scratch scratch(request);
  const Argument sums = call.value_sums(scratch);
  return call.made(
      {call.walks("outputs", [&](int64_t extent) { return divide_up(shape.values, extent); },
                  {operand(0), operand(1), operand(2), operand(3),
                   shape.bonus() ? operand(4) : null(), operand(states), call.resets(states + 1),
                   operand(request.node.inputs.size()), sums, value(call.problem())})},
      scratch, 3 * call.state_flops());
}

std::unique_ptr<CudaKernel> make_recurrence_gradient(const Request& request, std::string* why_not) {
  Recurrence call(request, 1, 2, 4);
  if (!call.is_taken(why_not)) return nullptr;
  const RecurrenceShape& shape = call.shape();
  const size_t states = shape.bonus() ? 6 : 5, outputs = request.node.inputs.size();
  if (shape.bonus()) call.problem().wide_u = call.is_wide(5);
  call.problem().wide_states = call.is_wide(states);
  call.problem().wide_cotangents = call.is_wide(states + 1);
  Scratch scratch(request);
  const int64_t of_keys = call.rows() * shape.keys;
  const Argument of_r = scratch.floats(of_keys), of_k = scratch.floats(of_keys),
                 slopes = scratch.floats(call.rows()),
                 ends = scratch.floats(shape.chunks * call.heads() * shape.keys),
                 sums = call.value_sums(scratch);
  const Argument u = shape.bonus() ? operand(5) : null();
  constexpr int64_t kThreads = 256;
  const int64_t sum_blocks =
      divide_up(shape.batch * shape.tokens * shape.groups * shape.keys, kThreads);
  const int64_t chunks = shape.chunks * call.heads();
  const int64_t decay_blocks =
      shape.scalar_decay() ? chunks : divide_up(chunks * shape.keys, kThreads);
  return call.made(
      {call.walks("gradient",
                  [&](int64_t extent) {
                    return 2 * divide_up(shape.keys, extent) + divide_up(shape.values, extent);
                  },
                  {operand(0), operand(1), operand(2), operand(3), operand(4), u, operand(states),
                   operand(states + 1), call.resets(states + 2), of_r, of_k, operand(outputs + 2),
                   sums, slopes, ends, value(call.problem())}),
       launch("recurrence_cotangents", call.entry("cotangents"),
              call.blocks(sum_blocks + decay_blocks), {.x = kThreads},
              {operand(0), operand(1), operand(4), u, of_r, of_k, slopes, ends, operand(outputs),
               operand(outputs + 1), operand(outputs + 3),
               shape.bonus() ? operand(outputs + 4) : null(),
               value(static_cast<int32_t>(sum_blocks)), value(call.problem())})},
      scratch, 9 * call.state_flops());
}

}  // namespace fullbore::cuda
