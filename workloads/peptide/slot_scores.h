#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "workloads/peptide/peptide_scores.h"
#include "workloads/peptide/residues.h"

namespace fullbore::peptide {

/// One spectrum as training sees it: a token in each of S slots.
struct ScoredSlots {
  std::span<const int32_t> answers;  ///< [T,S] the likeliest token after each supervision step
  std::span<const int32_t> targets;  ///< [S]
  std::span<const uint8_t>
      target_mask;  ///< [S] real slots; ends (SOS, EOS) count where targets have them
  double precursor_mass = kNoValue;  ///< measured, neutral, Da; NaN: not known
};

/// What was found of one spectrum; of the last step where a count has none.
struct SlotOutcome {
  int32_t slots = 0;  ///< real ones
  int32_t correct = 0;
  int32_t correct_but_leucine = 0;
  bool is_equal = false;  ///< all real slots
  bool is_equal_but_leucine = false;
  double absolute_mass_error_ppm = kNoValue;  ///< of what decodes to a peptide
};

/// A supervision step beside the one before it, over the real slots of all spectra.
struct StepCounts {
  int64_t slots = 0;
  int64_t correct = 0;
  int64_t flipped = 0;    ///< tokens that changed; 0 in the first step
  int64_t improved = 0;   ///< wrong before, right now
  int64_t regressed = 0;  ///< right before, wrong now
  double accuracy() const;
  double flip_rate() const;     ///< the share of slots that changed, which is also the edit rate
  double edit_quality() const;  ///< (improved - regressed) / flipped; 0 of none
};

/// Slots and sequences of spectra, also of those of one length.
struct SlotCounts {
  int64_t spectra = 0;
  int64_t slots = 0;
  int64_t correct = 0;
  int64_t correct_but_leucine = 0;
  int64_t equal = 0;
  int64_t equal_but_leucine = 0;
  void add(const SlotOutcome& outcome);
  double token_accuracy() const;
  double token_accuracy_but_leucine() const;
  double sequence_accuracy() const;
  double sequence_accuracy_but_leucine() const;
};

/// The measures that the training of the reference logs, and those it was extended by.
struct SlotReport {
  SlotCounts all;
  SlotCounts by_length[kBuckets];         ///< by residues of the target, ends left out
  std::vector<StepCounts> steps;          ///< [T]
  double mean_mass_error_ppm = kNoValue;  ///< absolute, of decoded peptides that are not empty
  int64_t mass_errors = 0;
};

/// Is fed spectra, and gives the report. Keeps one outcome a spectrum, for paired comparisons.
class SlotScorer {
 public:
  explicit SlotScorer(const ResidueAlphabet& alphabet) : alphabet_(&alphabet) {}
  /// `answers` are whole steps of S slots; of each spectrum equally many.
  const SlotOutcome& add(const ScoredSlots& spectrum);
  std::span<const SlotOutcome> outcomes() const { return outcomes_; }
  SlotReport report() const;

 private:
  void add_steps(const ScoredSlots& spectrum);

  const ResidueAlphabet* alphabet_;
  SlotReport counts_;
  double mass_error_sum_ = 0;
  std::vector<SlotOutcome> outcomes_;
};

nlohmann::ordered_json to_json(const SlotReport& report);
/// The same as a table.
std::string text(const SlotReport& report);

}  // namespace fullbore::peptide
