#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "workloads/peptide/spectrum_batch.h"
#include "workloads/peptide/synthetic_options.h"

namespace fullbore::peptide {

/// Spectra of random peptides. A spectrum is a pure function of (key, index, settings), and draws for
/// different purposes have counters of their own: peptide, charge and intensities of an index are the same
/// whatever corrupts them.
///
/// In this order, each where its setting asks for it: error of the precursor; fragments 1 .. n-1 of each
/// series, of charge 1, with y ~ Beta(2,2) and b, a ~ Beta(2,5), at least 0.01; their neutral losses,
/// 0.3 of the fragment; dropout; error of each m/z; variation of each intensity, at least 0.01;
/// suppression; noise in [50 Da, precursor mass]; scaling to the base peak; the most intense peaks; order
/// by m/z; the P of lowest m/z.
class SpectrumGenerator {
 public:
  SpectrumGenerator(const SyntheticOptions& options, uint64_t key);

  /// What is drawn for one spectrum: memory of one thread, allocated once.
  class Scratch;
  struct FreeScratch {
    void operator()(Scratch* scratch) const;
  };
  using ScratchPtr = std::unique_ptr<Scratch, FreeScratch>;
  ScratchPtr make_scratch(const SpectrumSettings& settings) const;

  /// Allocates nothing. `settings` are those that the scratch was made for.
  void generate(uint64_t index, const SpectrumSettings& settings, Scratch& scratch,
                const SpectrumRow& row) const;

 private:
  bool draw_peptide(const SpectrumSettings& settings, Scratch& scratch,
                    const SpectrumRow& row) const;
  void draw_fragments(Scratch& scratch) const;
  void write_spectrum(Scratch& scratch, const SpectrumRow& row) const;

  SyntheticOptions options_;
  uint64_t key_;
  ResidueAlphabet alphabet_;
  std::vector<uint64_t> charge_limits_;     // cumulative, in 2^-32
  std::array<double, kResidues> losses_{};  // mass that a fragment loses beside each residue, or 0
};

}  // namespace fullbore::peptide
