// Who made the first number that is not finite: planted operations, wherever steps have them.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <memory>

#include "fullbore/base/philox.h"
#include "fullbore/ir/loop.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/compare_nodes.h"
#include "fullbore/train/bad_step.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"

namespace fullbore {
namespace {

using testing_support::cpu_device;
using testing_support::Edited;

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int64_t kRows = 16, kWidth = 8, kIterations = 4;

/// One operation that makes a number that is not finite of finite ones, on a line of its own.
struct Maker {
  const char* op;
  const char* made;
  int line;
  std::function<Tensor(Tensor)> make;
  DType precision = DType::f32;
  bool backward = false;
};

// Zeros that no pass knows of.
Tensor zeros_of(Tensor x) { return abs(x) - maximum(x, -x); }

std::vector<Maker> makers() {
  const auto product = [](Tensor x) { return matmul(x + 2.0, transpose(x + 3e4, {1, 0})); };
  const int line_of_product = __LINE__ - 1;
  const auto square = [](Tensor x) { return (x + 1e30) * (x + 1e30); };
  const int line_of_square = __LINE__ - 1;
  return {
      {"log", "NaN", __LINE__, [](Tensor x) { return log(-abs(x) - 1.0); }},
      {"exp", "an infinity", __LINE__, [](Tensor x) { return exp(abs(x) + 1000.0); }},
      {"div", "NaN", __LINE__, [](Tensor x) { return zeros_of(x) / zeros_of(x); }},
      {"div", "an infinity", __LINE__, [](Tensor x) { return (abs(x) + 1e5) / exp(-80 - abs(x)); }},
      {"div", "an infinity", __LINE__, [](Tensor x) { return sqrt(zeros_of(x)); }, DType::f32,
       true},
      {"matmul", "an infinity", line_of_product, product, DType::f16},
      {"mul", "an infinity", line_of_square, square, DType::bf16},
  };
}

/// A batch, State and program of one step.
class PlantedStep {
 public:
  PlantedStep(const LossFunction& loss, const Microbatches& parts, const CompileOptions& options)
      : options_(options), step_(trace_training_step(loss, fields(), optimizer(), parts)) {
    state_ = std::make_unique<State>(initial_state(step_, 1, cpu_device(2)));
    PhiloxStream draws(3);
    for (const BatchField& field : fields()) {
      Literal literal(field.type);
      for (int64_t i = 0; i < literal.elements(); ++i) literal.put(i, draws.uniform(0.1, 1));
      literal.round();
      batch_.push_back(std::move(literal));
    }
    for (const Literal& field : batch_) {
      const std::vector<char> bytes = field.bytes();
      memory_.emplace_back(std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64), std::free);
      std::copy(bytes.begin(), bytes.end(), static_cast<char*>(memory_.back().get()));
      pointers_.push_back(memory_.back().get());
    }
  }

  std::string finding() { return first_non_finite(step_.graph, *state_, pointers_, options_); }
  /// Is it a step that the trainer would skip?
  bool is_bad() {
    State state = initial_state(step_, 1, cpu_device(2));
    Program program = Program::compile(step_.graph, state, options_);
    program.run(pointers_);
    return program.scalar("skipped") == 1;
  }
  /// What replay-step accuses the device of.
  std::string accusation() {
    std::vector<Literal> inputs;
    size_t field = 0;
    for (const Graph::Input& input : step_.graph.inputs()) {
      if (is_state(input.role))
        inputs.push_back(Literal::from_bytes(step_.graph.type(input.value),
                                             state_->read<std::byte>(input.name).data()));
      else
        inputs.push_back(batch_[field++]);
    }
    return first_difference(step_.graph, inputs, device_, options_);
  }
  State& state() { return *state_; }

 private:
  static std::vector<BatchField> fields() {
    return {{"x", {DType::f32, {kRows, kWidth}}}, {"y", {DType::f32, {kRows}}}};
  }
  static OptimizerOptions optimizer() {
    OptimizerOptions options;
    options.schedule.total_steps = 10;
    return options;
  }

