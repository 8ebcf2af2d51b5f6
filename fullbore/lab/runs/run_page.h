#pragma once
#include <string>

#include "fullbore/lab/runs/run_curves.h"
#include "fullbore/lab/runs/run_folder.h"

namespace fullbore {

/// Facts of a run, "name: value" as they are shown: what it is, how far it came, how fast, on what.
std::vector<std::pair<std::string, std::string>> run_facts_text(const RunFolder& run);

/// Settings that are other than the defaults, "key: value".
std::vector<std::pair<std::string, std::string>> chosen_settings(const RunFolder& run);

/// Curves that are drawn together: "loss" with "validation_loss", "policy/legal_best" with "policy/legal_moves".
struct CurveGroup {
  std::string title;
  std::vector<std::string> metrics;
};
/// All metrics of the run but those that never change, in groups: what is judged first.
std::vector<CurveGroup> curve_groups(const RunCurves& curves);

/// A page of HTML that stands alone, without script: facts, settings, every curve as a picture.
std::string run_page(const RunFolder& run, const RunCurves& curves);

}  // namespace fullbore
