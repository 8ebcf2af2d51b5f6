#include "fullbore/ops/paged_attention.h"

#include <algorithm>
#include <cmath>

#include "fullbore/ops/compose.h"
#include "fullbore/ops/operand_names.h"
#include "fullbore/ops/rules.h"

namespace fullbore {
namespace {

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 5);
  require_dtype(call, 0, "q", DTypeSet::floating);
  require_rank(call, 0, "q", 3);
  const DType kept = call.inputs[1].dtype;
  if (kept != call.inputs[0].dtype && kept != DType::bf16 && kept != DType::f16)
    call.fail(fmt::format("needs keys of q's dtype, bf16 or f16 for {}, got {}",
                          operand_text("q", call.inputs[0]), operand_text("keys", call.inputs[1])));
  require_same_dtype(call, 1, "keys", 2, "values");
  require_rank(call, 1, "keys", 2);
  require_same_shape(call, 1, "keys", 2, "values");
  require_dtype(call, 3, "pages", DTypeSet::integer);
  require_rank(call, 3, "pages", 2);
  const auto positive = [&](std::string_view name) {
    const auto value = require_attribute<int64_t>(call, name);
    if (value < 1) call.fail(fmt::format("{} cannot be {}", name, value));
  };
  positive("groups");
  positive("page_tokens");
  require_attribute<double>(call, "scale");
  if (require_attribute<int64_t>(call, "window") < 0) call.fail("a negative window");
  const PagedAttentionShape shape(call.inputs, call.attributes);
  if (shape.heads % shape.groups != 0)
    call.fail(fmt::format("{} heads are not a multiple of {} groups", shape.heads, shape.groups));
  const TensorType keys{kept, {shape.pool, shape.groups * shape.width}};
  if (call.inputs[1] != keys)
    call.fail(fmt::format("needs keys {} for {}, got {}", keys.text(),
                          operand_text("q", call.inputs[0]), call.inputs[1].text()));
  if (call.inputs[3].shape[0] != shape.rows)
    call.fail(fmt::format("needs pages of {} rows, got {}", shape.rows, call.inputs[3].text()));
  OperandNames::note("seen", call.inputs[4]);
  const TensorType seen{DType::i64, {shape.rows}};
  if (call.inputs[4] != seen)
    call.fail(fmt::format("needs seen {}, got {}", seen.text(), call.inputs[4].text()));
  require_elements(call, {shape.rows, shape.places(), shape.groups, shape.width});
  return {call.inputs[0]};
}

std::vector<Tensor> decompose(const DecomposeCall& call) {
  const Tensor q = call.inputs[0], pages = call.inputs[3], seen = call.inputs[4];
  const std::vector<TensorType> types = {q.type(), call.inputs[1].type(), call.inputs[2].type(),
                                         pages.type(), seen.type()};
  const PagedAttentionShape shape(types, call.attributes);
  const int64_t rows = shape.rows, places = shape.places();
  const Tensor within = iota(q.builder(), {DType::i64, {rows, shape.pages, shape.page_tokens}}, 2);
  const Tensor first =
      expand_dims(cast(pages, DType::i64), 2) * static_cast<double>(shape.page_tokens);
  const Tensor at = reshape(select(less(first, 0.0), -1.0, first + within), {rows, places});
  const auto of_row = [&](Tensor pool) {
    const Tensor seen_rows = reshape(gather(pool, at), {rows, places, shape.groups, shape.width});
    return as_dtype(transpose(seen_rows, {0, 2, 1, 3}), q.dtype());
  };
  const Tensor place = iota(q.builder(), {DType::i64, {1, places}}, 1);
  const Tensor end = expand_dims(seen, 1);
  Tensor mask = less(place, end);
  if (shape.window > 0)
    mask = logical_and(mask, greater_equal(place, end - static_cast<double>(shape.window)));
  const Tensor y = attention(expand_dims(q, 2), of_row(call.inputs[1]), of_row(call.inputs[2]),
                             {.scale = shape.scale, .mask = reshape(mask, {rows, 1, 1, places})});
  return {squeeze(y, 2)};
}

/// One query of the reference, in double, and what a kernel's rounding may multiply: see ops/attention_reference.cpp.
struct ReferenceRow {
  const ReferenceCall& call;
  const PagedAttentionShape& shape;
  int64_t row, head;

  double operand(size_t input, int64_t index, int64_t d) const {
    const int64_t width = input == 0 ? shape.width : shape.groups * shape.width;
    const int64_t first =
        input == 0 ? 0 : head / shape.queries() * shape.width;  // of the head's group
    if (index < 0) return 0;
    return call.inputs[input]->reals()[static_cast<size_t>(index * width + first + d)];
  }
  /// -1 where there is none.
  int64_t pool_row(int64_t place) const {
    const int64_t page =
        call.inputs[3]
            ->integers()[static_cast<size_t>(row * shape.pages + place / shape.page_tokens)];
    const int64_t at = page * shape.page_tokens + place % shape.page_tokens;
    return page >= 0 && at < shape.pool ? at : -1;
  }

