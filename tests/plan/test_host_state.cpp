// Moments in the host's memory: copies stand ahead of who reads them and behind who writes them, in memory that the arena has
// anyway.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "fullbore/ops/ops.h"
#include "fullbore/plan/launch_list.h"
#include "fullbore/plan/plan.h"
#include "fullbore/plan/timeline.h"
#include "tests/plan/host_state_steps.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using testing_support::kMomentBytes;
using testing_support::planned;
using testing_support::step_of;
using testing_support::update;

std::string what(const Plan& plan, int buffer) {
  return plan.buffers[static_cast<size_t>(buffer)].what;
}

TEST(HostState, IsReadBeforeItsReaderAndWrittenBehindItsWriter) {
  const Plan plan = planned(step_of(3), true);
  EXPECT_EQ(plan.host_bytes, 3 * kMomentBytes);
  EXPECT_EQ(plan.state_bytes, 3 * kMomentBytes);
  EXPECT_EQ(host_traffic(plan).read, 3 * kMomentBytes);
  EXPECT_EQ(host_traffic(plan).written, 3 * kMomentBytes);
  std::map<int, size_t> brought;  // staged buffer -> its copy
  std::map<std::string, int> written;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const PlannedLaunch& launch = plan.launches[i];
    switch (host_end(plan, launch)) {
      case HostEnd::from: brought[launch.buffers[1]] = i; break;
      case HostEnd::to: {
        ++written[what(plan, launch.buffers[1])];
        // In place, in what was brought: some launch between has written it.
        ASSERT_TRUE(brought.contains(launch.buffers[0])) << what(plan, launch.buffers[0]);
        const auto begin = plan.launches.begin() + static_cast<long>(brought[launch.buffers[0]]);
        EXPECT_TRUE(std::any_of(begin + 1, plan.launches.begin() + static_cast<long>(i),
                                [&](const PlannedLaunch& each) {
                                  return each.kind == PlannedLaunch::Kind::kernel &&
                                         each.buffers.back() == launch.buffers[0];
                                }));
        break;
      }
      case HostEnd::none:
        for (const int buffer : launch.buffers) {
          EXPECT_FALSE(plan.buffers[static_cast<size_t>(buffer)].in_host) << what(plan, buffer);
          if (what(plan, buffer).starts_with("staged")) {
            EXPECT_TRUE(brought.contains(buffer)) << i;
          }
        }
    }
  }
  EXPECT_EQ(written, (std::map<std::string, int>{{"m0", 1}, {"m1", 1}, {"m2", 1}}));
  EXPECT_THAT(plan_text(plan), HasSubstr("State in the host's memory 12288"));
}

// What nobody asked for is planned as before.
TEST(HostState, IsTheDevicesUnlessItIsAskedFor) {
  const Plan plan = planned(step_of(3), false);
  EXPECT_EQ(plan.host_bytes, 0);
  EXPECT_EQ(plan.state_bytes, 6 * kMomentBytes);
  EXPECT_TRUE(std::ranges::none_of(plan.launches, [&](const PlannedLaunch& launch) {
    return host_end(plan, launch) != HostEnd::none;
  }));
}

// Activations no longer take their memory when moments are brought: the plan has less by all of them, and they come
// launches before they are read. The last of them, which need not wait for one another's place, are written to the end.
TEST(HostState, TakesTheMemoryThatActivationsHaveLeft) {
  const Plan plan = planned(step_of(6), true), without = planned(step_of(6), false);
  const int64_t extra = plan.host_bytes / 8;
  EXPECT_LE(plan.arena_bytes, without.arena_bytes + kMomentBytes + extra);
  EXPECT_LE(plan.peak_bytes(), without.peak_bytes() - plan.host_bytes + kMomentBytes + extra);
  std::map<int, size_t> brought, read;
  for (size_t i = 0; i < plan.launches.size(); ++i) {
    const PlannedLaunch& launch = plan.launches[i];
    if (host_end(plan, launch) == HostEnd::from) brought[launch.buffers[1]] = i;
    if (launch.kind == PlannedLaunch::Kind::kernel)
      for (const int buffer : launch.buffers) read.emplace(buffer, i);
  }
  ASSERT_EQ(brought.size(), 6U);
  for (const auto& [buffer, at] : brought) EXPECT_GE(read.at(buffer), at + 6) << what(plan, buffer);
}

// Places are shared at no moment, copies included: each is made in the moments of its staged buffer.
TEST(HostState, IsAloneInItsPlace) {
  const Plan plan = planned(step_of(6), true);
  for (size_t a = 0; a < plan.buffers.size(); ++a)
    for (size_t b = 0; b < a; ++b) {
      const Buffer &x = plan.buffers[a], &y = plan.buffers[b];
      if (x.space != Space::arena || y.space != Space::arena || x.bytes == 0 || y.bytes == 0)
        continue;
      const bool at_once = (x.first <= y.last && y.first <= x.last) || x.first <= y.again ||
                           y.first <= x.again || (x.again >= 0 && y.again >= 0);
      const bool same = x.offset < y.offset + y.bytes && y.offset < x.offset + x.bytes;
      EXPECT_FALSE(at_once && same) << x.what << " and " << y.what;
    }
  EXPECT_EQ(live_bytes_by_entry(plan).size(), launch_list(plan).size());
}

