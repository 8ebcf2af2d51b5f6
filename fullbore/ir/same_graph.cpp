#include "fullbore/ir/same_graph.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <variant>

namespace fullbore {
namespace {

/// Zeros of different signs are equal numbers, and different arguments.
std::span<const double> numbers_of(const Attributes::Value& value) {
  if (const auto* one = std::get_if<double>(&value)) return {one, 1};
  if (const auto* several = std::get_if<std::vector<double>>(&value)) return *several;
  return {};
}

bool same_attributes(const Attributes& a, const Attributes& b) {
  if (a != b) return false;
  for (size_t i = 0; i < a.entries().size(); ++i)
    if (!std::ranges::equal(
            numbers_of(a.entries()[i].value), numbers_of(b.entries()[i].value), {},
            [](double x) { return std::signbit(x); }, [](double x) { return std::signbit(x); }))
      return false;
  return true;
}

bool same_node(const Node& a, const Node& b) {
  if ((a.body == nullptr) != (b.body == nullptr)) return false;
  return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs &&
         same_attributes(a.attributes, b.attributes) && a.location == b.location &&
         a.scope == b.scope && (a.body == b.body || same_graph(*a.body, *b.body));
}

bool same_input(const Graph::Input& a, const Graph::Input& b) {
  return a.name == b.name && a.role == b.role && a.value == b.value && a.derived == b.derived;
}

bool same_output(const Graph::Output& a, const Graph::Output& b) {
  return a.name == b.name && a.value == b.value && a.updates == b.updates;
}

bool same_types(const Graph& a, const Graph& b) {
  if (a.value_count() != b.value_count()) return false;
  for (int id = 0; id < a.value_count(); ++id)
    if (a.type({id}) != b.type({id})) return false;
  return true;
}

}  // namespace

bool same_graph(const Graph& a, const Graph& b) {
  return a.name() == b.name() && same_types(a, b) &&
         std::ranges::equal(a.inputs(), b.inputs(), same_input) &&
         std::ranges::equal(a.nodes(), b.nodes(), same_node) &&
         std::ranges::equal(a.outputs(), b.outputs(), same_output);
}

}  // namespace fullbore
