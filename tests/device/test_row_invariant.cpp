// engine.row_invariant, op by op: the first row of a call has the same bits alone as among others.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>
#include <set>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/linear_cross_entropy.h"
#include "fullbore/ops/ops.h"
#include "fullbore/ops/paged_attention.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"
#include "tests/support/samples.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::run_graph;

/// One node on its own, with values for its inputs.
struct Call {
  Graph graph;
  std::vector<Literal> inputs;
};

// Rows [0, count) of a literal, whose own are taken again and again.
Literal rows_of(const Literal& x, int64_t count) {
  Literal rows({x.dtype(), x.shape().with(0, count)});
  const int64_t each = x.elements() / x.shape()[0];
  for (int64_t i = 0; i < rows.elements(); ++i) {
    const int64_t from = i / each % x.shape()[0] * each + i % each;
    if (rows.floating())
      rows.reals()[static_cast<size_t>(i)] = x.reals()[static_cast<size_t>(from)];
    else
      rows.integers()[static_cast<size_t>(i)] = x.integers()[static_cast<size_t>(from)];
  }
  return rows;
}

// The call on so many rows, where what has the result's leading extent has rows; nothing if the op refuses.
std::optional<Call> with_rows(const MaterialisedSample& sample, int64_t count) {
  const Node& node = sample.graph.nodes()[0];
  const Shape& result = sample.graph.type(node.outputs[0]).shape;
  if (result.rank() == 0 || result[0] == 0) return std::nullopt;
  Call call{Graph("rows"), {}};
  std::vector<Value> operands;
  std::vector<TensorType> types;
  bool any = false;
  for (const Literal& x : sample.inputs) {
    const bool has_rows = x.shape().rank() > 0 && x.shape()[0] == result[0];
    any |= has_rows;
    call.inputs.push_back(has_rows ? rows_of(x, count) : x);
    types.push_back(call.inputs.back().type());
    operands.push_back(
        call.graph.add_input(fmt::format("x{}", operands.size()), Role::batch, types.back()));
  }
  if (!any) return std::nullopt;
  try {
    if (node.op->infer({*node.op, types, node.attributes, nullptr, {}})[0].shape[0] != count)
      return std::nullopt;
  } catch (const UsageError&) {
    return std::nullopt;
  }
  const Node& made = call.graph.add_node_like(node, *node.op, operands, node.attributes, node.body);
  call.graph.add_output("y", made.outputs[0], -1);
  return call;
}

// The first rows, if they are equal.
std::string first_row_difference(const Literal& one, const Literal& many) {
  for (int64_t i = 0; i < one.elements(); ++i) {
    const double a = one.at(i), b = many.at(i);
    if (a != b && !(std::isnan(a) && std::isnan(b)))
      return fmt::format("element {} is {} alone and {} among others", i, a, b);
  }
  return "";
}

bool is_recurrent(const OpDef& op) {
  return op.name.starts_with("recurrence") || op.name.ends_with("recurrence") ||
         op.name == "wkv6" || op.name == "ssd";
}

// More rows than dot products serve, and rows of which copies are made.
constexpr int64_t kMany[] = {18, 200};
constexpr int kMostSamples = 4;  // of an op: a program is made for each of them and number of rows

class RowInvariantOps : public testing::Test {
 protected:
  // Is each row the op's own affair, by its definition? Others may be copies, and are then made to differ: what is a mean
  // over all of them is no such op.
  static bool is_row_wise(const Call& one, Call many) {
    const Literal alone = interpret(one.graph, one.inputs)[0];
    for (const bool differ : {false, true}) {
      for (size_t i = 0; differ && i < many.inputs.size(); ++i) {
        Literal& x = many.inputs[i];
        if (!x.floating() || x.shape() == one.inputs[i].shape()) continue;
        for (auto at = static_cast<size_t>(one.inputs[i].elements()); at < x.reals().size(); ++at)
          x.reals()[at] *= 2;
      }
      if (!first_row_difference(alone, interpret(many.graph, many.inputs)[0]).empty()) return false;
    }
    return true;
  }

