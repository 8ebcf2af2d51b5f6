// Work on the rows that are alive, and its gradients: equal to that on all rows, whatever the others hold.
#include "fullbore/ir/op_def.h"
#include "fullbore/ops/map_rows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "fullbore/device/interpret.h"
#include "fullbore/passes/pass.h"
#include "tests/support/device.h"
#include "tests/support/program_check.h"

namespace fullbore {
namespace {

using testing_support::compare_bits;
using testing_support::cpu_device;
using testing_support::run_graph;

constexpr int64_t kCapacity = 96;

/// Two layers with biases on live rows, four times in a loop that ends earlier by itself and in which rows die; the loss and
/// the gradients of all. `tiled`: by map_rows, else on all rows, those that are not alive masked out.
Graph step(bool tiled, DType dtype, int64_t tile_rows = 16, int64_t width = 24) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {dtype, {kCapacity, width}});
  const Tensor scale = builder.input("scale", Role::batch, {dtype, {kCapacity}});
  const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  const Tensor first = builder.input("first", Role::parameter, {dtype, {width, 2 * width}});
  const Tensor second = builder.input("second", Role::parameter, {dtype, {2 * width, width}});
  const Tensor bias = builder.input("bias", Role::parameter, {dtype, {2 * width}});
  const auto network = [&](const std::vector<Tensor>& rows) {
    const Tensor hidden = tanh(matmul(rows[0], first) + bias);
    return std::vector<Tensor>{tanh(matmul(hidden, second)) * expand_dims(rows[1], 1),
                               reduce_sum(hidden, {1})};
  };
  const auto among = [](Tensor live, Tensor y) {
    const Tensor row = iota(y.builder(), {DType::i64, {kCapacity}}, 0);
    const Tensor alive = less(row, live);
    return select(y.rank() == 2 ? expand_dims(alive, 1) : alive, y, 0.0);
  };
  const Tensor none = full(builder, {dtype, {kCapacity}}, 0);
  const LoopResult result =
      loop(builder, {x, count, none}, {}, {.iterations = 4}, [&](const LoopBody& body) {
        const Tensor live = body.carried[1];
        const std::vector<Tensor> rows = {body.carried[0], scale};
        std::vector<Tensor> made;
        if (tiled) {
          made = map_rows(live, tile_rows, rows, network);
        } else {
          made = network({among(live, rows[0]), among(live, rows[1])});
          for (Tensor& y : made) y = among(live, y);
        }
        const Tensor next = live - 7.0;
        return IterationResults{.carried = {made[0], next, body.carried[2] + made[1]},
                                .stacked = {},
                                .stop = less(next, 1.0)};
      });
  const Tensor wanted[] = {first, second, bias, x};
  const Tensor loss = reduce_sum(result.carried[0] * result.carried[0], {0, 1}) +
                      reduce_sum(result.carried[2], {0});
  builder.output("loss", loss);
  builder.output("rows", result.carried[0]);
  for (const Tensor& d : gradient(loss, wanted))
    builder.output(fmt::format("d{}", d.value().id), d);
  return builder.take();
}

/// Rows that are not alive are NaN.
std::vector<Literal> inputs_of(const Graph& graph, int64_t count, bool dead_are_nan = true) {
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    Literal literal(graph.type(input.value));
    const bool by_row = input.name == "x" || input.name == "scale";
    const int64_t width = by_row ? literal.elements() / kCapacity : 1;
    for (int64_t i = 0; literal.floating() && i < literal.elements(); ++i)
      literal.put(i, by_row && dead_are_nan && i / width >= count
                         ? std::numeric_limits<double>::quiet_NaN()
                         : static_cast<double>(i * 37 % 23 - 11) / 40);
    if (input.name == "count") literal.integers()[0] = count;
    literal.round();
    inputs.push_back(std::move(literal));
  }
  return inputs;
}

constexpr int64_t kCounts[] = {-3, 0, 1, 15, 16, 17, 40, kCapacity, kCapacity + 9};

