#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"

namespace fullbore {

/// A rewriting of graphs: value in, value out, no globals; applied twice it changes nothing the
/// second time (but rematerialize, which may then find still less memory).
struct Pass {
  std::string_view name;     ///< a verb: "constant_folding"
  std::string_view summary;  ///< what it does, one line
  std::string_view because;  ///< why it runs at this place
  bool optional = true;      ///< may be switched off by name
  Graph (*run)(const Graph&, const Target&) = nullptr;
  CompileEffort effort = CompileEffort::fast;  ///< the least with which it runs (Target::compile)
};

/// The pipeline in order: the table of contents of the compiler's middle.
const std::vector<Pass>& pipeline();

struct PassRecord {
  std::string_view name;
  bool ran = false;
  bool changed = false;  ///< something other than it got came out
  int nodes_before = 0;
  int nodes_after = 0;
  double seconds = 0;
};

struct PassOptions {
  std::set<std::string> disabled;  ///< names; an unknown or mandatory one is a UsageError
  /// Called with each pass's name and its result, when set: dumps.
  std::function<void(std::string_view, const Graph&)> dump = {};
};

/// Runs one pass, by name. Its result is verified.
Graph run_pass(std::string_view name, const Graph& graph, const Target& target);

/// Runs the pipeline. Every result is verified; a malformed one is our bug and aborts with the text
/// of the graph.
Graph run_passes(Graph graph, const Target& target, const PassOptions& options = {},
                 std::vector<PassRecord>* records = nullptr);

}  // namespace fullbore
