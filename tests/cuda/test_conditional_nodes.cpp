// What the fake driver refuses of conditional nodes, as a card's would, so that a test on it would show who does that.
#include <gmock/gmock.h>

#include <memory>

#include "fullbore/device/cuda/driver/context.h"
#include "fullbore/device/cuda/makers/launching.h"
#include "tests/cuda/fake_card.h"

namespace fullbore::cuda {
namespace {

using ::testing::HasSubstr;

class ConditionalNodes : public FakeCard {
 protected:
  void SetUp() override {
    FakeCard::SetUp();
    context_ = std::make_shared<Context>(load_driver(), 0);
    context_->enter().make_graph(&graph_, 0);
  }
  void TearDown() override {
    restart();
    if (exec_ != nullptr) context_->enter().destroy_graph_exec(exec_);
    context_->enter().destroy_graph(graph_);
    context_.reset();
    FakeCard::TearDown();
  }

  ConditionHandle condition(unsigned at_launch, unsigned flags = kConditionAtLaunch) {
    ConditionHandle made = 0;
    (*context_->enter().make_condition)(&made, graph_, context_->handle(), at_launch, flags);
    return made;
  }
  int add(GraphHandle graph, ConditionalNode node) {
    NodeHandle made = nullptr;
    const int code = context_->enter().add_conditional->attempt(&made, graph, nullptr, 0, &node);
    if (code == kSuccess) body_ = node.bodies[0];
    return code;
  }
  ConditionalNode node_of(ConditionHandle handle) const {
    return {.condition = handle, .context = context_->handle()};
  }
  int instantiate() { return context_->enter().instantiate_graph.attempt(&exec_, graph_, 0); }
  int64_t bodies_made() {
    const int64_t before = fake().conditional_bodies;
    context_->enter().launch_graph(exec_, context_->main());
    context_->enter().wait_for_stream(context_->main());
    return fake().conditional_bodies - before;
  }

  std::shared_ptr<Context> context_;
  GraphHandle graph_ = nullptr, body_ = nullptr;
  GraphExecHandle exec_ = nullptr;
};

TEST_F(ConditionalNodes, AreMadeByTheirCondition) {
  ASSERT_EQ(add(graph_, node_of(condition(1))), kSuccess);
  ASSERT_EQ(add(graph_, node_of(condition(0))), kSuccess);
  ASSERT_EQ(instantiate(), kSuccess);
  EXPECT_EQ(bodies_made(), 1);
}

TEST_F(ConditionalNodes, AreMadeOrNotWhereNothingIsSaid) {
  ASSERT_EQ(add(graph_, node_of(condition(0, 0))), kSuccess);
  ASSERT_EQ(instantiate(), kSuccess);
  int64_t made = 0;
  for (int i = 0; i < 64; ++i) made += bodies_made();
  EXPECT_GT(made, 8);
  EXPECT_LT(made, 56);
}

TEST_F(ConditionalNodes, HaveAConditionEachOfTheirGraph) {
  const ConditionHandle first = condition(1), other = condition(1);
  EXPECT_EQ(instantiate(), kInvalidValue);  // no node has them
  ASSERT_EQ(add(graph_, node_of(first)), kSuccess);
  EXPECT_EQ(add(graph_, node_of(first)), kInvalidValue);
  EXPECT_EQ(add(body_, node_of(other)), kInvalidValue);
  ASSERT_EQ(add(graph_, node_of(other)), kSuccess);
  EXPECT_EQ(add(graph_, node_of(other + 1000)), kInvalidValue);
  ASSERT_EQ(instantiate(), kSuccess);
  GraphExecHandle second = nullptr;
  EXPECT_EQ(context_->enter().instantiate_graph.attempt(&second, graph_, 0), kInvalidValue);
  EXPECT_EQ(context_->enter().destroy_graph.attempt(body_), kInvalidValue);
}

TEST_F(ConditionalNodes, AreToldWithNothingElse) {
  const ConditionHandle handle = condition(1);
  ConditionalNode node = node_of(handle);
  node.type = 0;
  EXPECT_EQ(add(graph_, node), kInvalidValue);
  node = node_of(handle);
  node.unused[3] = 1;
  EXPECT_EQ(add(graph_, node), kInvalidValue);
  node = node_of(handle);
  node.context = nullptr;
  EXPECT_EQ(add(graph_, node), kInvalidValue);
}

// By a kernel that is no node of the graph, after the graph has been made.
TEST_F(ConditionalNodes, AreDecidedAboutInTheirGraphAlone) {
  ASSERT_EQ(add(graph_, node_of(condition(0))), kSuccess);
  ASSERT_EQ(instantiate(), kSuccess);
  EXPECT_EQ(bodies_made(), 0);
  const Launch decision = launch("loops", "decide_iteration", {}, {}, {});
  const FunctionHandle function = context_->function(decision.module, decision.entry, 0);
  const CardMemory state(context_, 32);
  const Driver& driver = context_->enter();
  driver.fill_bytes(state.get(), 0, 32, context_->main());
  uint64_t address = state.get(), first = 0, handle = 1;
  void* arguments[] = {&address, &first, &handle};
  driver.launch(function, 1, 1, 1, 1, 1, 1, 0, context_->main(), arguments, nullptr);
  EXPECT_EQ(driver.wait_for_stream.attempt(context_->main()), kLaunchFailed);
  EXPECT_THAT(fake().fault, HasSubstr("has no condition 0x1"));
  restart();
}

}  // namespace
}  // namespace fullbore::cuda
