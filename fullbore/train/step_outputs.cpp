#include "fullbore/train/step_outputs.h"

#include "fullbore/base/check.h"
#include "fullbore/ir/tensor.h"

namespace fullbore {
namespace {

bool is_wanted(std::string_view name, MetricsLevel level) {
  if (name == "loss" || name == "skipped" || name == "predictions" || name == "loss_scale")
    return true;
  if (level == MetricsLevel::all) return true;
  return level == MetricsLevel::standard && (name == "gradient_norm" || name == "learning_rate");
}

}  // namespace

MetricsLevel metrics_level(std::string_view name) {
  if (name == "loss") return MetricsLevel::loss;
  if (name == "standard") return MetricsLevel::standard;
  FB_CHECK(name == "all", "no metrics level '{}'", name);
  return MetricsLevel::all;
}

Detail detail(std::string_view name) {
  if (name == "off") return Detail::off;
  if (name == "info") return Detail::info;
  if (name == "debug-training") return Detail::debug_training;
  FB_CHECK(name == "debug-performance", "no level of detail '{}'", name);
  return Detail::debug_performance;
}

Graph with_metrics(const Graph& graph, MetricsLevel level) {
  GraphBuilder builder(graph.name());
  std::vector<Tensor> inputs;
  for (const Graph::Input& input : graph.inputs())
    inputs.push_back(builder.input_like(input, graph.type(input.value)));
  const std::vector<Tensor> outputs = inline_graph(builder, graph, inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Graph::Output& output = graph.outputs()[i];
    if (output.updates >= 0 || is_wanted(output.name, level))
      builder.output(output.name, outputs[i], output.updates);
  }
  return builder.take();
}

}  // namespace fullbore
