#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "workloads/peptide/ions.h"
#include "workloads/peptide/prepare_spectrum.h"

namespace fullbore {

/// A peptide and its theoretical fragments.
struct IonTable {
  peptide::ResidueAlphabet alphabet;
  std::vector<int32_t> ids;
  int precursor_charge = 2;
  peptide::IonOptions options;
};
/// As text, a row for each residue, or JSON. Ends with a new line.
std::string ions_report(const IonTable& table);
std::string ions_json(const IonTable& table);

/// What a conversion read, kept and dropped.
struct Conversion {
  std::string cache;
  std::string left_out;  ///< the list of what was dropped
  peptide::PreparationCounts counts;
  peptide::PreparationOptions options;
  uint64_t cache_bytes = 0;
  double seconds = 0;
};
std::string conversion_report(const Conversion& conversion);
std::string conversion_json(const Conversion& conversion);

}  // namespace fullbore