  // How many samples were looked at.
  int check(const OpDef& op) {
    int checked = 0;
    for (const Sample& sample : op.samples()) {
      if (checked == kMostSamples) break;
      const MaterialisedSample made = materialise(op, sample, DType::f32, 5);
      const std::optional<Call> one = with_rows(made, 1);
      const std::optional<Call> few = with_rows(made, 3);
      if (!one || !few || !is_row_wise(*one, *few)) continue;
      ++checked;
      const Literal alone = run_graph(one->graph, one->inputs, device_, options_)[0];
      for (const int64_t count : kMany) {
        const Call many = *with_rows(made, count);
        EXPECT_EQ(
            first_row_difference(alone, run_graph(many.graph, many.inputs, device_, options_)[0]),
            "")
            << op.name << ", " << sample.why << ", " << count << " rows";
      }
    }
    return checked;
  }

  const std::shared_ptr<Device> device_ = cpu_device(1);
  CompileOptions options_{.row_invariant = true};
};

TEST_F(RowInvariantOps, FirstRowsAreTheSameAloneAndAmongOthers) {
  std::set<std::string_view> checked;
  for (const OpDef* op : all_ops()) {
    const bool sums = op->is(Tag::reduction) || op->is(Tag::contraction) || op->is(Tag::composite);
    if (!sums || op->is(Tag::region) || is_recurrent(*op)) continue;
    if (check(*op) > 0) checked.insert(op->name);
  }
  std::set<std::string_view> missing = {
      "matmul",      "matmul_add",    "prepacked_matmul", "softmax",   "log_softmax",
      "log_sum_exp", "cross_entropy", "reduce_sum",       "attention", "packed_attention",
      "layer_norm",  "rms_norm",      "quantized_linear", "gelu"};
  for (const std::string_view op : checked) missing.erase(op);
  EXPECT_THAT(missing, testing::IsEmpty());
}

TEST_F(RowInvariantOps, RecurrencesAreRefused) {
  const OpDef& op = get_op("wkv6");
  const MaterialisedSample made = materialise(op, op.samples()[0], DType::f32, 5);
  try {
    run_graph(made.graph, made.inputs, device_, options_);
    FAIL() << "nothing was refused";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("engine.row_invariant=false"));
  }
}

TEST_F(RowInvariantOps, PrecisionsThatRoundBetweenKernelsAreRefused) {
  options_.precision = DType::bf16;
  try {
    compile_target(*device_, options_);
    FAIL() << "nothing was refused";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("engine.precision=fp32"));
  }
  options_.precision = DType::f32;
  options_.decomposed = {"packed_attention"};
  EXPECT_THROW(compile_target(*device_, options_), UsageError);
}

// Keys are the same wherever they lie among others that are hidden: across the ends of tiles, and beyond as many as are
// scored once.
TEST_F(RowInvariantOps, KeysAmongOthersThatAreNotSeen) {
  constexpr int64_t kSeen = 90, kAll = 4200, kWidth = 20, kHeads = 2;
  for (const int64_t queries : {2, 6}) {
    const auto random = [](Shape shape, uint64_t stream) {
      return fill(SampleInput::normal({DType::f32, std::move(shape)}), DType::f32, 3, stream);
    };
    const Literal q = random({1, kHeads, queries, kWidth}, 0);
    const Literal k = random({1, kHeads, kSeen, kWidth}, 1), v = random(k.shape(), 2);
    const auto attend = [&](int64_t keys, int64_t first) {
      const auto among = [&](const Literal& x, uint64_t stream) {
        Literal all = random({1, kHeads, keys, kWidth}, stream);
        for (int64_t i = 0; i < x.elements(); ++i) {
          const int64_t head = i / (kSeen * kWidth);
          all.put(head * keys * kWidth + first * kWidth + i % (kSeen * kWidth), x.at(i));
        }
        return all;
      };
      Literal mask({DType::boolean, {1, 1, 1, keys}});
      for (int64_t key = first; key < first + kSeen; ++key) mask.put(key, 1);
      GraphBuilder builder("attention");
      const Literal operands[] = {q, among(k, 3), among(v, 4), mask};
      std::vector<Tensor> x;
      for (const Literal& each : operands)
        x.push_back(builder.input(fmt::format("x{}", x.size()), Role::batch, each.type()));
      builder.output("y", attention(x[0], x[1], x[2], {.mask = x[3]}));
      return run_graph(builder.take(), operands, device_, options_)[0];
    };
    const Literal alone = attend(kSeen, 0);
    for (const auto& [keys, first] : {std::pair<int64_t, int64_t>{200, 37}, {kAll, 4070}}) {
      const Literal y = attend(keys, first);
      for (int64_t i = 0; i < y.elements(); ++i)
        ASSERT_EQ(alone.at(i), y.at(i)) << queries << " queries, " << keys << " keys, " << i;
    }
  }
}

