// Which stacks have to be zeroed where iterations were not made.
#include "fullbore/plan/stacked_rows.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fullbore/autodiff/backward.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/ops.h"
#include "fullbore/passes/pass.h"
#include "fullbore/plan/plan.h"

namespace fullbore {
namespace {

constexpr int64_t kIterations = 6;
constexpr int64_t kTiles = 4;

Plan plan_of(Graph graph) {
  return make_plan(std::move(graph), *open_device("null")->compiler(), {.workers = 2});
}

int64_t cleared(const std::vector<PlannedLaunch>& launches) {
  int64_t count = 0;
  for (const PlannedLaunch& launch : launches)
    if (launch.loop)
      count += static_cast<int64_t>(launch.loop->cleared.size()) + cleared(launch.loop->body);
  return count;
}
int64_t cleared(Graph graph) { return cleared(plan_of(std::move(graph)).launches); }

/// Stacks the rows of exp(x), as many as `count` says or until the sum of one is large.
struct Stacked {
  GraphBuilder builder{"step"};
  Tensor x = builder.input("x", Role::batch, {DType::f32, {kIterations, 3}});
  Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  Tensor rows, executed;

  explicit Stacked(bool until, bool reverse = false) {
    LoopOptions options{.iterations = kIterations, .reverse = reverse};
    if (!until) options.count = count;
    const LoopResult result = loop(builder, {}, {x}, options, [&](const LoopBody& body) {
      IterationResults step{.carried = {}, .stacked = {exp(body.slices[0])}};
      if (until) step.stop = greater(reduce_sum(step.stacked[0], {0}), 4.0);
      return step;
    });
    rows = result.stacked[0];
    executed = result.executed;
  }
  /// The sum of what a loop reads row by row.
  Tensor sum(Tensor of, Tensor made, bool reverse = false) {
    LoopOptions options{.iterations = kIterations, .reverse = reverse};
    if (made.valid()) options.count = made;
    return loop(builder, {full(builder, {DType::f32, {3}}, 0)}, {of}, options,
                [](const LoopBody& body) {
                  return IterationResults{.carried = {body.carried[0] + body.slices[0]}};
                })
        .carried[0];
  }
  int64_t result(Tensor y) {
    builder.output("y", y);
    return cleared(builder.take());
  }
};

TEST(StackedRows, ReadersThatMakeTheSameIterationsReadNoOthers) {
  for (const bool until : {false, true})
    for (const bool reverse : {false, true}) {
      Stacked s(until);
      EXPECT_EQ(s.result(s.sum(s.rows, until ? s.executed : s.count, reverse)), 0);
    }
  Stacked backwards(false, true);
  EXPECT_EQ(backwards.result(backwards.sum(backwards.rows, backwards.count)), 0);
  Stacked moved(true);
  const Tensor same = stop_gradient(reshape(moved.rows, {kIterations, 3, 1}));
  EXPECT_EQ(moved.result(moved.sum(reshape(same, {kIterations, 3}), moved.executed)), 0)
      << "through views of the same rows";
}

TEST(StackedRows, OtherReadersReadZeros) {
  Stacked whole(true);
  EXPECT_EQ(whole.result(reduce_sum(whole.rows, {0})), 1);
  Stacked result(false);
  EXPECT_EQ(result.result(result.rows), 1) << "the caller may look at all of it";
  Stacked all(true);
  EXPECT_EQ(all.result(all.sum(all.rows, {})), 1) << "every iteration is made";
  Stacked other(false);
  EXPECT_EQ(other.result(other.sum(other.rows, minimum(other.count + 1.0, 6.0))), 1);
  Stacked more(true);
  EXPECT_EQ(more.result(more.sum(more.rows, more.count)), 1) << "that is not what was executed";
  Stacked last(true, true);
  EXPECT_EQ(last.result(last.sum(last.rows, last.executed)), 1)
      << "the rows that were made are the last ones";
  Stacked both(true);
  EXPECT_EQ(both.result(both.sum(both.rows, both.executed) + reduce_sum(both.rows, {0})), 1);
  Stacked split(true);
  const Tensor halves = reshape(split.rows, {2 * kIterations * 3 / 2});
  EXPECT_EQ(split.result(halves), 1) << "other rows";
  Stacked nobody(true);
  EXPECT_EQ(nobody.result(nobody.executed), 0);
}

/// Rows of the tiles that a counted loop stacks, gathered by who is told how many there are.
int64_t cleared_behind(bool counted, bool carried, bool read_elsewhere = false) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {kTiles, 5, 8}});
  const Tensor tiles = builder.input("tiles", Role::batch, {DType::i64, {}});
  const Tensor places = builder.input("places", Role::batch, {DType::i32, {kTiles * 5, 1}});
  const LoopResult steps =
      loop(builder, {reshape(x, {kTiles * 5, 8})}, {}, {.iterations = kIterations},
           [&](const LoopBody& step) {
             const auto gathered = [&](Tensor rows) {
               const Tensor count = tiles * 5.0;
               return gather_sum(rows, places, places,
                                 counted ? GatherSumCounts{count, count} : GatherSumCounts{});
             };
             const Tensor before = carried ? gathered(step.carried[0]) : step.carried[0];
             const LoopResult made =
                 loop(step.index.builder(), {}, {reshape(before, {kTiles, 5, 8})},
                      {.iterations = kTiles, .count = tiles}, [&](const LoopBody& tile) {
                        return IterationResults{.carried = {}, .stacked = {exp(tile.slices[0])}};
                      });
             const Tensor rows = reshape(made.stacked[0], {kTiles * 5, 8});
             IterationResults results{.carried = {carried ? rows : gathered(rows)}, .stacked = {}};
             if (read_elsewhere) results.stacked = {reduce_sum(rows, {0})};
             return results;
           });
  builder.output("y", carried ? gather_sum(steps.carried[0], places, places,
                                           counted ? GatherSumCounts{tiles * 5.0, tiles * 5.0}
                                                   : GatherSumCounts{})
                              : steps.carried[0]);
  if (read_elsewhere) builder.output("sums", steps.stacked[0]);
  return cleared(builder.take());
}