  CompileOptions options_;
  TracedStep step_;
  std::unique_ptr<State> state_;
  std::shared_ptr<Device> device_ = cpu_device(1);
  std::vector<Literal> batch_;
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory_;
  std::vector<const void*> pointers_;
};

CompileOptions in(DType precision) {
  CompileOptions options;
  options.precision = precision;
  return options;
}

/// Two layers with something planted between them.
LossFunction model(const std::function<Tensor(Trace&, Tensor)>& planted) {
  return [planted](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const Tensor first = trace.parameter("first", {kWidth, kWidth}, Initializer::normal(0.5));
    const Tensor second = trace.parameter("second", {kWidth}, Initializer::normal(0.5));
    Tensor h = tanh(matmul(batch[0], first));
    {
      const Scope scope(trace, "planted");
      h = planted(trace, h);
    }
    const Tensor error = reduce_sum(h * broadcast_to(second, h.shape()), {1}) - batch[1];
    return reduce_mean(error * error, {0});
  };
}

// What was planted on top of a value, which it leaves alone but for the numbers that are not finite.
Tensor with(Tensor x, Tensor made) {
  std::vector<int64_t> axes(static_cast<size_t>(made.rank()));
  for (size_t i = 0; i < axes.size(); ++i) axes[i] = static_cast<int64_t>(i);
  return x + broadcast_to(reduce_mean(made, axes) * 1e-3, x.shape());
}

std::string expected_start(const Maker& maker) {
  return fmt::format("{} in planted (train/test_first_non_finite.cpp:{}){}", maker.op, maker.line,
                     maker.backward ? ", backward pass" : "");
}

TEST(FirstNonFinite, IsNamedInTheWholeBatch) {
  for (const Maker& maker : makers()) {
    PlantedStep step(model([&](Trace&, Tensor h) { return with(h, maker.make(h)); }), {},
                     in(maker.precision));
    EXPECT_TRUE(step.is_bad());
    const std::string finding = step.finding();
    EXPECT_THAT(finding, StartsWith(expected_start(maker)));
    EXPECT_THAT(finding, HasSubstr(fmt::format("made {} first: ", maker.made)));
    EXPECT_THAT(finding, Not(HasSubstr("microbatch")));
    EXPECT_EQ(step.accusation(), "") << finding;
  }
}

TEST(FirstNonFinite, IsNamedInItsMicrobatch) {
  const auto expect_named = [](const Maker& maker, const Microbatches& parts) {
    PlantedStep step(model([&](Trace&, Tensor h) { return with(h, maker.make(h)); }), parts,
                     in(maker.precision));
    EXPECT_TRUE(step.is_bad());
    const std::string finding = step.finding();
    EXPECT_THAT(finding, StartsWith(expected_start(maker)));
    EXPECT_THAT(finding, HasSubstr(fmt::format(", microbatch 1 of {}, made {} first: ",
                                               parts.accumulate * parts.parallel, maker.made)));
    EXPECT_EQ(step.accusation(), "") << finding;
  };
  for (const Maker& maker : makers()) expect_named(maker, {1, 2});
  for (const size_t which : {0, 4})
    for (const Microbatches parts : {Microbatches{2, 2}, Microbatches{4, 1}})
      expect_named(makers()[which], parts);
}

// Of one microbatch alone: that whose mean is the largest.
TEST(FirstNonFinite, NamesTheMicrobatchThatIsBad) {
  const LossFunction loss = [](Trace& trace, std::span<const Tensor> batch) -> Loss {
    const Tensor weight = trace.parameter("weight", {kWidth}, Initializer::normal(0.5));
    const Tensor row = slice(batch[1], 0, 0, 1);
    const Tensor bad = reduce_mean(log(row - 0.5), {0});
    return reduce_mean(batch[0] * broadcast_to(weight, batch[0].shape()), {0, 1}) * bad;
  };
  PlantedStep step(loss, {2, 2}, {});
  // The same draws as the step's: which first rows are below a half?
  PhiloxStream draws(3);
  for (int64_t i = 0; i < kRows * kWidth; ++i) draws.uniform(0.1, 1);
  int64_t first = -1;
  for (int64_t i = 0; i < kRows; ++i)
    if (draws.uniform(0.1, 1) < 0.5 && i % (kRows / 4) == 0 && first < 0) first = i / (kRows / 4);
  ASSERT_GE(first, 0);
  EXPECT_THAT(step.finding(), HasSubstr(fmt::format("microbatch {} of 4", first + 1)));
}

TEST(FirstNonFinite, IsNamedInAnIterationOfALoop) {
  for (const Maker& maker : makers()) {
    const auto planted = [&](Trace&, Tensor h) {
      return loop(h.builder(), {h}, {}, {.iterations = kIterations},
                  [&](const LoopBody& body) {
                    const Tensor x = body.carried[0];
                    const Tensor third =
                        broadcast_to(cast(equal(body.index, 2.0), DType::boolean), x.shape());
                    return IterationResults{
                        .carried = {tanh(select(third, with(x, maker.make(x)), x))}};
                  })
          .carried[0];
    };
    PlantedStep step(model(planted), {1, 2}, in(maker.precision));
    if (!step.is_bad()) continue;  // tanh of an infinity is 1
    const std::string finding = step.finding();
    EXPECT_THAT(finding, StartsWith(expected_start(maker)));
    EXPECT_THAT(finding, HasSubstr(", microbatch 1 of 2, iteration "));
    EXPECT_THAT(finding, HasSubstr(" of 4 of the loop at train/test_first_non_finite.cpp:"));
    // The infinities of iterations that are not selected meet zeros in the backward pass; this NaN is harmless there.
    if (maker.op == std::string("log")) {
      EXPECT_THAT(finding, HasSubstr("iteration 3 of 4"));
    }
    EXPECT_THAT(finding, HasSubstr(fmt::format("made {} first: ", maker.made)));
    EXPECT_EQ(step.accusation(), "") << finding;
  }
}

// Squares of gradients: the norm that decides whether the step counts is not finite.
TEST(FirstNonFinite, IsNamedInTheOptimizer) {
  const LossFunction plain = model([](Trace&, Tensor h) { return h; });
  const LossFunction steep = [&](Trace& trace, std::span<const Tensor> batch) -> Loss {
    return plain(trace, batch).mean * 1e25;
  };
  for (const Microbatches parts : {Microbatches{}, Microbatches{1, 2}, Microbatches{2, 2}}) {
    PlantedStep step(steep, parts, {});
    EXPECT_TRUE(step.is_bad());
    EXPECT_THAT(step.finding(), HasSubstr("in optimizer (optim/"));
    EXPECT_THAT(step.finding(), HasSubstr("made an infinity first"));
    EXPECT_EQ(step.accusation(), "");
  }
}

TEST(FirstNonFinite, OfStateIsNamed) {
  PlantedStep step(model([](Trace&, Tensor h) { return h; }), {1, 2}, in(DType::bf16));
  Edited<float>(step.state(), "first")[3] = INFINITY;
  EXPECT_THAT(step.finding(), StartsWith("parameter 'first' f32[8,8] held an infinity before"));
}

// Infinities that a model makes on purpose, and NaN that it does not use.
TEST(FirstNonFinite, IsNoneThatDoesNoHarm) {
  const auto planted = [](Trace&, Tensor h) {
    const Tensor masked = select(greater(h, 0.0), h, -INFINITY);
    const Tensor harmless = softmax(masked, 1) + 1.0 / (exp(abs(h) + 1000.0) + 1.0);
    const Tensor unused = select(greater(h, 100.0), log(-abs(h) - 1.0), 0.0);
    const Tensor bad = log(zeros_of(h) - 1.0);
    return with(harmless + unused, bad);
  };
  const int line = __LINE__ - 3;
  PlantedStep step(model(planted), {1, 2}, {});
  EXPECT_THAT(step.finding(),
              StartsWith(fmt::format("log in planted (train/test_first_non_finite.cpp:{}", line)));
  PlantedStep fine(model([](Trace&, Tensor h) { return h; }), {1, 2}, {});
  EXPECT_FALSE(fine.is_bad());
  EXPECT_EQ(fine.finding(), "");
}

}  // namespace
}  // namespace fullbore
