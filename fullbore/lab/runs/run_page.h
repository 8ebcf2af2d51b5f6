#pragma once
#include <span>
#include <string>
#include <utility>
#include <vector>

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

/// What a workload adds to the pages of its runs. `html` stands as it is: texts of others are escaped in it (svg_text()).
/// Elements of class "curves" stand side by side.
struct PagePart {
  std::string title;
  std::string html;
};

/// A page of HTML that stands alone, without script: facts, the parts, every curve as a picture, settings.
std::string run_page(const RunFolder& run, const RunCurves& curves,
                     std::span<const PagePart> parts = {});

}  // namespace fullbore
