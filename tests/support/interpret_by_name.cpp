#include "tests/support/interpret_by_name.h"

#include "fullbore/base/check.h"
#include "fullbore/device/interpret.h"
#include "fullbore/ir/verify.h"

namespace fullbore {

std::map<std::string, Literal> interpret_by_name(const Graph& graph,
                                                 const std::map<std::string, Literal>& inputs) {
  const std::string problem = verify(graph);
  FB_CHECK(problem.empty(), "{}", problem);
  for (const auto& [name, literal] : inputs)
    FB_CHECK(graph.find_input(name) >= 0, "no input '{}'", name);
  std::vector<Literal> values;
  for (const Graph::Input& input : graph.inputs()) {
    const auto given = inputs.find(input.name);
    values.push_back(given == inputs.end() ? Literal(graph.type(input.value)) : given->second);
    FB_CHECK(values.back().type() == graph.type(input.value), "'{}' is {}", input.name,
             graph.type(input.value).text());
  }
  const std::vector<Literal> results = interpret(graph, values);
  std::map<std::string, Literal> outputs;
  for (size_t i = 0; i < results.size(); ++i) outputs[graph.outputs()[i].name] = results[i];
  return outputs;
}

}  // namespace fullbore