TEST(StackedRows, GathersThatAreToldHowManyThereAreReadNoOthers) {
  for (const bool carried : {false, true}) {
    EXPECT_EQ(cleared_behind(true, carried), 0) << carried;
    EXPECT_EQ(cleared_behind(false, carried), 1) << "-1 and what is there alike";
    EXPECT_EQ(cleared_behind(true, carried, true), 1) << "another reader";
  }
}

/// A loop that makes steps until it is told to stop, each of which makes as many tiles as a count that it carries says,
/// with a weight; and the gradient of it all.
Graph steps_of_tiles(bool same_count = true) {
  GraphBuilder builder("step");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {kTiles, 5, 8}});
  const Tensor count = builder.input("count", Role::batch, {DType::i64, {}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {8, 8}});
  const LoopResult steps =
      loop(builder, {x, count}, {}, {.iterations = kIterations}, [&](const LoopBody& step) {
        GraphBuilder& in = step.index.builder();
        const Tensor made = step.carried[1];
        const LoopResult tiles = loop(
            in, {}, {step.carried[0]}, {.iterations = kTiles, .count = made},
            [&](const LoopBody& tile) {
              return IterationResults{.carried = {}, .stacked = {tanh(matmul(tile.slices[0], w))}};
            });
        const Tensor read = same_count ? made : made + 1.0;
        const LoopResult more =
            loop(in, {}, {tiles.stacked[0]}, {.iterations = kTiles, .count = read},
                 [&](const LoopBody& tile) {
                   return IterationResults{.carried = {}, .stacked = {sin(tile.slices[0])}};
                 });
        const Tensor next = made - 1.0;
        return IterationResults{
            .carried = {more.stacked[0], next}, .stacked = {}, .stop = less_equal(next, 1.0)};
      });
  const Tensor loss = reduce_sum(steps.carried[0], {0, 1, 2});
  const Tensor wanted[] = {w};
  builder.output("dw", gradient(loss, wanted)[0]);
  return builder.take();
}

// Of all that the forward loops stack for the backward ones, nothing is zeroed: only `more`, which goes on whole, and of the
// backward loops the cotangents of whole values.
TEST(StackedRows, ResidualsOfLoopsWithinLoopsAreNotZeroed) {
  const Plan plan = plan_of(run_passes(steps_of_tiles(), open_device("null")->target()));
  int64_t stacked = 0;
  const auto loops = [&](auto& self, const std::vector<PlannedLaunch>& launches) -> void {
    for (const PlannedLaunch& launch : launches) {
      if (!launch.loop) continue;
      self(self, launch.loop->body);
      for (const int buffer : launch.loop->cleared) {
        const std::string& what = plan.buffers[static_cast<size_t>(buffer)].what;
        stacked += what.starts_with("row of stacked");
      }
    }
  };
  loops(loops, plan.launches);
  EXPECT_EQ(stacked, 0) << "rows of a stack around are residuals: " << plan_text(plan);
  EXPECT_GT(cleared(steps_of_tiles(false)), cleared(steps_of_tiles()));
}

}  // namespace
}  // namespace fullbore
