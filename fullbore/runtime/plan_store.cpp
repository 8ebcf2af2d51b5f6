#include "fullbore/runtime/plan_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "fullbore/base/build_id.h"
#include "fullbore/ir/op_def.h"
#include "fullbore/ir/print.h"

namespace fullbore {
namespace {

constexpr uint64_t kMostBytes = uint64_t{128} << 20;

/// All of it. A member that is new must be put into the text, or plans for other targets would be taken:
/// the binding names each, so that forgetting one does not compile.
std::string text_of(const Target& target) {
  const auto& [name, native_ops, native_bf16, threads, epilogues, packing, keeps_derived_weights,
               copies_frozen_weights, precision, offers_tf32, tf32, why_no_fp8, narrow_from,
               fp32_scopes, logits_bytes, offers_row_invariance, row_invariant, offers_cublaslt,
               cublaslt, compile, recompute, moments_in_host, arena_bytes] = target;
  (void)offers_row_invariance, (void)offers_tf32, (void)offers_cublaslt,
      (void)why_no_fp8;  // of the device, which has a name
  const auto& [operand_dtypes, fewest_rows, near_bytes] = epilogues;
  const auto& [layouts, most_rows, fewest_uses] = packing;
  std::vector<std::string> composites;  // by name: addresses come in any order
  for (const auto& [op, dtypes] : native_ops) {
    composites.emplace_back(op->name);
    for (const DType dtype : dtypes) composites.back() += fmt::format(" {}", dtype_name(dtype));
  }
  std::ranges::sort(composites);
  std::string natives = fmt::format("{};", fmt::join(composites, ";"));
  natives += "epilogues";
  for (const DType dtype : operand_dtypes) natives += fmt::format(" {}", dtype_name(dtype));
  natives += fmt::format(" of {} rows {} near, packing", fewest_rows, near_bytes);
  for (const auto& [dtype, layout] : layouts) {
    const auto& [columns, vnni, rows, rows_transposed, kept_for_one, whole_depth] = layout;
    natives += fmt::format(" {} {} {} {} {} {} {}", dtype_name(dtype), columns, vnni, rows,
                           rows_transposed, kept_for_one, whole_depth);
  }
  natives += fmt::format(" of {} rows {} uses", most_rows, fewest_uses);
  return fmt::format(
      "{} native {} bf16 {} threads {} copies {} {} precision {} tf32 {} from {} fp32 {} logits {} "
      "rows {} cublaslt {} compile {} recompute {} moments {} arena {}",
      name, natives, native_bf16, threads, keeps_derived_weights, copies_frozen_weights,
      dtype_name(precision), tf32, narrow_from, fp32_scopes, logits_bytes, row_invariant, cublaslt,
      static_cast<int>(compile), static_cast<int>(recompute), moments_in_host, arena_bytes);
}

/// Likewise.
std::string text_of(const CompileOptions& options) {
  const auto& [passes, reuse_memory, precision, tf32, fp8, fp32_scopes, decomposed, row_invariant,
               cublaslt, compile, recompute, memory_bytes, must_fit, keeps_snapshot,
               lent_state_bytes, copies_frozen_weights, plan_folder, on_fallbacks, on_notices] =
      options;
  const auto& [disabled, dump] = passes;
  (void)dump, (void)must_fit, (void)plan_folder, (void)on_fallbacks, (void)on_notices;
  (void)copies_frozen_weights, (void)row_invariant, (void)cublaslt, (void)compile,
      (void)tf32;  // the Target tells them
  (void)fp8;       // the graph does
  return fmt::format(
      "without {} reuse {} precision {} fp32 {} decomposed {} recompute {} memory {} snapshot {} "
      "lent {}",
      std::vector<std::string>(disabled.begin(), disabled.end()), reuse_memory,
      dtype_name(precision), fp32_scopes,
      std::vector<std::string>(decomposed.begin(), decomposed.end()), static_cast<int>(recompute),
      memory_bytes, keeps_snapshot, lent_state_bytes);
}

}  // namespace

std::string settings_text(const Target& target, const CompileOptions& options) {
  return fmt::format("target {}\noptions {}", text_of(target), text_of(options));
}

PlanStore::PlanStore(const std::string& folder)
    : on_(!folder.empty() && !build_id().empty()), cache_(on_ ? folder : "", kMostBytes) {}

std::string PlanStore::key(const Graph& graph, const Target& target,
                           const CompileOptions& options) const {
  if (!on_) return "";
  return fmt::format("plan 1\nbuild {}\n{}\n{}", build_id(), settings_text(target, options),
                     print(graph));
}

std::optional<Graph> PlanStore::find(const std::string& key) const {
  if (!on_) return std::nullopt;
  const std::optional<std::string> text = cache_.find(key);
  if (!text) return std::nullopt;
  Result<Graph> graph = parse_graph(*text);
  if (!graph.ok()) return std::nullopt;
  return std::move(graph.value());
}

void PlanStore::put(const std::string& key, const Graph& graph) const {
  if (on_) cache_.put(key, print(graph));
}

}  // namespace fullbore
