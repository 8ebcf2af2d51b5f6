#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "workloads/latentwire/evaluate_systems.h"

namespace fullbore::latentwire {

/// A receiver's results with the wire as it is stored.
struct BitsResult {
  int64_t bits = 16;
  int64_t bytes = 0;  ///< of one prompt's wire
  double exact_match = 0;
  double f1 = 0;
};

/// All that `eval` tells of a run.
struct LatentReport {
  struct OfReceiver {
    std::string name;
    std::vector<SystemScores> systems;  ///< in the order of kSystems, of each budget
    std::vector<BitsResult> bits;
    /// Of the latent's F1 over each system's, in their order; empty where it was not measured.
    std::vector<Interval> f1_differences;
    std::vector<McNemar> match_tests;
    double log_vocabulary =
        0;  ///< ln V: more nats of a text's token mean that the measure is broken
    double source_tokens = 0;  ///< of the text, on the average
    double text_places = 0;    ///< with BOS and anchor
    double latent_places = 0;
    int64_t replay_differs = 0;  ///< prompts that are answered otherwise if read as vectors
    double replay_nats = 0;      ///< the largest difference of an answer's nats

    const SystemScores* find(System system) const;  ///< of the first budget; null: not measured
  };
  std::string checkpoint, prompts_about, cache;
  int64_t step = 0, prefix = 0, slots = 0, width = 0, cut = 0, group = 32;
  int64_t rows = 0;              ///< that are answered at once
  std::vector<int64_t> budgets;  ///< tokens of texts that are cut
  std::vector<Prompt> prompts;
  double prompt_bytes = 0;  ///< on the average
  double encode_seconds = 0;
  std::vector<OfReceiver> receivers;
  std::vector<JointScores> joint;        ///< one, of several receivers
  std::vector<CacheCheck> cache_checks;  ///< one, of --cache check

  /// Bytes of text that all receivers together are sent in place of one wire.
  double copies_bytes() const { return prompt_bytes * static_cast<double>(receivers.size()); }
};

/// Tables for people.
std::string report_text(const LatentReport& report);
nlohmann::ordered_json report_json(const LatentReport& report);
/// F1 by bytes of the wire, a line each receiver, beside the text's and the truncations'.
std::string report_svg(const LatentReport& report);

}  // namespace fullbore::latentwire
