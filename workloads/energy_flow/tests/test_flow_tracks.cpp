// The ways of flows through the lattice of section 11 of the specification, and their picture.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string>
#include <vector>

#include "workloads/energy_flow/flow_picture.h"
#include "workloads/energy_flow/tests/compiled_lattice.h"
#include "workloads/energy_flow/tests/test_weights.h"

namespace fullbore::energy_flow {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(FlowTracks, A3_HaveThePlacesOfEveryFlowInEveryStep) {
  reference::Networks networks = reference::test_networks({});
  const std::vector<double> energies = reference::test_energies(90);
  LatticeOptions options = options_of(reference::m1());
  options.tracks = true;
  const std::vector<Literal> results = evaluate_all(
      inputs_of(networks, energies, 2), [&](GraphBuilder&, const std::vector<Tensor>& inputs) {
        const FlowRun run =
            run_flows(options, rule_of(options, weights_of(inputs, networks.gru.size())),
                      inputs.back(), std::ssize(networks.gru), networks.hidden());
        const FlowTracks& t = run.tracks;
        return std::vector<Tensor>{
            cast(t.alive, DType::i32), t.id, t.from, t.to, t.energy, t.fate, run.counts};
      });
  const auto of = [&](size_t result, size_t step, size_t row, size_t axis, size_t axes) {
    const auto capacity = static_cast<size_t>(options.capacity);
    return elements(results[result])[((step * capacity) + row) * axes + axis];
  };
  const auto row_of = [&](size_t step, double id) {
    for (size_t row = 0; row < static_cast<size_t>(options.capacity); ++row)
      if (of(0, step, row, 0, 1) != 0 && of(1, step, row, 0, 1) == id) return row;
    ADD_FAILURE() << "no flow " << id << " in step " << step;
    return size_t{0};
  };
  const std::array<std::array<double, 3>, 4> places = {{{-0.876826984, -0.938499581, 0.166524948},
                                                        {-0.842658844, -0.480717685, 0.025999583},
                                                        {-0.657341156, 0.019282315, -0.474000417},
                                                        {-0.842658844, 0.519282315, -0.895352077}}};
  const std::array<double, 4> behind = {-0.584995090, -0.999976025, 0.427483992, 0.375567554};
  std::array<double, 3> before = {-1, -1, 0};
  for (size_t step = 0; step < 4; ++step) {
    const size_t row = row_of(step, 0);
    for (size_t axis = 0; axis < 3; ++axis) {
      EXPECT_NEAR(of(2, step, row, axis, 3), before[axis], 1e-8) << step;
      EXPECT_NEAR(of(3, step, row, axis, 3), places[step][axis], 1e-8) << step;
    }
    EXPECT_NEAR(of(4, step, row, 0, 1), behind[step], 1e-8);
    before = places[step];
  }
  const size_t last = row_of(3, 44);
  EXPECT_EQ(of(5, 3, last, 0, 1), static_cast<double>(FlowFate::left));
  EXPECT_NEAR(of(3, 3, last, 0, 3), 0.817200824, 1e-8);
  EXPECT_NEAR(of(3, 3, last, 2, 3), 1, 1e-12);
  EXPECT_EQ(of(5, 3, row_of(3, 0), 0, 1), static_cast<double>(FlowFate::projected));
  // Fates are what is counted.
  for (size_t step = 0; step < 4; ++step) {
    std::array<int64_t, 3> fates = {};
    for (size_t row = 0; row < static_cast<size_t>(options.capacity); ++row)
      if (of(0, step, row, 0, 1) != 0) ++fates[static_cast<size_t>(of(5, step, row, 0, 1))];
    const auto counted = [&](FlowCount which) {
      return static_cast<int64_t>(elements(
          results[6])[step * static_cast<size_t>(kFlowCounts) + static_cast<size_t>(which)]);
    };
    EXPECT_EQ(fates[1], counted(FlowCount::exits));
    EXPECT_EQ(fates[2], counted(FlowCount::projected));
    EXPECT_EQ(fates[0] + fates[1] + fates[2], counted(FlowCount::in));
  }
}

/// Three flows in two steps: one leaves, one has a child and dies, the child is still there.
FlowHistory history() {
  FlowHistory history;
  history.width = 3;
  history.height = 2;
  history.depth = 4;
  history.steps = 2;
  history.causes = {"energy"};
  history.by_step = {{2, 1, 0, 0, 1, 1, 2, 0}, {2, 0, 0, 0, 0, 0, 1, 1}};
  history.input = {0.5, -0.5, 0, 0.25, 1, -1};
  history.output = {0, 0, 0, 0, 0, 0};
  history.target = {0.5, -0.5, 0, 0.25, 1, 0};
  history.paths = {{0, 0, {{0, 0, 2}, {0.5, 0, 4}}, {0.9}, FlowFate::left, 0},
                   {1, 0, {{1, 0, 2}, {1, 1, 3}, {1, 1, 1}}, {0.2, -0.8}, FlowFate::died, 0},
                   {2, 1, {{1, 1, 3}, {2, 1, 3.5}}, {0.1}, FlowFate::stayed, 0}};
  return history;
}

size_t count(const std::string& text, const std::string& what) {
  size_t found = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

TEST(FlowPicture, ShowsWaysFatesPopulationAndSurfaces) {
  const std::string svg = flow_picture_svg(history(), "a <cat> & a dog > \x1b[2J");
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_EQ(count(svg, "<polyline"), 6U);                                // from two sides
  EXPECT_EQ(count(svg, "stroke-opacity=\"0.8\" stroke-dasharray"), 2U);  // the child's
  EXPECT_THAT(svg, HasSubstr("3 of 3 flows, 2 steps"));
  EXPECT_THAT(svg, HasSubstr("step 1: 1 leave"));
  EXPECT_THAT(svg, HasSubstr("step 1: 1 are spawned"));
  EXPECT_THAT(svg, HasSubstr("step 2: 1 die"));
  EXPECT_THAT(svg, HasSubstr("step 2: 1 stay"));
  EXPECT_THAT(svg, HasSubstr("error 0.1667"));  // of the input: one of six cells is off by 1
  EXPECT_EQ(count(svg, "shape-rendering=\"crispEdges\""), 3U);
  EXPECT_EQ(count(svg, "h1v1h-1z"), 18U);  // a square a cell
  // Texts are nobody's markup, and steer no terminal.
  EXPECT_THAT(svg, HasSubstr("a &lt;cat&gt; &amp; a dog &gt; "));
  EXPECT_THAT(svg, Not(HasSubstr("\x1b")));
  EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
  EXPECT_EQ(count(svg, "<g "), count(svg, "</g>"));
  for (const char* bad : {"nan", "inf"}) EXPECT_THAT(svg, Not(HasSubstr(bad)));
}

TEST(FlowPicture, ShowsAsManyWaysAsItIsToldAndNoMoreCellsThanCanBeSeen) {
  FlowHistory large = history();
  EXPECT_THAT(flow_picture_svg(large, "", 2), HasSubstr("2 of 3 flows"));
  EXPECT_EQ(count(flow_picture_svg(large, "", 1), "<polyline"), 2U);
  large.width = large.height = 100;
  for (std::vector<double>* surface : {&large.input, &large.output, &large.target})
    surface->assign(10000, 0.25);
  EXPECT_EQ(count(flow_picture_svg(large, ""), "h1v1h-1z"), size_t{7500});
  // What is no number has no colour, and a lattice without flows has a picture.
  large.output[0] = NAN;
  large.paths.clear();
  large.by_step.clear();
  large.steps = 0;
  EXPECT_THAT(flow_picture_svg(large, ""), HasSubstr("0 of 0 flows, 0 steps"));
}

}  // namespace
}  // namespace fullbore::energy_flow