void expect_near(const std::vector<Literal>& wanted, const std::vector<Literal>& found,
                 double bound, int64_t count) {
  ASSERT_EQ(wanted.size(), found.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    for (int64_t e = 0; e < wanted[i].elements(); ++e)
      EXPECT_NEAR(wanted[i].at(e), found[i].at(e), bound)
          << "count " << count << " output " << i << " element " << e;
}

TEST(MapRows, EqualsTheWorkOnAllRows) {
  const Graph whole = step(false, DType::f64);
  for (const int64_t tile_rows : {1, 16, 20, 1000})
    for (const int64_t count : kCounts) {
      const Graph tiled = step(true, DType::f64, tile_rows);
      const std::vector<Literal> wanted = interpret(whole, inputs_of(whole, count, false));
      const std::vector<Literal> inputs = inputs_of(tiled, count);
      expect_near(wanted, interpret(tiled, inputs), 1e-11, count);
      expect_near(wanted, run_graph(tiled, inputs, cpu_device(2), {}), 1e-11, count);
    }
}

TEST(MapRows, AnyNumberOfThreadsMakesTheSameBits) {
  const Graph whole = step(false, DType::f32);
  const Graph tiled = step(true, DType::f32);
  for (const int64_t count : kCounts) {
    const std::vector<Literal> inputs = inputs_of(tiled, count);
    const std::vector<Literal> alone = run_graph(tiled, inputs, cpu_device(1), {});
    expect_near(interpret(whole, inputs_of(whole, count, false)), alone, 1e-3, count);
    for (const int threads : {2, 3, 4})
      EXPECT_EQ(compare_bits(alone, run_graph(tiled, inputs, cpu_device(threads), {})), "")
          << threads << " threads, count " << count;
  }
}

int64_t nodes(const Graph& graph, std::string_view op, int depth, int at = 0) {
  int64_t found = 0;
  for (const Node& node : graph.nodes()) {
    found += depth == at && node.op->name == op;
    if (node.body) found += nodes(*node.body, op, depth, at + 1);
  }
  return found;
}

// Weights' gradients are added up within tiles, by matmuls of a tile's rows; none is of all rows, and weights are prepacked
// outside of both loops.
TEST(MapRows, WeightsGradientsAreSummedTileByTile) {
  for (const int64_t width : {24, 512}) {
    const Graph graph = run_passes(step(true, DType::f32, 16, width), cpu_device(2)->target());
    EXPECT_EQ(nodes(graph, "matmul_add", 2), 2);
    for (const char* const matmul : {"matmul", "matmul_add", "prepacked_matmul"}) {
      EXPECT_EQ(nodes(graph, matmul, 0), 0) << matmul;
      EXPECT_EQ(nodes(graph, matmul, 1), 0) << matmul;
    }
    EXPECT_EQ(nodes(graph, "prepack", 1) + nodes(graph, "prepack", 2), 0);
  }
}

/// Bytes that a run moves: all of them, and those that loops themselves copy or clear.
struct Bytes {
  double all = 0;
  double of_loops = 0;

  /// `live`: rows of tiles of 16; all iterations of every other loop are made.
  void add(const Plan& plan, const Graph& graph, const std::vector<PlannedLaunch>& launches,
           int64_t live, double times = 1) {
    const auto bytes_of = [&](int buffer) {
      return times * static_cast<double>(plan.buffers[static_cast<size_t>(buffer)].bytes);
    };
    for (const PlannedLaunch& launch : launches) {
      if (launch.kind == PlannedLaunch::Kind::copy) {
        const auto to = static_cast<size_t>(launch.buffers[1]);
        if (plan.buffers[to].space != Space::result) of_loops += 2 * bytes_of(launch.buffers[1]);
      } else if (launch.kind == PlannedLaunch::Kind::kernel) {
        all += times * node_cost(graph, graph.nodes()[static_cast<size_t>(launch.node)]).bytes;
      } else {
        const LoopPlan& loop = *launch.loop;
        const auto most = static_cast<double>(loop.iterations);
        const int64_t tiles = (live + 15) / 16;
        const double made = loop.iterations == kCapacity / 16 ? static_cast<double>(tiles) : 4;
        for (const LoopPlan::Carry& carry : loop.carries)
          of_loops += 2 * bytes_of(carry.to) * (carry.exchanged ? 1 : made);
        for (const int cleared : loop.cleared) of_loops += bytes_of(cleared) * (1 - made / most);
        add(plan, *graph.nodes()[static_cast<size_t>(launch.node)].body, loop.body, live,
            times * made);
      }
    }
  }
};

double share_of_loops(int64_t live) {
  const std::shared_ptr<Device> device = cpu_device(2);
  const Graph graph = step(true, DType::f32, 16, 64);
  State state(state_entries(graph), device);
  const Program program = Program::compile(graph, state);
  Bytes bytes;
  bytes.add(program.plan(), program.plan().graph, program.plan().launches, live);
  return bytes.of_loops / (bytes.all + bytes.of_loops);
}

// Where few rows are alive, zeros of tiles that were not made count for more (docs/design/loops.md).
TEST(MapRows, LoopsThemselvesMoveLittle) { EXPECT_LT(share_of_loops(kCapacity), 0.02); }

TEST(MapRows, CountAndRowsMayBelongToDifferentGraphs) {
  const auto graph = [](bool tiled) {
    GraphBuilder builder("step");
    const Tensor x = builder.input("x", Role::batch, {DType::f64, {kCapacity, 2}});
    const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
    const LoopResult result =
        loop(builder, {x, count}, {}, {.iterations = 2}, [&](const LoopBody& body) {
          const Tensor doubled = body.carried[0] * 2.0;
          if (!tiled) return IterationResults{.carried = {doubled, body.carried[1] - 3.0}};
          const auto twice = [](const std::vector<Tensor>& tile) {
            return std::vector<Tensor>{tile[0] * 2.0};
          };
          const Tensor inside = map_rows(count, 8, {body.carried[0]}, twice)[0];
          const Tensor outside = map_rows(body.carried[1], 8, {x}, twice)[0];
          return IterationResults{.carried = {inside + 0.0 * outside, body.carried[1] - 3.0}};
        });
    builder.output("y", result.carried[0]);
    return builder.take();
  };
  const Graph tiled = graph(true), whole = graph(false);
  const std::vector<Literal> inputs = inputs_of(tiled, kCapacity);
  expect_near(interpret(whole, inputs), run_graph(tiled, inputs, cpu_device(2), {}), 1e-12,
              kCapacity);
}

TEST(MapRows, RefusesWhatHasOtherRows) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {8, 3}});
  const Tensor y = builder.input("y", Role::batch, {DType::f32, {6, 3}});
  const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  const auto same = [](const std::vector<Tensor>& tile) { return tile; };
  const auto sum = [](const std::vector<Tensor>& tile) {
    return std::vector<Tensor>{reduce_sum(tile[0], {0})};
  };
  EXPECT_THROW(map_rows(count, 4, {x, y}, same), UsageError);
  EXPECT_THROW(map_rows(count, 4, {}, same), UsageError);
  EXPECT_THROW(map_rows(x, 4, {x}, same), UsageError);
  EXPECT_THROW(map_rows(count, 4, {x}, sum), UsageError);
}

}  // namespace
}  // namespace fullbore