  void run(Literal& y, std::vector<double>& magnitudes) const {
    constexpr double kFew = 6;  // roundings of what is done once to each element
    const int64_t q = row * shape.heads + head;
    const int64_t seen = call.inputs[4]->integers()[static_cast<size_t>(row)];
    const int64_t end = std::clamp<int64_t>(seen, 0, shape.places());
    const int64_t begin = shape.window > 0 ? std::max<int64_t>(0, seen - shape.window) : 0;
    if (begin >= end) return;
    const double scale =
        round_to_dtype(shape.scale, y.dtype() == DType::f64 ? DType::f64 : DType::f32);
    std::vector<double> scores, slacks;
    for (int64_t place = begin; place < end; ++place) {
      double sum = 0, size = 0;
      for (int64_t d = 0; d < shape.width; ++d) {
        const double term = operand(0, q, d) * operand(1, pool_row(place), d);
        sum += term;
        size += std::abs(term);
      }
      scores.push_back(sum * scale);
      slacks.push_back((static_cast<double>(shape.width) + kFew) * size * std::abs(scale));
    }
    const double most = *std::ranges::max_element(scores);
    double total = 0, slack = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      // A score's error is a relative error of its weight; so is that of the largest, which is taken off.
      slacks[i] += 2 * std::abs(scores[i] - most);
      scores[i] = std::exp(scores[i] - most);
      total += scores[i];
      slack += scores[i] * slacks[i];
    }
    const double terms = static_cast<double>(scores.size()) + kFew;
    // Weights may be stored in q's dtype before they meet the values.
    const DType dtype = call.inputs[0]->dtype();
    const double stored = dtype_epsilon(dtype) / dtype_epsilon(compute_dtype(dtype));
    for (int64_t d = 0; d < shape.width; ++d) {
      double sum = 0, size = 0;
      for (int64_t place = begin; place < end; ++place) {
        const auto i = static_cast<size_t>(place - begin);
        const double value = operand(2, pool_row(place), d);
        sum += scores[i] / total * value;
        size +=
            scores[i] / total * std::abs(value) * (2 * terms + slacks[i] + slack / total + stored);
      }
      const auto at = static_cast<size_t>(q * shape.width + d);
      y.reals()[at] = sum;
      magnitudes[at] = size;
    }
  }
};

void reference(ReferenceCall& call) {
  std::vector<TensorType> types;
  for (const Literal* input : call.inputs) types.push_back(input->type());
  const PagedAttentionShape shape(types, call.attributes);
  std::vector<double> magnitudes(call.outputs[0].reals().size());
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t head = 0; head < shape.heads; ++head)
      ReferenceRow{call, shape, row, head}.run(call.outputs[0], magnitudes);
  call.magnitudes = {std::move(magnitudes)};
}

struct Sizes {
  int64_t rows, heads, groups, width, pages, page_tokens, window;
};

// A pool of twice the pages that the rows have room for; some pages are none, or beyond it. f32 stands for q's dtype. Of those
// pages the first `named` are drawn, all of them for 0.
Sample sample(std::string why, const Sizes& s, DType kept = DType::f32, int64_t named = 0) {
  if (named == 0) named = 2 * s.rows * s.pages;
  const Shape pool{2 * s.rows * s.pages * s.page_tokens, s.groups * s.width};
  return {.why = std::move(why),
          .inputs = {SampleInput::normal({DType::f32, {s.rows, s.heads, s.width}}),
                     SampleInput::normal({kept, pool}), SampleInput::normal({kept, pool}),
                     SampleInput::integers({DType::i32, {s.rows, s.pages}}, -1,
                                           static_cast<double>(named)),
                     SampleInput::integers({DType::i64, {s.rows}}, 0,
                                           static_cast<double>(s.pages * s.page_tokens + 1))},
          .attributes = {{"groups", s.groups},
                         {"page_tokens", s.page_tokens},
                         {"scale", 1 / std::sqrt(static_cast<double>(s.width))},
                         {"window", s.window}}};
}

std::vector<Sample> samples() {
  return {
      sample("heads with keys of their own", {3, 4, 4, 8, 3, 16, 0}),
      sample("heads that share keys", {3, 6, 2, 8, 2, 16, 0}),
      sample("one head, one place a page", {2, 1, 1, 3, 5, 1, 0}),
      sample("a window", {5, 2, 2, 4, 3, 4, 5}),
      sample("wider than a block of columns", {2, 2, 1, 130, 1, 16, 0}),
      sample("more places than a part of the scores", {2, 2, 2, 5, 9, 16, 0}),
      sample("no rows", {0, 2, 2, 4, 2, 16, 0}),
      sample("no pages", {2, 2, 1, 4, 0, 16, 0}),
      sample("a pool of bf16, heads of several vectors and a rest", {3, 4, 2, 83, 3, 16, 0},
             DType::bf16),
      sample("a pool of bf16, a window, pages that no vector fills", {4, 2, 2, 44, 7, 5, 12},
             DType::bf16),
      sample("a pool of f16", {3, 2, 1, 37, 2, 16, 0}, DType::f16),
      sample("heads of whole pairs of vectors", {3, 6, 2, 160, 2, 16, 0}),
      sample("rows that begin with the same page", {21, 2, 1, 32, 3, 16, 0}, DType::f32, 2),
      sample("the same, a window, pages of an odd number of places", {18, 2, 2, 96, 4, 5, 7},
             DType::f32, 1),
  };
}

