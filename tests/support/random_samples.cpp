#include "tests/support/random_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "fullbore/base/philox.h"

namespace fullbore {
namespace {

constexpr int64_t kMostElements = 6000;
constexpr int64_t kLargeElements = 60000;
constexpr DType kInexact[] = {DType::i64, DType::i32, DType::u8, DType::boolean, DType::i8};

/// The choices that make up one random call.
class Draw {
 public:
  Draw(uint64_t seed, uint64_t stream) : draws_(seed, stream) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(draws_.below(static_cast<uint64_t>(n))); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(double probability) { return draws_.uniform() < probability; }
  template <size_t n>
  int64_t one_of(const int64_t (&values)[n]) {
    return values[below(n)];
  }

  int64_t extent() {
    static constexpr int64_t kExtents[] = {1,  1,  2,  3,  4,  5,  7,  8,   9,   15,  16, 17,
                                           31, 32, 33, 47, 63, 64, 65, 100, 127, 129, 257};
    return chance(0.04) ? 0 : one_of(kExtents);
  }
  /// A shape of a rank in [least, most]; as many of its extents are cut as keep it small enough.
  Shape shape(int least, int most) {
    std::vector<int64_t> dims(static_cast<size_t>(between(least, most)));
    for (int64_t& dim : dims) dim = extent();
    const int64_t limit = chance(0.08) ? kLargeElements : kMostElements;
    if (!dims.empty() && chance(0.05)) dims[static_cast<size_t>(below(rank(dims)))] = 4099;
    for (size_t i = 0; i < dims.size() && Shape(dims).elements() > limit; ++i)
      dims[i] = std::min<int64_t>(dims[i], 3);
    for (size_t i = 0; i < dims.size() && Shape(dims).elements() > limit; ++i) dims[i] = 1;
    return Shape(dims);
  }
  int64_t axis(const Shape& shape) { return below(shape.rank()); }
  DType index_dtype() {
    return std::array{DType::i64, DType::i32, DType::u8, DType::i8}[static_cast<size_t>(below(4))];
  }

  DType dtype = DType::f32;  ///< of this call's operands
  SampleInput operand(Shape shape) { return operand_of(dtype, std::move(shape)); }
  SampleInput operand_of(DType of, Shape shape) {
    TensorType type{of, std::move(shape)};
    switch (of) {
      case DType::boolean: return SampleInput::integers(type, 0, 2);
      case DType::u8: return SampleInput::integers(type, 0, 256);
      case DType::i8: return SampleInput::integers(type, -128, 128);
      case DType::i32: return wide_or_narrow(type, 2e9);
      case DType::i64: return wide_or_narrow(type, 9e18);
      default: break;
    }
    if (chance(0.6)) return SampleInput::normal(type);
    const double scale = chance(0.5) ? 20 : 1e-3;
    return SampleInput::uniform(type, -scale, scale);
  }
  /// Indices into [0, extent), sometimes with a few outside.
  SampleInput indices(Shape shape, int64_t extent) {
    const DType of = index_dtype();
    const bool stray = chance(0.3) || extent == 0;
    const double low = stray && of != DType::u8 ? -2 : 0;
    return SampleInput::integers({of, std::move(shape)}, low,
                                 static_cast<double>(extent + (stray ? 3 : 0)));
  }

