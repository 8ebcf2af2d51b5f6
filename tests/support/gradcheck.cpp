#include "tests/support/gradcheck.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/philox.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {
namespace {

constexpr int64_t kTiny = 12;  // most elements in and out for a full Jacobian

struct Derivative {
  double value = 0;
  double error = std::numeric_limits<double>::infinity();  // estimated
};

// Of f at 0. Steps shrink by 2; column k of the tableau cancels the error of order h^(2k).
Derivative extrapolated_derivative(const std::function<double(double)>& f) {
  constexpr int kSteps = 16;
  std::array<std::array<double, kSteps>, kSteps> table{};
  Derivative best;
  double magnitude = 0;
  for (int i = 0; i < kSteps; ++i) {
    const double h = std::ldexp(1.0, -6 - i);
    const double above = f(h), below = f(-h);
    if (!std::isfinite(above) || !std::isfinite(below)) continue;
    magnitude = std::max({magnitude, std::abs(above), std::abs(below)});
    const double rounding = 4 * magnitude * std::numeric_limits<double>::epsilon() / h;
    auto& row = table[static_cast<size_t>(i)];
    row[0] = (above - below) / (2 * h);
    double factor = 4;
    for (int k = 1; k <= i; ++k, factor *= 4) {
      const double coarse = table[static_cast<size_t>(i - 1)][static_cast<size_t>(k - 1)];
      const double fine = row[static_cast<size_t>(k - 1)];
      row[static_cast<size_t>(k)] = (factor * fine - coarse) / (factor - 1);
      const double error = std::max(std::abs(row[static_cast<size_t>(k)] - fine),
                                    std::abs(row[static_cast<size_t>(k)] - coarse)) +
                           rounding;
      if (error < best.error) best = {row[static_cast<size_t>(k)], error};
    }
    if (best.error < 1e-9 * std::abs(best.value)) break;
  }
  return best;
}

class Check {
 public:
  Check(const GradcheckCase& check, const GradcheckOptions& options)
      : case_(check),
        options_(options),
        draws_(options.seed, 77),
        gradient_(gradient_graph(check.graph, check.wanted)) {
    for (size_t i = 0; i < check.inputs.size(); ++i)
      if (check.wanted[i]) inputs_ += check.inputs[i].elements();
    for (const Graph::Output& output : check.graph.outputs()) {
      const TensorType& type = check.graph.type(output.value);
      if (is_floating(type.dtype)) outputs_ += type.elements();
    }
  }

  GradcheckResult run() {
    if (inputs_ == 0 || outputs_ == 0) return result_;
    with_cotangents([&](int64_t) { return draws_.normal(); });
    for (int i = 0; i < 3; ++i) look(random_direction());
    if (inputs_ <= kTiny && outputs_ <= kTiny) {
      for (int64_t output = 0; output < outputs_; ++output) {
        with_cotangents([&](int64_t i) { return i == output ? 1.0 : 0.0; });
        for (int64_t i = 0; i < inputs_; ++i) look(coordinate(i));
      }
    } else {
      for (int i = 0; i < 8; ++i)
        look(coordinate(static_cast<int64_t>(draws_.below(static_cast<uint64_t>(inputs_)))));
    }
    return result_;
  }

 private:
  using Direction = std::vector<double>;  // one number per wanted element

  void with_cotangents(const std::function<double(int64_t)>& value) {
    cotangents_.clear();
    int64_t next = 0;
    for (const Graph::Output& output : case_.graph.outputs()) {
      const TensorType& type = case_.graph.type(output.value);
      if (!is_floating(type.dtype)) continue;
      Literal literal(type);
      for (double& each : literal.reals()) each = value(next++);
      cotangents_.push_back(std::move(literal));
    }
    std::vector<Literal> operands = case_.inputs;
    operands.insert(operands.end(), cotangents_.begin(), cotangents_.end());
    gradients_.clear();
    for (const Literal& literal : interpret(gradient_, operands))
      for (double each : literal.reals()) gradients_.push_back(each * options_.gradient_scale);
  }

  // Through at most 64 elements: among more, some pair of neighbours of a sorted row would change
  // places within any step that differences can use.
  Direction random_direction() {
    Direction direction(static_cast<size_t>(inputs_), 0);
    const auto count = static_cast<uint64_t>(inputs_);
    for (uint64_t i = 0; i < std::min<uint64_t>(count, 64); ++i)
      direction[count <= 64 ? i : draws_.below(count)] = draws_.normal();
    return direction;
  }
  Direction coordinate(int64_t i) const {
    Direction direction(static_cast<size_t>(inputs_), 0);
    direction[static_cast<size_t>(i)] = 1;
    return direction;
  }

