// engine.precision=tf32 on a card: whole training steps, plans, and who may ask for it.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/registry.h"
#include "fullbore/ir/print.h"
#include "fullbore/ops/ops.h"
#include "fullbore/runtime/compare_nodes.h"
#include "fullbore/runtime/compile.h"
#include "tests/cuda/fake_card.h"
#include "tests/support/job.h"

namespace fullbore::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const bool kTiny = use_tiny_model();

class Tf32OnCard : public JobTest {
 protected:
  /// Losses of six steps and the validation losses between them.
  std::vector<double> losses_of(const std::string& name, std::vector<std::string> settings) {
    settings.insert(settings.end(),
                    {"train.steps=6", "train.batch_size=2", "train.eval_interval=3",
                     "train.checkpoint_interval=3", "log.interval=1", "run.name=" + name});
    const CommandResult done = train(settings);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    told_ = done.out + done.err;
    std::vector<double> training, validation;
    for (const nlohmann::json& record : metrics("runs/" + name + "-1")) {
      if (record.contains("loss")) training.push_back(record["loss"].get<double>());
      if (record.contains("validation_loss"))
        validation.push_back(record["validation_loss"].get<double>());
    }
    training.insert(training.end(), validation.begin(), validation.end());
    return training;
  }
  std::string told_;

 private:
  Variable driver_{"FULLBORE_CUDA_DRIVER", fake_driver()};
  Variable card_{"FULLBORE_FAKE_CUDA", "multiprocessors=1,seed=3"};
};

// A loss is a mean of logarithms, which two operands off by 2^-11 each move by some 2^-10 of what they are: below that of
// the losses themselves, and above the last bit of f32.
TEST_F(Tf32OnCard, HasNearlyTheLossesOfFp32) {
  ASSERT_TRUE(kTiny);
  const std::vector<double> fp32 = losses_of("fp32", {"engine.device=cuda"});
  EXPECT_THAT(told_, HasSubstr(", fp32"));
  const std::vector<double> tf32 =
      losses_of("tf32", {"engine.device=cuda", "engine.precision=tf32"});
  EXPECT_THAT(told_, HasSubstr(", tf32"));
  ASSERT_GE(fp32.size(), 6U + 2U);
  ASSERT_EQ(tf32.size(), fp32.size());
  for (size_t i = 0; i < fp32.size(); ++i)
    EXPECT_NEAR(tf32[i], fp32[i], 0x1p-10 * std::abs(fp32[i])) << i;
  EXPECT_NE(tf32, fp32) << "nothing was rounded";
  // Modules that stay fp32 have fp32's bits.
  EXPECT_EQ(losses_of("kept", {"engine.device=cuda", "engine.precision=tf32",
                               "engine.fp32_modules=[\"*\"]"}),
            fp32);
}

TEST_F(Tf32OnCard, GoesOnAndGenerates) {
  losses_of("tf32", {"engine.device=cuda", "engine.precision=tf32"});
  const CommandResult more = command({"train", "runs/tf32-1", "train.steps=7", "engine.device=cuda",
                                      "engine.precision=tf32", "--resume"});
  EXPECT_EQ(more.exit_code, 0) << more.err;
  const CommandResult evaluated = command({"eval", "runs/tf32-1", "--json"});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  for (const char* const settings : {"engine.precision=tf32", "engine.precision=fp32"}) {
    const CommandResult text =
        command({"generate", "runs/tf32-1", settings, "--prompt", "the", "--tokens", "4"});
    EXPECT_EQ(text.exit_code, 0) << text.err;
  }
  // Where there is no card it goes on in another precision.
  const CommandResult refused =
      command({"generate", "runs/tf32-1", "engine.device=cpu", "--prompt", "the", "--tokens", "4"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, HasSubstr("engine.precision=fp32 or bf16"));
  const CommandResult elsewhere =
      command({"generate", "runs/tf32-1", "engine.device=cpu", "engine.precision=fp32", "--prompt",
               "the", "--tokens", "4"});
  EXPECT_EQ(elsewhere.exit_code, 0) << elsewhere.err;
}

TEST_F(Tf32OnCard, IsRefusedOnProcessorsWithWhatIsPossible) {
  const CommandResult refused = train({"engine.device=cpu", "engine.precision=tf32"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("engine.precision=tf32"), HasSubstr("the cpu device"),
                                 HasSubstr("engine.precision=fp32 or bf16")));
  const CommandResult both =
      train({"engine.device=cuda", "engine.precision=tf32", "engine.row_invariant=true"});
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.err, HasSubstr("engine.row_invariant"));
}

class Tf32Nodes : public FakeCard {};

