/// Every op on the cpu backend, as a program of one node replays it: rows "op/cpu/dtype/shapes".
///
///     bench_ops --benchmark_filter='^(softmax|layer_norm)/cpu/f32' --benchmark_repetitions=5
///
/// The rows follow from the ops' own samples: for each op one sample as it stands, which shows what a
/// launch costs, and the same with its axes doubled in turn until memory or arithmetic is busy. Beside
/// them, calls that models make ("/model"). Counters: bytes and floating-point operations per second as the plan
/// counts them, and `of_peak`, the share of the machine's measured peaks that the larger of the two
/// reaches.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "fullbore/base/error.h"
#include "fullbore/base/philox.h"
#include "fullbore/base/text.h"
#include "fullbore/device/registry.h"
#include "fullbore/ir/literal.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/monitor/machine.h"
#include "fullbore/ops/ops.h"
#include "fullbore/ops/quantized_linear.h"
#include "fullbore/runtime/program.h"

namespace {

using namespace fullbore;  // NOLINT: a program, not a header

// Whichever is reached first: beyond the second-level caches of many processors, or milliseconds.
constexpr double kEnoughBytes = 32e6;
constexpr double kEnoughFlops = 5e8;

/// One call, of operands that are drawn as the inputs say.
struct Row {
  std::string name;
  Graph graph;
  std::vector<SampleInput> inputs;
};

// --- from samples to sizes -----------------------------------------------------------------------
DType row_dtype(DType written, DType dtype) { return written == DType::f32 ? dtype : written; }

/// The sample with every f32 in the dtype.
Sample in_dtype(const Sample& sample, DType dtype) {
  Sample result = sample;
  for (SampleInput& input : result.inputs) input.type.dtype = row_dtype(input.type.dtype, dtype);
  result.attributes = {};
  for (const Attributes::Entry& entry : sample.attributes.entries()) {
    const auto* const written = std::get_if<DType>(&entry.value);
    result.attributes.set(entry.name, written ? row_dtype(*written, dtype) : entry.value);
  }
  return result;
}

/// The sample's call alone; nothing where the op refuses it.
std::optional<Graph> graph_of(const OpDef& op, const Sample& sample) {
  Graph graph("bench");
  std::vector<Value> operands;
  for (size_t i = 0; i < sample.inputs.size(); ++i)
    operands.push_back(graph.add_input(fmt::format("x{}", i), Role::batch, sample.inputs[i].type));
  try {
    const Node& node = graph.add_node(op, std::move(operands), sample.attributes, sample.body);
    const std::vector<Value> outputs = node.outputs;
    for (size_t i = 0; i < outputs.size(); ++i) graph.add_output(fmt::format("y{}", i), outputs[i]);
  } catch (const UsageError&) {
    return std::nullopt;
  }
  return graph;
}

/// Axes of one extent are taken for one axis, as those that a product sums over; attributes that name
/// a shape follow.
Sample with_extents(const Sample& sample, const std::map<int64_t, int64_t>& extents) {
  const auto extent = [&](int64_t old) {
    const auto found = extents.find(old);
    return found == extents.end() ? old : found->second;
  };
  Sample result = sample;
  for (SampleInput& input : result.inputs) {
    std::vector<int64_t> dims;
    for (int axis = 0; axis < input.type.shape.rank(); ++axis)
      dims.push_back(extent(input.type.shape[axis]));
    input.type.shape = Shape(dims);
  }
  if (sample.attributes.has("shape")) {
    auto dims = sample.attributes.get<std::vector<int64_t>>("shape");
    for (int64_t& dim : dims) dim = extent(dim);
    result.attributes.set("shape", dims);
  }
  return result;
}

// The least traffic may be less than the operands: a slice reads no more than it yields.
bool is_enough(const Graph& graph) {
  double operands = 0;
  for (const Graph::Input& input : graph.inputs())
    operands += static_cast<double>(graph.type(input.value).bytes());
  const Cost cost = graph_cost(graph);
  return std::max(cost.bytes, operands) >= kEnoughBytes || cost.flops >= kEnoughFlops;
}

Sample scaled(const OpDef& op, const Sample& sample) {
  std::map<int64_t, int64_t> extents;
  for (const SampleInput& input : sample.inputs)
    for (int axis = 0; axis < input.type.shape.rank(); ++axis)
      if (const int64_t extent = input.type.shape[axis]; extent > 1) extents[extent] = extent;
  for (bool grown = true; grown;) {
    grown = false;
    for (auto& [old, extent] : extents) {
      extent *= 2;
      const std::optional<Graph> graph = graph_of(op, with_extents(sample, extents));
      if (!graph) {
        extent /= 2;
        continue;
      }
      grown = true;
      if (is_enough(*graph)) return with_extents(sample, extents);
    }
  }
  return with_extents(sample, extents);
}

/// Many axes, none of them empty, values that may be drawn for any shape.
const Sample* growable(const std::vector<Sample>& samples) {
  const Sample* best = nullptr;
  int64_t most = 0;
  for (const Sample& sample : samples) {
    int64_t axes = 0;
    for (const SampleInput& input : sample.inputs) {
      const Shape& shape = input.type.shape;
      if (input.fill == SampleInput::Fill::given || input.type.elements() == 0) axes = -1000;
      for (int axis = 0; axis < shape.rank(); ++axis) axes += shape[axis] > 1 ? 1 : 0;
    }
    if (sample.body == nullptr && axes > most) {
      most = axes;
      best = &sample;
    }
  }
  return best;
}

// --- running -------------------------------------------------------------------------------------
struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, Free>;

Memory drawn(const SampleInput& input, uint64_t stream) {
  const auto bytes = static_cast<size_t>(input.type.bytes());
  Memory memory(std::aligned_alloc(64, (bytes + 127) / 64 * 64));
  PhiloxStream draws(1, stream);
  for (int64_t i = 0; i < input.type.elements(); ++i) {
    double value = input.fill == SampleInput::Fill::normal ? draws.normal()
                                                           : draws.uniform(input.low, input.high);
    if (input.fill == SampleInput::Fill::integers) value = std::floor(value);
    store_element(memory.get(), input.type.dtype, i, value);
  }
  return memory;
}

const std::shared_ptr<Device>& device() {
  static const std::shared_ptr<Device> instance = open_device("cpu");
  return instance;
}

void run_row(benchmark::State& state, const Row& row) {
  try {
    State none({}, device());
    Program program = Program::compile(row.graph, none);
    std::vector<Memory> memory;
    std::vector<const void*> batch;
    for (const SampleInput& input : row.inputs) {
      memory.push_back(drawn(input, memory.size()));
      batch.push_back(memory.back().get());
    }
    for (auto _ : state) program.run(batch);
    static const Machine machine = known_machine(*device());
    const Plan& plan = program.plan();
    const auto rate = benchmark::Counter::kIsIterationInvariantRate;
    state.counters["bytes"] = benchmark::Counter(plan.bytes_moved, rate);
    state.counters["flops"] = benchmark::Counter(plan.flops, rate);
    state.counters["of_peak"] = benchmark::Counter(roofline_seconds(plan, machine.peaks), rate);
  } catch (const Error& error) {
    state.SkipWithError(error.what());
  }
}

/// "softmax/cpu/f32/16384x256/axis=1".
std::string row_name(std::string_view op, DType dtype, const std::vector<SampleInput>& inputs,
                     const std::string& attributes) {
  std::vector<std::string> shapes;
  for (const SampleInput& input : inputs) {
    std::vector<int64_t> dims;
    for (int axis = 0; axis < input.type.shape.rank(); ++axis)
      dims.push_back(input.type.shape[axis]);
    shapes.push_back(dims.empty() ? "scalar" : fmt::format("{}", fmt::join(dims, "x")));
  }
  return fmt::format("{}/cpu/{}/{}{}{}", op, dtype_name(dtype), fmt::join(shapes, ","),
                     attributes.empty() ? "" : "/", attributes);
}

void add(const Row& row) {
  benchmark::RegisterBenchmark(row.name.c_str(), run_row, row)
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

void add_sample(const OpDef& op, const Sample& written, DType dtype) {
  const Sample sample = in_dtype(written, dtype);
  std::optional<Graph> graph = graph_of(op, sample);
  if (!graph) return;  // a dtype that the op refuses in this attribute or beside that operand
  std::string attributes = sample.attributes.text();
  if (!attributes.empty()) attributes = attributes.substr(1, attributes.size() - 2);
  add({row_name(op.name, dtype, sample.inputs, replace_all(attributes, " ", "")), std::move(*graph),
       sample.inputs});
}

/// A call that models make: rows are batch x time of configs/gpt-shakespeare.yaml and gpt2-124m.yaml.
void add_call(std::string_view op, const std::vector<SampleInput>& written,
              Tensor (*call)(const std::vector<Tensor>& x)) {
  for (const DType dtype : {DType::f32, DType::bf16}) {
    GraphBuilder builder("bench");
    std::vector<SampleInput> inputs = written;
    std::vector<Tensor> x;
    for (size_t i = 0; i < inputs.size(); ++i) {
      inputs[i].type.dtype = row_dtype(inputs[i].type.dtype, dtype);
      x.push_back(builder.input(fmt::format("x{}", i), Role::batch, inputs[i].type));
    }
    builder.output("y", call(x));
    add({row_name(op, dtype, inputs, "model"), builder.take(), inputs});
  }
}

SampleInput normal(Shape shape) { return SampleInput::normal({DType::f32, std::move(shape)}); }
SampleInput classes(int64_t rows, double count) {
  return SampleInput::integers({DType::i32, {rows}}, 0, count);
}

void add_model_sizes() {
  const auto product = [](int64_t m, int64_t n, int64_t k) {
    add_call("matmul", {normal({m, k}), normal({n, k})}, [](const std::vector<Tensor>& x) {
      return matmul(x[0], x[1], {.transpose_b = true});
    });
  };
  product(16384, 1152, 384);
  product(16384, 384, 1536);
  product(2048, 3072, 768);
  product(256, 64, 64);
  // The same linears on a token, and on a prompt, in 8 bits beside it.
  const auto linear_in_8_bits = [](int64_t m, int64_t n, int64_t k) {
    const SampleInput weight = SampleInput::integers({DType::i8, {n, k}}, -127, 128);
    add_call("quantized_linear", {normal({m, k}), weight, normal({n})},
             [](const std::vector<Tensor>& x) { return quantized_linear(x[0], x[1], x[2]); });
  };
  for (const int64_t rows : {1, 4, 64, 2048})
    for (const auto& [n, k] :
         {std::pair<int64_t, int64_t>{512, 128}, {1152, 384}, {3072, 768}, {50257, 768}}) {
      if (n > 4096 && rows > 64) continue;
      if (rows < 2048 || n != 3072) product(rows, n, k);
      linear_in_8_bits(rows, n, k);
    }
  add_call("softmax", {normal({16384, 256})},
           [](const std::vector<Tensor>& x) { return softmax(x[0], 1); });
  add_call("layer_norm", {normal({16384, 384}), normal({384}), normal({384})},
           [](const std::vector<Tensor>& x) { return layer_norm(x[0], x[1], x[2]); });
  add_call("gelu", {normal({16384, 1536})},
           [](const std::vector<Tensor>& x) { return gelu(x[0]); });
  for (const auto& [rows, count] : {std::pair{16384, 65}, std::pair{2048, 50257}})
    add_call("cross_entropy", {normal({rows, count}), classes(rows, count)},
             [](const std::vector<Tensor>& x) { return cross_entropy(x[0], x[1]); });
  add_call("linear_cross_entropy",
           {normal({2048, 768}), normal({50257, 768}), classes(2048, 50257)},
           [](const std::vector<Tensor>& x) { return linear_cross_entropy(x[0], x[1], x[2]); });
  const SampleInput heads = normal({64, 6, 256, 64});
  add_call("attention", {heads, heads, heads}, [](const std::vector<Tensor>& x) {
    return attention(x[0], x[1], x[2], {.causal = true});
  });
}

std::vector<DType> dtypes_of(const OpDef& op, const Sample& sample) {
  if (op.dtypes.empty())
    return {sample.inputs.empty() ? DType::f32 : sample.inputs.front().type.dtype};
  std::vector<DType> dtypes;
  for (const DType dtype : {DType::f32, DType::bf16})
    if (std::find(op.dtypes.begin(), op.dtypes.end(), dtype) != op.dtypes.end())
      dtypes.push_back(dtype);
  return dtypes;
}

void register_all() {
  for (const OpDef* op : all_ops()) {
    // What has no arithmetic of its own, and what stands for others.
    if (op->samples == nullptr || op->is(Tag::identity) || op->is(Tag::region)) continue;
    const std::vector<Sample> samples = op->samples();
    const Sample* const sample = growable(samples);
    if (sample == nullptr) continue;
    const Sample large = scaled(*op, *sample);
    for (const DType dtype : dtypes_of(*op, *sample)) {
      add_sample(*op, *sample, dtype);
      add_sample(*op, large, dtype);
    }
  }
  add_model_sizes();
}

const bool registered = (register_all(), true);

}  // namespace