std::vector<ErrorSample> errors() {
  const TensorType q{DType::f32, {2, 4, 8}}, keys{DType::f32, {64, 16}};
  const TensorType pages{DType::i32, {2, 3}}, seen{DType::i64, {2}};
  const auto with = [](int64_t groups, int64_t window) {
    return Attributes{
        {"groups", groups}, {"page_tokens", int64_t{16}}, {"scale", 1.0}, {"window", window}};
  };
  const TensorType wide{DType::f32, {64, 32}};
  return {
      {"no seen", {q, keys, keys, pages}, with(2, 0), "needs 5 operands, got 4"},
      {"integers",
       {{DType::i32, {2, 4, 8}}, keys, keys, pages, seen},
       with(2, 0),
       "needs floating q"},
      {"a wider pool",
       {q, {DType::f64, {64, 16}}, {DType::f64, {64, 16}}, pages, seen},
       with(2, 0),
       "needs keys of q's dtype, bf16 or f16 for q f32[2,4,8], got keys f64[64,16]"},
      {"values of another dtype",
       {q, {DType::bf16, {64, 16}}, keys, pages, seen},
       with(2, 0),
       "keys bf16[64,16] and values f32[64,16] differ in dtype"},
      {"values of another shape", {q, keys, wide, pages, seen}, with(2, 0), "differ in shape"},
      {"groups that do not divide the heads",
       {q, keys, keys, pages, seen},
       with(3, 0),
       "4 heads are not a multiple of 3 groups"},
      {"keys of other groups",
       {q, wide, wide, pages, seen},
       with(2, 0),
       "needs keys f32[64,16] for q f32[2,4,8], got f32[64,32]"},
      {"pages of other rows",
       {q, keys, keys, {DType::i32, {3, 3}}, seen},
       with(2, 0),
       "needs pages of 2 rows"},
      {"seen in 32 bits",
       {q, keys, keys, pages, {DType::i32, {2}}},
       with(2, 0),
       "needs seen i64[2], got i32[2]"},
      {"a negative window", {q, keys, keys, pages, seen}, with(2, -1), "a negative window"},
      {"no groups", {q, keys, keys, pages, seen}, with(0, 0), "groups cannot be 0"},
  };
}

// Of each place that is seen two dot products of a head; how many are is known at run time only, all at most.
Cost cost(const CostCall& call) {
  const PagedAttentionShape shape(call.inputs, call.attributes);
  const auto pairs = static_cast<double>(shape.rows * shape.heads * shape.places());
  const auto row = static_cast<double>(shape.groups * shape.width) *
                   static_cast<double>(dtype_bytes(shape.pool_dtype));
  return {pairs * (4 * static_cast<double>(shape.width) + 4 + scalar_op_flops(ScalarOp::exp)),
          2 * static_cast<double>(shape.rows * shape.places()) * row +
              2 * static_cast<double>(call.inputs[0].bytes())};
}

const OpRegistrar paged_attention_op(OpDef{
    .name = "paged_attention",
    .summary = "attention of one query a row to keys and values in pages of a pool",
    .tags = Tag::composite | Tag::contraction,
    .infer = infer,
    .decompose = decompose,
    .cost = cost,
    .reference = reference,
    .samples = samples,
    .error_samples = errors,
    .contracted_operands = 3,  // q, keys, values
});

}  // namespace

PagedAttentionShape::PagedAttentionShape(std::span<const TensorType> inputs,
                                         const Attributes& attributes)
    : rows(inputs[0].shape[0]),
      heads(inputs[0].shape[1]),
      width(inputs[0].shape[2]),
      groups(attributes.get<int64_t>("groups")),
      pool(inputs[1].shape[0]),
      pages(inputs[3].shape[1]),
      page_tokens(attributes.get<int64_t>("page_tokens")),
      window(attributes.get<int64_t>("window")),
      pool_dtype(inputs[1].dtype),
      scale(attributes.get<double>("scale")) {}

Tensor paged_attention(Tensor q, Tensor keys, Tensor values, Tensor pages, Tensor seen,
                       PagedAttentionOptions options, SourceLoc loc) {
  require_tensor("paged_attention", "q", q, loc);
  require_tensor("paged_attention", "keys", keys, loc);
  require_tensor("paged_attention", "values", values, loc);
  require_tensor("paged_attention", "pages", pages, loc);
  require_tensor("paged_attention", "seen", seen, loc);
  const double width = q.rank() > 0 ? static_cast<double>(q.dim(-1)) : 1;
  return apply("paged_attention", {q, keys, values, pages, seen},
               {{"groups", options.groups},
                {"page_tokens", options.page_tokens},
                {"scale", options.scale.value_or(1 / std::sqrt(width))},
                {"window", options.window}},
               loc);
}

}  // namespace fullbore