// The matmuls of a loop's body are within the loop's bound, which is of what the body's own operands are rounded to.
TEST_F(Tf32Nodes, OfLoopsAgreeWithTheInterpreter) {
  const Graph graph = parse_graph(R"(graph "step" {
  %0 = input "x" batch : f32[8,20]
  %1 = input "w" batch : f32[20,20]
  %2 = loop(%0, %1) {carried=1, counted=false, iterations=3, reverse=false, sliced=0, until=false} : f32[8,20] {
    graph "body" {
      %0 = input "index" local : i64[]
      %1 = input "x" local : f32[8,20]
      %2 = input "w" local : f32[20,20]
      %3 = matmul(%1, %2) {transpose_a=false, transpose_b=true, wide=false} : f32[8,20]
      %4 = tanh(%3) : f32[8,20]
      output "x" %4
    }
  }
  %3 = matmul(%2, %1) {transpose_a=false, transpose_b=false, wide=false} : f32[8,20]
  output "y" %3
}
)")
                          .take_or_throw();
  std::vector<Literal> inputs;
  for (const Graph::Input& input : graph.inputs()) {
    const TensorType& type = graph.type(input.value);
    PhiloxStream draws(5, inputs.size());
    std::vector<double> elements(static_cast<size_t>(type.elements()));
    for (double& x : elements) x = draws.normal() / 4;
    inputs.push_back(Literal::of(type, elements));
    inputs.back().round();
  }
  const auto device = open();
  const auto results = [&](bool tf32) {
    return run_on_device(graph, inputs, device, {.tf32 = tf32})[0].reals();
  };
  EXPECT_NE(results(true), results(false)) << "nothing was rounded";
  EXPECT_EQ(first_difference(graph, inputs, device, {.tf32 = true}), "");
}

/// Two layers and their gradients, each in a module.
Graph layers() {
  GraphBuilder builder("layers");
  const Tensor x = builder.input("x", Role::batch, {DType::f32, {64, 32}});
  const Tensor w = builder.input("w", Role::parameter, {DType::f32, {32, 32}});
  builder.push_scope("first");
  const Tensor y = tanh(matmul(x, w));
  builder.pop_scope();
  builder.push_scope("second");
  const Tensor z = matmul(y, w, {.transpose_b = true});
  builder.pop_scope();
  builder.output("z", z);
  return builder.take();
}

std::string plan_of(const CompileOptions& options) {
  const std::shared_ptr<Device> device = open_device("card:H200");
  return plan_text(compile_plan(layers(), *device, *device->compiler(), options));
}

TEST(Tf32Plans, NameTheirKernels) {
  EXPECT_THAT(plan_of({}), Not(HasSubstr("tf32")));
  EXPECT_THAT(plan_of({.tf32 = true}), HasSubstr("as tf32"));
  EXPECT_THAT(plan_of({.tf32 = true, .fp32_scopes = {"*"}}), Not(HasSubstr("tf32")));
  EXPECT_THAT(plan_of({.passes = {.disabled = {"lower_precision"}}, .tf32 = true}),
              Not(HasSubstr("tf32")));
  const std::string one = plan_of({.tf32 = true, .fp32_scopes = {"second"}});
  EXPECT_EQ(one.find("as tf32"), one.rfind("as tf32"));
  EXPECT_THAT(one, HasSubstr("as tf32"));
}

TEST(Tf32Plans, HaveThePeakOfTf32ForTheirRoofline) {
  const std::shared_ptr<Device> device = open_device("card:H200");
  const MachinePeaks peaks = device->measure_peaks({}).peaks;
  EXPECT_DOUBLE_EQ(peaks.tf32_flops, 494.7e12);
  EXPECT_EQ(peak_flops(DType::f32, peaks), peaks.fp32_flops);
  EXPECT_EQ(peak_flops(DType::f32, peaks, true), peaks.tf32_flops);
  EXPECT_EQ(peak_flops(DType::bf16, peaks, true), peaks.bf16_flops);
  EXPECT_EQ(peak_flops(DType::f32, {1, 2, 3}, true), 1) << "a machine without";
  // Bytes cost nothing: what is left is arithmetic.
  const MachinePeaks arithmetic = {
      .fp32_flops = 1e12, .bf16_flops = 1e12, .bytes_per_second = 1e30, .tf32_flops = 8e12};
  const auto seconds = [&](const CompileOptions& options) {
    return roofline_seconds(compile_plan(layers(), *device, *device->compiler(), options),
                            arithmetic);
  };
  const double products = 2 * 2.0 * 64 * 32 * 32;
  EXPECT_NEAR(seconds({}) - seconds({.tf32 = true}), products * (1 / 1e12 - 1 / 8e12), 1e-15);
}

TEST(Tf32Plans, AreForDevicesThatHaveIt) {
  for (const char* const name : {"cpu", "null", "reference"}) {
    const std::string refused =
        message_of<UsageError>([&] { compile_target(*open_device(name), {.tf32 = true}); });
    EXPECT_THAT(refused, AllOf(HasSubstr("engine.precision=tf32"), HasSubstr(name),
                               HasSubstr("engine.precision=fp32 or bf16")));
  }
}

}  // namespace
}  // namespace fullbore::cuda