 private:
  static int64_t rank(const std::vector<int64_t>& dims) {
    return static_cast<int64_t>(dims.size());
  }
  SampleInput wide_or_narrow(const TensorType& type, double wide) {
    const double range = chance(0.3) ? wide : 10;
    return SampleInput::integers(type, -range, range);
  }
  PhiloxStream draws_;
};

Attributes axis_attribute(int64_t axis) { return {{"axis", axis}}; }

Sample call(std::vector<SampleInput> inputs, Attributes attributes = {}) {
  return {.why = "random", .inputs = std::move(inputs), .attributes = std::move(attributes)};
}

Sample draw_elementwise(const OpDef& op, Draw& draw) {
  const Shape shape = draw.shape(0, 4);
  if (op.scalar == ScalarOp::select)
    return call({draw.operand_of(DType::boolean, shape), draw.operand(shape), draw.operand(shape)});
  if (op.scalar == ScalarOp::shift_left || op.scalar == ScalarOp::shift_right)
    return call({draw.operand(shape),
                 SampleInput::integers({draw.dtype, shape}, draw.dtype == DType::u8 ? 0 : -3, 70)});
  if (op.scalar == ScalarOp::cast) {
    // What a float beyond the integer's range becomes is left open; keep to small numbers.
    const SampleInput x = is_floating(draw.dtype)
                              ? SampleInput::uniform({draw.dtype, shape}, 0, 100)
                              : draw.operand(shape);
    return call({x}, {{"dtype", kAllDTypes[draw.below(std::size(kAllDTypes))]}});
  }
  std::vector<SampleInput> inputs;
  for (int i = 0; i < scalar_op_arity(op.scalar); ++i) inputs.push_back(draw.operand(shape));
  return call(std::move(inputs));
}

Sample draw_reduction(const OpDef&, Draw& draw) {
  const Shape shape = draw.shape(1, 4);
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < shape.rank(); ++axis)
    if (draw.chance(0.5)) axes.push_back(axis);
  return call({draw.operand(shape)}, {{"axes", axes}, {"keep_dims", draw.chance(0.3)}});
}

Sample draw_broadcast(const OpDef&, Draw& draw) {
  const Shape shape = draw.shape(0, 4);
  const auto dropped = static_cast<int>(draw.between(0, shape.rank()));
  Shape x = shape.slice(dropped, shape.rank());
  for (int axis = 0; axis < x.rank(); ++axis)
    if (draw.chance(0.4)) x[axis] = 1;
  return call({draw.operand(x)}, {{"shape", shape.dims()}});
}

Sample draw_reshape(const OpDef&, Draw& draw) {
  const Shape shape = draw.shape(0, 4);
  return call({draw.operand(shape)}, {{"shape", std::vector<int64_t>{1, shape.elements(), 1}}});
}

Sample draw_transpose(const OpDef&, Draw& draw) {
  const Shape shape = draw.shape(0, 4);
  std::vector<int64_t> permutation(static_cast<size_t>(shape.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  for (int64_t i = shape.rank() - 1; i > 0; --i)
    std::swap(permutation[static_cast<size_t>(i)],
              permutation[static_cast<size_t>(draw.below(i + 1))]);
  return call({draw.operand(shape)}, {{"permutation", permutation}});
}

Sample draw_slice(const OpDef&, Draw& draw) {
  const Shape shape = draw.shape(1, 4);
  const int64_t axis = draw.axis(shape);
  const int64_t extent = shape[static_cast<int>(axis)];
  const int64_t start = draw.between(0, extent);
  return call({draw.operand(shape)}, {{"axis", axis},
                                      {"start", start},
                                      {"stop", draw.between(start, extent)},
                                      {"stride", draw.chance(0.5) ? 1 : draw.between(1, 4)}});
}

Sample draw_pad(const OpDef&, Draw& draw) {
  const Shape shape = draw.shape(1, 4);
  const int64_t axis = draw.axis(shape);
  const bool crop = draw.chance(0.3) && shape[static_cast<int>(axis)] > 2;
  return call({draw.operand(shape)},
              {{"axis", axis},
               {"before", crop ? int64_t{-1} : draw.between(0, 5)},
               {"after", draw.chance(0.3) ? int64_t{-1} : draw.between(0, 5)},
               {"interior", draw.chance(0.6) ? 0 : draw.between(1, 3)}});
}

Sample draw_concat(const OpDef&, Draw& draw) {
  const Shape shape = draw.shape(1, 3);
  const int64_t axis = draw.axis(shape);
  std::vector<SampleInput> parts;
  for (int64_t i = draw.between(1, 4); i > 0; --i)
    parts.push_back(draw.operand(shape.with(static_cast<int>(axis), draw.extent() % 40)));
  return call(std::move(parts), axis_attribute(axis));
}

// One axis of one operand: reverse, argmax.
Sample draw_along_axis(const OpDef&, Draw& draw) {
  const Shape shape = draw.shape(1, 4);
  return call({draw.operand(shape)}, axis_attribute(draw.axis(shape)));
}

Sample draw_cumsum(const OpDef&, Draw& draw) {
  const Shape shape = draw.shape(1, 4);
  return call(
      {draw.operand(shape)},
      {{"axis", draw.axis(shape)}, {"exclusive", draw.chance(0.5)}, {"reverse", draw.chance(0.5)}});
}

Sample draw_sort(const OpDef&, Draw& draw) {
  return call({draw.operand(draw.shape(1, 3))}, {{"descending", draw.chance(0.5)}});
}

Sample draw_matmul(const OpDef&, Draw& draw) {
  const Shape leading = draw.chance(0.6) ? Shape{} : Shape{draw.between(1, 4)};
  int64_t m = draw.extent(), n = draw.extent(), k = draw.extent();
  while (m * n * k > 200000) (m >= n && m >= k ? m : n >= k ? n : k) /= 2;
  const bool transpose_a = draw.chance(0.5);
  const bool transpose_b = draw.chance(0.5);
  const auto matrix = [&](int64_t rows, int64_t columns, bool transposed) {
    Shape shape = leading.inserted(leading.rank(), transposed ? columns : rows);
    return draw.operand(shape.inserted(shape.rank(), transposed ? rows : columns));
  };
  return call(
      {matrix(m, k, transpose_a), matrix(k, n, transpose_b)},
      {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"wide", draw.chance(0.3)}});
}

Sample draw_gather(const OpDef&, Draw& draw) {
  const Shape x = draw.shape(1, 3);
  Shape indices;
  for (int64_t i = draw.between(0, 2); i > 0; --i)
    indices = indices.inserted(0, draw.extent() % 20);
  return call({draw.operand(x), draw.indices(indices, x[0])});
}

// Forward alone: what the inverse says is no matter, so it need not fit.
Sample draw_gather_sum(const OpDef&, Draw& draw) {
  const Shape x = draw.shape(1, 3);
  const auto table = [&](int64_t rows) {
    const int64_t most = draw.chance(0.5) ? 1 : draw.between(0, 4);
    return SampleInput::integers({DType::i32, {rows, most}}, -2, static_cast<double>(x[0] + 2));
  };
  std::vector<SampleInput> inputs = {draw.operand(x), table(draw.extent()), table(x[0])};
  if (draw.chance(0.4)) {
    const auto rows = static_cast<double>(inputs[1].type.shape[0]);
    inputs.push_back(SampleInput::given({DType::i64, {}}, {rows}));
    inputs.push_back(SampleInput::integers({DType::i64, {}}, -1, static_cast<double>(x[0] + 2)));
  }
  return call(std::move(inputs));
}

Sample draw_scatter_add(const OpDef&, Draw& draw) {
  const Shape updates = draw.shape(1, 3);
  const Shape indices = updates.slice(0, static_cast<int>(draw.between(0, updates.rank())));
  const int64_t rows = draw.extent();
  return call({draw.operand(updates), draw.indices(indices, rows)}, {{"rows", rows}});
}

Sample draw_take_along_axis(const OpDef&, Draw& draw) {
  const Shape x = draw.shape(1, 3);
  const auto axis = static_cast<int>(draw.axis(x));
  return call({draw.operand(x), draw.indices(x.with(axis, draw.extent() % 40), x[axis])},
              axis_attribute(axis));
}

Sample draw_scatter_along_axis(const OpDef&, Draw& draw) {
  const Shape updates = draw.shape(1, 3);
  const int64_t extent = draw.extent();
  return call({draw.operand(updates), draw.indices(updates, extent)},
              {{"axis", draw.axis(updates)}, {"extent", extent}});
}

SampleInput window_start(int64_t extent) {
  return SampleInput::integers({DType::i64, {}}, -3, static_cast<double>(extent + 4));
}

Sample draw_dynamic_slice(const OpDef&, Draw& draw) {
  const Shape x = draw.shape(1, 3);
  const int64_t axis = draw.axis(x);
  const int64_t extent = x[static_cast<int>(axis)];
  return call({draw.operand(x), window_start(extent)},
              {{"axis", axis}, {"extent", draw.between(0, extent)}});
}

Sample draw_dynamic_update_slice(const OpDef&, Draw& draw) {
  const Shape x = draw.shape(1, 3);
  const auto axis = static_cast<int>(draw.axis(x));
  const Shape update = x.with(axis, draw.between(0, x[axis]));
  return call({draw.operand(x), draw.operand(update), window_start(x[axis])}, axis_attribute(axis));
}

Sample draw_iota(const OpDef&, Draw& draw) {
  const Shape shape = draw.shape(1, 4);
  return call({}, {{"dtype", draw.dtype}, {"shape", shape.dims()}, {"axis", draw.axis(shape)}});
}

using Drawer = Sample (*)(const OpDef&, Draw&);

Drawer drawer_of(const OpDef& op) {
  static const std::map<std::string_view, Drawer> by_name = {
      {"argmax", draw_along_axis},
      {"broadcast_to", draw_broadcast},
      {"concat", draw_concat},
      {"cumsum", draw_cumsum},
      {"dynamic_slice", draw_dynamic_slice},
      {"dynamic_update_slice", draw_dynamic_update_slice},
      {"gather", draw_gather},
      {"gather_sum", draw_gather_sum},
      {"iota", draw_iota},
      {"matmul", draw_matmul},
      {"pad", draw_pad},
      {"reshape", draw_reshape},
      {"reverse", draw_along_axis},
      {"scatter_add", draw_scatter_add},
      {"scatter_along_axis", draw_scatter_along_axis},
      {"slice", draw_slice},
      {"sort", draw_sort},
      {"take_along_axis", draw_take_along_axis},
      {"transpose", draw_transpose},
  };
  if (op.is(Tag::composite) || op.is(Tag::region)) return nullptr;
  if (op.is(Tag::elementwise)) return draw_elementwise;
  if (op.is(Tag::reduction)) return draw_reduction;
  const auto found = by_name.find(op.name);
  return found == by_name.end() ? nullptr : found->second;
}

bool is_legal(const OpDef& op, const Sample& sample) {
  std::vector<TensorType> types;
  for (const SampleInput& input : sample.inputs) types.push_back(input.type);
  try {
    op.infer({op, types, sample.attributes, nullptr, {}});
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

}  // namespace

std::vector<Sample> random_samples(const OpDef& op, uint64_t seed, int count) {
  const Drawer drawer = drawer_of(op);
  std::vector<Sample> samples;
  if (!drawer) return samples;
  // An op may refuse what was drawn (integers, an empty axis): draw again, with a limit that no op
  // comes near.
  const uint64_t key = hash_text(op.name, seed);
  for (uint64_t stream = 0; static_cast<int>(samples.size()) < count && stream < 1000; ++stream) {
    Draw draw(key, stream);
    if (draw.chance(0.4)) draw.dtype = kInexact[draw.below(std::size(kInexact))];
    Sample sample = drawer(op, draw);
    sample.why = fmt::format("random {}", stream);
    if (is_legal(op, sample)) samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace fullbore
