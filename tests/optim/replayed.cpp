#include "tests/optim/replayed.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "fullbore/runtime/program.h"
#include "tests/support/device.h"
#include "tests/support/interpret_by_name.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

class Interpreted : public Replayed {
 public:
  Interpreted(Graph graph, Literals start) : graph_(std::move(graph)), state_(std::move(start)) {}
  Literals step(const Literals& batch) override {
    Literals inputs = state_;
    inputs.insert(batch.begin(), batch.end());
    Literals outputs = interpret_by_name(graph_, inputs);
    for (const Graph::Output& output : graph_.outputs())
      if (output.updates >= 0) state_[output.name] = outputs.at(output.name);
    return outputs;
  }

 private:
  Graph graph_;
  Literals state_;
};

class Compiled : public Replayed {
 public:
  Compiled(const Graph& graph, const Literals& start)
      : state_(state_entries(graph), testing_support::cpu_device(2)),
        program_(Program::compile(graph, state_)) {
    for (const auto& [name, values] : start) {
      const std::vector<char> bytes = values.bytes();
      state_.write(state_.find(name), std::as_bytes(std::span(bytes)));
    }
  }
  Literals step(const Literals& batch) override {
    std::vector<std::unique_ptr<void, decltype(&std::free)>> memory;
    std::vector<const void*> pointers;
    const Graph& graph = program_.plan().graph;
    for (const Graph::Input& input : graph.inputs()) {
      if (is_state(input.role)) continue;
      const std::vector<char> bytes = batch.at(input.name).bytes();
      memory.emplace_back(std::aligned_alloc(64, (bytes.size() + 63) / 64 * 64), &std::free);
      std::ranges::copy(bytes, static_cast<char*>(memory.back().get()));
      pointers.push_back(memory.back().get());
    }
    program_.run(pointers);
    Literals outputs;
    for (const StateEntry& entry : state_.entries())
      outputs[entry.name] =
          Literal::from_bytes(entry.type, state_.read<std::byte>(entry.name).data());
    for (const Graph::Output& output : graph.outputs())
      if (output.updates < 0)
        outputs[output.name] = Literal::scalar(DType::f32, program_.scalar(output.name));
    return outputs;
  }

 private:
  State state_;
  Program program_;
};

double largest(const std::vector<double>& values) {
  double result = 0;
  for (double value : values) result = std::max(result, std::abs(value));
  return result;
}

}  // namespace

std::unique_ptr<Replayed> interpreted(Graph graph, Literals start) {
  return std::make_unique<Interpreted>(std::move(graph), std::move(start));
}

std::unique_ptr<Replayed> compiled(const Graph& graph, const Literals& start) {
  return std::make_unique<Compiled>(graph, start);
}

nlohmann::json read_golden(const std::string& name) {
  std::ifstream file(testing::source_folder() + "/tests/optim/golden/" + name);
  return nlohmann::json::parse(file);
}

std::map<std::string, Shape> shapes_of(const nlohmann::json& list) {
  std::map<std::string, Shape> result;
  for (const auto& [name, shape] : list.items())
    result[name] = Shape(shape.get<std::vector<int64_t>>());
  return result;
}

Tensor loss_of_given_gradients(Trace& trace, const std::map<std::string, Shape>& shapes) {
  Tensor loss;
  for (const auto& [name, shape] : shapes) {
    const Tensor parameter = trace.parameter(name, shape, Initializer::zeros());
    std::vector<int64_t> axes;
    for (int axis = 0; axis < shape.rank(); ++axis) axes.push_back(axis);
    const Tensor part =
        reduce_sum(parameter * trace.batch("gradient." + name, {DType::f32, shape}), axes);
    loss = loss.valid() ? loss + part : part;
  }
  return loss;
}

void expect_close(const Literal& found, const std::vector<double>& expected, bool exact,
                  const std::string& what) {
  ASSERT_EQ(found.elements(), static_cast<int64_t>(expected.size())) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double bound = exact ? 1e-10 * std::abs(expected[i]) : 1e-6 * largest(expected);
    EXPECT_NEAR(found.at(static_cast<int64_t>(i)), expected[i], bound) << what << " element " << i;
  }
}

}  // namespace fullbore