// Copies to the host that nothing follows go on beside the next replay: at the end of the list, from bytes that it does not
// touch before it waits for them, and of State that it does not read before that.
TEST(HostState, IsWrittenBesideTheNextReplay) {
  const Plan plan = planned(step_of(6), true);
  const auto behind = std::ranges::find(plan.launches, true, &PlannedLaunch::behind);
  ASSERT_NE(behind, plan.launches.end());
  EXPECT_TRUE(std::all_of(behind, plan.launches.end(),
                          [](const PlannedLaunch& launch) { return launch.behind; }));
  ASSERT_GT(plan.first_waiting, 0U);
  ASSERT_LT(plan.first_waiting, static_cast<size_t>(behind - plan.launches.begin()));
  for (size_t i = 0; i < plan.first_waiting; ++i)
    for (const int touched : plan.launches[i].buffers) {
      const Buffer& x = plan.buffers[static_cast<size_t>(touched)];
      EXPECT_FALSE(x.in_host) << x.what;
      for (auto copy = behind; copy != plan.launches.end(); ++copy) {
        const Buffer& y = plan.buffers[static_cast<size_t>(copy->buffers[0])];
        EXPECT_GE(y.again, 0) << y.what;
        EXPECT_FALSE(x.space == Space::arena && x.offset < y.offset + y.bytes &&
                     y.offset < x.offset + x.bytes)
            << x.what << " and " << y.what;
      }
    }
}

// Copies may be what a step waits for: reads beside it, writes behind what comes before the first of them.
TEST(HostState, IsPriced) {
  const Plan plan = planned(step_of(3), true);
  MachinePeaks peaks{.fp32_flops = 1e12, .bf16_flops = 1e12, .bytes_per_second = 1e12};
  const double without = roofline_seconds(plan, peaks);
  peaks.host_bytes_per_second = 1e6;
  const double bus = 3 * kMomentBytes / 1e6;
  EXPECT_GE(roofline_seconds(plan, peaks), bus);
  EXPECT_LT(roofline_seconds(plan, peaks), bus + without);
  peaks.host_bytes_per_second = 1e18;
  EXPECT_NEAR(roofline_seconds(plan, peaks), without, 1e-6 * without);
  peaks.host_bytes_per_second = 1e6;
  for (const LaunchEntry& entry : launch_list(plan))
    if (host_end(plan, *entry.launch) != HostEnd::none) {
      EXPECT_THAT(launch_text(plan, entry), HasSubstr("host"));
      EXPECT_DOUBLE_EQ(launch_roofline_seconds(plan, entry, peaks), kMomentBytes / 1e6);
    }
}

// A new value that does not come of the old one may be there before that is read, and there is no room to bring that earlier, nor
// to keep this for the next replay.
TEST(HostState, IsReadBeforeItIsReplaced) {
  GraphBuilder builder("step");
  const TensorType type{DType::f32, {64, 16}};
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {8, 64, 16}}),
               m = builder.input("m", Role::moment, type);
  const Tensor fresh = reduce_sum(exp(x), {0});
  update(builder, "m", fresh);
  builder.output("sum", tanh(m) + tanh(fresh));
  builder.output("later", exp(reduce_sum(tanh(x), {0})));
  const Plan plan = planned(builder.take(), true);
  std::vector<HostEnd> ends;
  for (const PlannedLaunch& launch : plan.launches)
    if (host_end(plan, launch) != HostEnd::none) ends.push_back(host_end(plan, launch));
  EXPECT_EQ(ends, (std::vector{HostEnd::from, HostEnd::to}));
}

// What is kept as it is moves nowhere; what changes places is read as it was.
TEST(HostState, OfValuesThatNoNodeMakes) {
  GraphBuilder builder("step");
  const TensorType type{DType::f32, {64, 16}};
  const Tensor a = builder.input("a", Role::moment, type),
               b = builder.input("b", Role::moment, type);
  const Tensor c = builder.input("c", Role::moment, type);
  builder.input("unread", Role::moment, type);
  update(builder, "a", b);
  update(builder, "b", a);
  update(builder, "c", c);
  builder.output("was", a);
  const Plan plan = planned(builder.take(), true);
  EXPECT_EQ(host_traffic(plan).read, 2 * kMomentBytes);
  EXPECT_EQ(host_traffic(plan).written, 2 * kMomentBytes);
  EXPECT_EQ(plan.arena_bytes, 2 * kMomentBytes);
  EXPECT_EQ(plan.host_bytes, 4 * kMomentBytes);
}

}  // namespace
}  // namespace fullbore
