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
    std::vector<SystemScores> systems;  ///< in the order of kSystems
    std::vector<BitsResult> bits;
    /// Of the latent's F1 over each system's, in their order.
    std::vector<Interval> f1_differences;
    std::vector<McNemar> match_tests;
    double prompt_tokens = 0;  ///< of the text, on the average
  };
  std::string checkpoint, prompts_about;
  int64_t step = 0, budget = 0, slots = 0, width = 0, cut = 0, group = 32;
  std::vector<Prompt> prompts;
  double prompt_bytes = 0;  ///< on the average
  std::vector<OfReceiver> receivers;
  std::vector<JointScores> joint;  ///< one, of several receivers
};

/// Tables for people.
std::string report_text(const LatentReport& report);
nlohmann::ordered_json report_json(const LatentReport& report);
/// F1 by bytes of the wire, a line each receiver, beside the text's and the truncations'.
std::string report_svg(const LatentReport& report);

}  // namespace fullbore::latentwire
