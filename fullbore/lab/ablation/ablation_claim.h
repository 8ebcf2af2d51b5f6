#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "fullbore/lab/ablation/ablation_report.h"

namespace fullbore {

/// The recommended configuration as a file: every key, and above them what is claimed of it, by which runs.
std::string recommended_yaml(const AblationReport& report, const AblationPlan& plan,
                             const AblationRequest& request);

/// What a second measurement says of the first.
struct Confirmation {
  std::string arm;  ///< that was recommended
  double claimed = Effect::kUnknown, claimed_low = Effect::kUnknown,
         claimed_high = Effect::kUnknown;  ///< times the base's speed
  double found = Effect::kUnknown, found_low = Effect::kUnknown, found_high = Effect::kUnknown;
  bool holds = false;  ///< faster again, and by as much as far as both intervals tell
  bool interrupted = false;
};

/// Measures the base and the arm that request.folder recommends again, in its folder confirm/, with seeds that the ablation had not.
/// Whatever was there of an earlier confirmation is removed. UsageError: the folder recommends nothing; DataError: it holds no
/// ablation, or is damaged.
Confirmation confirm_claim(const AblationRequest& request, const StopRequest& stop,
                           const TellDoing& progress);

nlohmann::ordered_json to_json(const Confirmation& confirmation);
std::string text(const Confirmation& confirmation);

}  // namespace fullbore