// A pool of 16 bits is that of f32 which holds the same numbers: they are widened, and everything else stays.
TEST_F(RowInvariantOps, PagesOf16BitsGiveTheBitsOfTheSameNumbersInF32) {
  constexpr int64_t kRows = 3, kHeads = 4, kGroups = 2, kWidth = 44, kPages = 5, kTokens = 16;
  const auto random = [](const TensorType& type, uint64_t stream) {
    return fill(SampleInput::normal(type), DType::f32, 4, stream);
  };
  const Literal q = random({DType::f32, {kRows, kHeads, kWidth}}, 0);
  Literal pages({DType::i32, {kRows, kPages}}), seen({DType::i64, {kRows}});
  for (int64_t i = 0; i < pages.elements(); ++i)
    pages.put(i, static_cast<double>(i * 7 % (kRows * kPages)));
  pages.put(1, -1);
  seen.put(0, 70), seen.put(1, 33), seen.put(2, 80);
  const auto attend = [&](const Literal& keys, const Literal& values) {
    GraphBuilder builder("attention");
    const Literal operands[] = {q, keys, values, pages, seen};
    std::vector<Tensor> x;
    for (const Literal& each : operands)
      x.push_back(builder.input(fmt::format("x{}", x.size()), Role::batch, each.type()));
    builder.output("y", paged_attention(x[0], x[1], x[2], x[3], x[4],
                                        {.groups = kGroups, .page_tokens = kTokens, .window = 60}));
    return run_graph(builder.take(), operands, device_, options_)[0];
  };
  const Shape pool{kRows * kPages * kTokens, kGroups * kWidth};
  for (const DType kept : {DType::bf16, DType::f16}) {
    const Literal keys = random({kept, pool}, 1), values = random({kept, pool}, 2);
    const auto widened = [&](const Literal& x) {
      Literal wide({DType::f32, pool});
      for (int64_t i = 0; i < x.elements(); ++i) wide.put(i, x.at(i));
      return wide;
    };
    const Literal narrow = attend(keys, values), wide = attend(widened(keys), widened(values));
    for (int64_t i = 0; i < wide.elements(); ++i)
      ASSERT_EQ(narrow.at(i), wide.at(i)) << dtype_name(kept) << ", " << i;
    EXPECT_NE(wide.at(0), 0);
  }
}

