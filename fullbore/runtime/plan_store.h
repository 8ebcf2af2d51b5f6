#pragma once
#include <optional>
#include <string>

#include "fullbore/base/content_cache.h"
#include "fullbore/ir/graph.h"
#include "fullbore/ir/target.h"
#include "fullbore/runtime/compile.h"

namespace fullbore {

/// All that passes follow from beside the graph and the build, word for word.
std::string settings_text(const Target& target, const CompileOptions& options);

/// Plans of earlier compilations, on disk. Kept is the graph that all passes and, within a limit of memory,
/// all attempts at a plan have led to: placing its values is what remains, and takes less time than
/// reading where they were placed. Whatever a plan follows from is in its key, word for word: the graph as
/// traced, the target, the options, the build. What is damaged or of another build is not found.
class PlanStore {
 public:
  /// "": nothing is kept. Nor is it where the process cannot tell which build it is (base/build_id.h).
  explicit PlanStore(const std::string& folder);

  std::string key(const Graph& graph, const Target& target, const CompileOptions& options) const;
  std::optional<Graph> find(const std::string& key) const;
  void put(const std::string& key, const Graph& graph) const;

 private:
  bool on_;
  ContentCache cache_;
};

}  // namespace fullbore
