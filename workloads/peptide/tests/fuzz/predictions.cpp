// Any bytes as a file of predictions: refused with the file's name, or read so that every prediction names a
// spectrum, has a number or none for a score, and a sequence that the alphabet takes or refuses with its line.
#include <cmath>
#include <string>

#include "tests/fuzz/memory_file.h"
#include "workloads/peptide/assign_predictions.h"
#include "workloads/peptide/match.h"

using namespace fullbore;
using namespace fullbore::peptide;
using fullbore::testing::MemoryFile;
using fullbore::testing::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const ResidueAlphabet alphabet(MassTable::reference, massive_kb_modifications());
  const MemoryFile memory(data, size);
  const std::string path = memory.path();
  const Result<PredictionFile> read = read_predictions(path);
  if (!read.ok()) {
    require(read.error().find(path) != std::string::npos);
    return 0;
  }
  const PredictionFile& file = read.value();
  require(!file.predictions.empty() && !file.sequence_column.empty());
  uint64_t line = 0;
  for (const Prediction& prediction : file.predictions) {
    require(!prediction.spectrum.empty() && prediction.line > line);
    line = prediction.line;
    require(std::isnan(prediction.score) || prediction.score < HUGE_VAL);
    require(std::isnan(prediction.precursor_mz) || prediction.precursor_mz > 0);
    const Result<std::vector<int32_t>> ids = prediction_ids(file, prediction, alphabet);
    if (!ids.ok()) {
      require(ids.error().starts_with(path + ":" + std::to_string(line) + ": "));
      continue;
    }
    const std::vector<double> masses = residue_masses(ids.value(), alphabet);
    for (const bool match : match_residues(masses, masses)) require(match);
  }
  const std::vector<SpectrumName> spectra{{"1", "a"}, {"", file.predictions[0].spectrum}, {}};
  const AssignedPredictions assigned = assign_predictions(file, spectra);
  require(assigned.of_spectrum.size() == spectra.size());
  require(assigned.unused <= file.predictions.size());
  return 0;
}
