#include "fullbore/ir/target.h"

#include <array>
#include <utility>

namespace fullbore {
namespace {

constexpr std::array kEfforts = {std::pair{CompileEffort::off, std::string_view("off")},
                                 std::pair{CompileEffort::fast, std::string_view("fast")},
                                 std::pair{CompileEffort::full, std::string_view("full")}};

}  // namespace

std::string_view compile_effort_name(CompileEffort effort) {
  return kEfforts[static_cast<size_t>(effort)].second;
}

std::optional<CompileEffort> parse_compile_effort(std::string_view name) {
  for (const auto& [effort, text] : kEfforts)
    if (text == name) return effort;
  return std::nullopt;
}

bool Target::is_native(const Graph& graph, const Node& node) const {
  const auto found = native_ops.find(node.op);
  if (found == native_ops.end()) return false;
  return found->second.empty() ||
         (!node.inputs.empty() && is_native(*node.op, graph.type(node.inputs[0]).dtype));
}

bool Target::is_native(const OpDef& op, DType dtype) const {
  const auto found = native_ops.find(&op);
  return found != native_ops.end() && (found->second.empty() || found->second.contains(dtype));
}

}  // namespace fullbore
