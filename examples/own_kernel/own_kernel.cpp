// An op of one's own with a kernel of one's own for the CPU, outside of the library: snake(x) = x + sin(a x)^2 / a
// (Ziyin, Hartwig and Ueda 2020, arXiv:2006.08195, equation 3). The op says what is true on any machine; the kernel is
// how this one runs it. Checked against the op's decomposition in double precision, and its gradient against central
// differences.
//
// usage: own_kernel      prints both errors; exit code 1 if one is too large
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/error.h"
#include "fullbore/device/cpu/kernel.h"
#include "fullbore/device/interpret.h"
#include "fullbore/device/registry.h"
#include "fullbore/ops/rules.h"
#include "fullbore/runtime/program.h"
#include "fullbore/trace/trace.h"

using namespace fullbore;

namespace {

// [op]
double frequency_of(const Attributes& attributes) { return attributes.get<double>("frequency"); }

std::vector<TensorType> infer(const OpCall& call) {
  require_inputs(call, 1);
  require_dtype(call, 0, "x", DTypeSet::floating);
  if (!(frequency_of(call.attributes) > 0)) call.fail("frequency must be positive");
  return {call.inputs[0]};
}

// What it means in terms of other ops. The gradient follows from it, and devices without a kernel run it so.
std::vector<Tensor> decompose(const DecomposeCall& call) {
  const double a = frequency_of(call.attributes);
  const Tensor wave = sin(a * call.inputs[0]);
  return {call.inputs[0] + wave * wave * (1 / a)};
}

const OpRegistrar snake_op(OpDef{.name = "snake",
                                 .summary = "x + sin(frequency x)^2 / frequency",
                                 .tags = Tag::composite,
                                 .infer = infer,
                                 .decompose = decompose});

Tensor snake(Tensor x, double frequency) {
  return apply("snake", {x}, {{"frequency", frequency}}, {});
}
// [end]

// [kernel]
// x, y: f32 of any shape, taken as one row of `elements_`.
class SnakeKernel final : public CpuKernel {
 public:
  SnakeKernel(int64_t elements, double frequency)
      : elements_(elements), frequency_(static_cast<float>(frequency)) {}

  int64_t items() const override { return (elements_ + kBlock - 1) / kBlock; }
  double nanoseconds() const override { return 5.0 * static_cast<double>(elements_); }
  bool may_alias(int, int) const override {
    return true;
  }  // each element is read before it is written
  std::string description() const override { return "own snake f32"; }

  void run(void* const* operands, int64_t begin, int64_t end, int) const override {
    const auto* const x = static_cast<const float*>(operands[0]);
    auto* const y = static_cast<float*>(operands[1]);
    for (int64_t i = begin * kBlock; i < std::min(end * kBlock, elements_); ++i) {
      const float wave = std::sin(frequency_ * x[i]);
      y[i] = x[i] + wave * wave / frequency_;
    }
  }

 private:
  static constexpr int64_t kBlock = 256;  // elements of an item: what one worker takes at least
  int64_t elements_;
  float frequency_;
};

std::unique_ptr<Kernel> make_snake(KernelRequest& request) {
  if (request.input(0).dtype != DType::f32) return request.decline("of f32 alone");
  return std::make_unique<SnakeKernel>(request.input(0).elements(),
                                       request.attribute<double>("frequency"));
}

const RegisteredCpuKernel snake_kernel({.op = "snake", .name = "own", .make = make_snake},
                                       {DType::f32});
// [end]

// [check]
constexpr int64_t kCount = 1000;
constexpr double kFrequency = 1.5;

// y = snake(x), the loss sum(y^2) / 2 and its gradient.
Graph traced() {
  Trace trace("snake", /*training=*/false);
  const Tensor x = trace.batch("x", {DType::f32, {kCount}});
  const Tensor y = snake(x, kFrequency);
  const Tensor loss = 0.5 * reduce_sum(y * y, {0});
  const Tensor wanted[] = {x};
  trace.result("y", y);
  trace.result("loss", loss);
  trace.result("gradient", gradient(loss, wanted)[0]);
  return trace.finish();
}

double loss_at(const Graph& graph, std::vector<double> x) {
  const Literal input = Literal::of({DType::f32, {kCount}}, std::move(x));
  return interpret(graph, std::vector{input})[1].at(0);
}

int check() {
  const Graph graph = traced();
  State none({}, open_device("cpu"));
  Program program = Program::compile(graph, none);
  const std::string plan = plan_text(program.plan());
  if (plan.find("own snake") == std::string::npos) {
    std::printf("the kernel is not used:\n%s", plan.c_str());
    return 1;
  }
  alignas(64) float x[kCount];
  for (int64_t i = 0; i < kCount; ++i) x[i] = 0.01F * static_cast<float>(i - kCount / 2);
  const void* const batch[] = {x};
  program.run(batch);
  const std::vector<double> exact(x, x + kCount);
  const std::vector<float> y = program.read_result<float>(program.output("y"));
  const std::vector<float> found = program.read_result<float>(program.output("gradient"));
  const Literal expected =
      interpret(graph, std::vector{Literal::of({DType::f32, {kCount}}, exact)})[0];
  double error = 0, gradient_error = 0;
  for (int64_t i = 0; i < kCount; ++i)
    error =
        std::max(error, std::abs(expected.at(i) - static_cast<double>(y[static_cast<size_t>(i)])));
  for (size_t i = 0; i < kCount; i += 50) {
    constexpr double kStep = 1e-5;
    std::vector<double> above = exact, below = exact;
    above[i] += kStep;
    below[i] -= kStep;
    const double slope = (loss_at(graph, above) - loss_at(graph, below)) / (2 * kStep);
    gradient_error = std::max(gradient_error, std::abs(slope - static_cast<double>(found[i])));
  }
  std::printf("largest error %.2g, of the gradient %.2g\n", error, gradient_error);
  return error < 1e-5 && gradient_error < 1e-4 ? 0 : 1;
}
// [end]

}  // namespace

int main() {
  try {
    return check();
  } catch (const Error& error) {
    std::fprintf(stderr, "own_kernel: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