  // <cotangents, graph(inputs + step * direction)>
  double along(const Direction& direction, double step) const {
    std::vector<Literal> inputs = case_.inputs;
    size_t next = 0;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (case_.wanted[i])
        for (double& each : inputs[i].reals()) each += step * direction[next++];
    double sum = 0;
    next = 0;
    for (const Literal& output : interpret(case_.graph, inputs)) {
      if (!output.floating()) continue;
      const Literal& cotangent = cotangents_[next++];
      for (size_t i = 0; i < output.reals().size(); ++i)
        if (cotangent.reals()[i] != 0) sum += cotangent.reals()[i] * output.reals()[i];
    }
    return sum;
  }

  void look(const Direction& direction) {
    double computed = 0;
    for (size_t i = 0; i < direction.size(); ++i)
      if (direction[i] != 0) computed += direction[i] * gradients_[i];
    const Derivative measured =
        extrapolated_derivative([&](double step) { return along(direction, step); });
    ++result_.derivatives;
    if (computed != 0) result_.all_zero = false;
    const double size = std::max(std::abs(computed), std::abs(measured.value));
    // What differences cannot see at all is not held against the gradient.
    const double allowed = options_.tolerance * size + std::min(10 * measured.error, 1e-7);
    if (std::abs(computed - measured.value) <= allowed || !result_.problem.empty()) return;
    result_.problem = fmt::format(
        "derivative {} is {:.12g} by backward, {:.12g} by differences (estimated error {:.1g})",
        result_.derivatives, computed, measured.value, measured.error);
  }

  const GradcheckCase& case_;
  const GradcheckOptions& options_;
  PhiloxStream draws_;
  const Graph gradient_;
  int64_t inputs_ = 0;   // elements of wanted inputs
  int64_t outputs_ = 0;  // elements of floating outputs
  std::vector<Literal> cotangents_;
  std::vector<double> gradients_;
  GradcheckResult result_;
};

}  // namespace

Graph gradient_graph(const Graph& graph, const std::vector<bool>& wanted) {
  GraphBuilder builder("gradient");
  std::vector<Tensor> inputs, outputs, cotangents, asked;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    const Graph::Input& input = graph.inputs()[i];
    inputs.push_back(builder.input(input.name, Role::batch, graph.type(input.value)));
    if (wanted[i]) asked.push_back(inputs.back());
  }
  const std::vector<Tensor> results = inline_graph(builder, graph, inputs);
  for (size_t i = 0; i < results.size(); ++i) {
    if (!is_floating(results[i].dtype())) continue;
    outputs.push_back(results[i]);
    cotangents.push_back(
        builder.input(fmt::format("cotangent{}", i), Role::batch, results[i].type()));
  }
  const std::vector<Tensor> gradients = backward(builder, outputs, cotangents, asked);
  for (size_t i = 0; i < gradients.size(); ++i)
    builder.output(fmt::format("gradient{}", i), gradients[i]);
  return builder.take();
}

GradcheckResult gradcheck(const GradcheckCase& check, const GradcheckOptions& options) {
  return Check(check, options).run();
}

Literal random_literal(const TensorType& type, uint64_t seed, uint64_t stream) {
  Literal literal(type);
  PhiloxStream draws(seed, stream);
  for (int64_t i = 0; i < literal.elements(); ++i) literal.put(i, draws.normal());
  return literal;
}

std::string compare_literals(const std::vector<Literal>& a, const std::vector<Literal>& b,
                             double tolerance, double scale) {
  if (a.size() != b.size()) return fmt::format("{} and {} tensors", a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].type() != b[i].type())
      return fmt::format("tensor {} is {} and {}", i, a[i].type().text(), b[i].type().text());
    double largest = 0;
    for (double each : a[i].reals())
      if (std::isfinite(each)) largest = std::max(largest, std::abs(each));
    for (int64_t k = 0; k < a[i].elements(); ++k) {
      const double x = a[i].at(k), y = b[i].at(k);
      const double allowed =
          a[i].floating() ? tolerance * std::max({std::abs(x), std::abs(y), 1e-3 * largest, scale})
                          : 0;
      if (x == y || (std::isnan(x) && std::isnan(y)) || std::abs(x - y) <= allowed) continue;
      return fmt::format("tensor {} {}, element {}: {:.17g} and {:.17g}", i, a[i].type().text(), k,
                         x, y);
    }
  }
  return "";
}

}  // namespace fullbore
