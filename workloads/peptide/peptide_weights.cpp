#include "workloads/peptide/peptide_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fullbore/base/error.h"
#include "workloads/peptide/peptide_job.h"
#include "workloads/peptide/peptide_keys.h"

namespace fullbore {
namespace {

using namespace peptide;

// The names that workloads/peptide/recursive_model.cpp gives its tables.
constexpr const char* kOfSymbolRows[] = {"token_embedding.weight", "head.weight", "head.bias",
                                         "gate.weight", "gate.bias"};
constexpr const char* kOfSymbolColumns = "soft_embedding.weight";
constexpr const char* kOfSlotsAndSymbols = "answer_start";
constexpr const char* kOfSlots[] = {"latent_start", "position_embedding.weight"};
constexpr const char* kOfSteps = "step_embedding.weight";

ResidueAlphabet alphabet_of(const WeightSource& source) {
  try {
    return peptide_alphabet(source.config());
  } catch (const UsageError& error) {  // nothing that the user said
    throw DataError(fmt::format("{}: {}", source.path(), error.what()));
  }
}

/// For each place here the same one there; nothing: they are all the same, or must be.
std::vector<int64_t> places(int64_t here, int64_t there, bool may_grow) {
  if (here == there || (here > there && !may_grow)) return {};
  std::vector<int64_t> origins(static_cast<size_t>(here), -1);
  std::iota(origins.begin(), origins.begin() + std::min(here, there), int64_t{0});
  return origins;
}

}  // namespace

std::vector<std::string> peptide_weight_keys() {
  // Numbers of answers and thoughts are not among them: more of the same steps are made with the same weights.
  return {"model.num_heads", "model.max_mass", "model.precursor_input", "data.start_and_end"};
}

std::vector<TableOrigins> peptide_weight_tables(const Config& config, const WeightSource& source) {
  const Config& theirs = source.config();
  if (theirs.model.name != "peptide") return {};
  const bool may_grow = config.model.initialize_partial;
  const ResidueAlphabet there = alphabet_of(source);
  const std::vector<int32_t> ids = ids_among(there, peptide_alphabet(config));
  std::vector<int64_t> symbols(ids.begin(), ids.end());
  std::vector<int64_t> unchanged(static_cast<size_t>(there.size()));
  std::iota(unchanged.begin(), unchanged.end(), int64_t{0});
  if (symbols == unchanged) symbols.clear();
  const std::vector<int64_t> slots = places(peptide_keys(config).model.max_seq_len,
                                            peptide_keys(theirs).model.max_seq_len, may_grow);
  const std::vector<int64_t> steps =
      places(peptide_keys(config).model.num_supervision_steps,
             peptide_keys(theirs).model.num_supervision_steps, may_grow);
  std::vector<TableOrigins> tables;
  const auto add = [&](const std::string& name, const std::vector<int64_t>& rows,
                       const std::vector<int64_t>& columns) {
    if (!rows.empty() || !columns.empty()) tables.push_back({name, name, rows, columns});
  };
  for (const char* const name : kOfSymbolRows) add(name, symbols, {});
  add(kOfSymbolColumns, {}, symbols);
  add(kOfSlotsAndSymbols, slots, symbols);
  for (const char* const name : kOfSlots) add(name, slots, {});
  add(kOfSteps, steps, {});
  return tables;
}

}  // namespace fullbore