// Completions of a prompt begin with the same pages, which are read for all of them at once; of the last page that they have in
// common each sees as much as it has.
TEST_F(RowInvariantOps, RowsOnTheSamePagesHaveTheBitsThatTheyHaveAlone) {
  constexpr int64_t kRows = 11, kHeads = 4, kGroups = 2, kWidth = 32, kPages = 3, kTokens = 16;
  Literal pages({DType::i32, {kRows, kPages}}), seen({DType::i64, {kRows}});
  for (int64_t row = 0; row < kRows; ++row) {
    pages.put(row * kPages, row < 9 ? 2 : 3);
    pages.put(row * kPages + 1, row == 4 ? 5 : 1);
    pages.put(row * kPages + 2, static_cast<double>(6 + row));
    seen.put(row, static_cast<double>(row == 6 ? 0 : 17 + row * 5 % 29));
  }
  const Shape pool{(6 + kRows) * kTokens, kGroups * kWidth};
  for (const bool row_invariant : {true, false})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      if (row_invariant && dtype != DType::f32) continue;
      options_.row_invariant = row_invariant;
      const auto random = [&](Shape shape, uint64_t stream) {
        return fill(SampleInput::normal({dtype, std::move(shape)}), dtype, 4, stream);
      };
      const Literal q = random({kRows, kHeads, kWidth}, 0);
      const Literal keys = random(pool, 1), values = random(pool, 2);
      const auto attend = [&](int64_t first, int64_t rows) {
        const auto part = [&](const Literal& x) {
          const int64_t row = x.elements() / kRows;
          Literal some({x.dtype(), x.shape().with(0, rows)});
          for (int64_t i = 0; i < some.elements(); ++i) some.put(i, x.at(first * row + i));
          return some;
        };
        GraphBuilder builder("attention");
        const Literal operands[] = {part(q), keys, values, part(pages), part(seen)};
        std::vector<Tensor> x;
        for (const Literal& each : operands)
          x.push_back(builder.input(fmt::format("x{}", x.size()), Role::batch, each.type()));
        builder.output("y", paged_attention(x[0], x[1], x[2], x[3], x[4],
                                            {.groups = kGroups, .page_tokens = kTokens}));
        return run_graph(builder.take(), operands, device_, options_)[0];
      };
      const Literal together = attend(0, kRows);
      for (int64_t row = 0; row < kRows; ++row) {
        const Literal alone = attend(row, 1);
        for (int64_t i = 0; i < alone.elements(); ++i)
          ASSERT_EQ(alone.at(i), together.at(row * alone.elements() + i))
              << dtype_name(dtype) << ", row " << row << ", " << i;
      }
    }
}

// The head in blocks of rows, with its gradient, against one row at a time.
TEST_F(RowInvariantOps, LogProbabilitiesOfAHeadInBlocks) {
  constexpr int64_t kRows = 37, kWidth = 45, kClasses = 131;
  const auto random = [](Shape shape, uint64_t stream) {
    return fill(SampleInput::normal({DType::f32, std::move(shape)}), DType::f32, 9, stream);
  };
  const Literal hidden = random({kRows, kWidth}, 0), weight = random({kClasses, kWidth}, 1);
  const Literal targets =
      fill(SampleInput::integers({DType::i32, {kRows}}, 0, kClasses), DType::f32, 9, 2);
  const auto run = [&](const Literal& h, const Literal& t, bool blocks) {
    GraphBuilder builder("head");
    const Tensor x = builder.input("hidden", Role::batch, h.type());
    const Tensor w = builder.input("weight", Role::batch, weight.type());
    const Tensor y = builder.input("targets", Role::batch, t.type());
    if (blocks) {
      builder.output("next", linear_cross_entropy_losses(x, w, y, {.rows = 8}));
      const Tensor wanted[] = {x, w};
      const Tensor sum = linear_cross_entropy(x, w, y, {.rows = 8});
      const std::vector<Tensor> slopes = gradient(sum, wanted);
      builder.output("dx", slopes[0]);
      builder.output("dw", slopes[1]);
    } else {
      const Tensor logs = log_softmax(linear(x, w), 1);
      builder.output("next", squeeze(take_along_axis(logs, expand_dims(y, 1), 1), 1) * -1.0);
    }
    const Literal operands[] = {h, weight, t};
    return run_graph(builder.take(), operands, device_, options_)[0];
  };
  const Literal together = run(hidden, targets, true);
  for (int64_t row = 0; row < kRows; ++row) {
    Literal h({DType::f32, {1, kWidth}}), t({DType::i32, {1}});
    for (int64_t i = 0; i < kWidth; ++i) h.put(i, hidden.at(row * kWidth + i));
    t.put(0, targets.at(row));
    ASSERT_EQ(run(h, t, false).at(0), together.at(row)) << "row " << row;
  }
}

}  // namespace
}  // namespace fullbore
