#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fullbore/lab/report_table.h"
#include "fullbore/lab/sweep/sweep.h"

namespace fullbore {

/// A trial as the report has it: by the last round that it was in.
struct SweepRow {
  int64_t trial = 0;
  int64_t round = 0;
  const SweepRun* run = nullptr;
};

/// The best first: those of later rounds, then by the metric; those without a value last.
std::vector<SweepRow> ranked(const Sweep& sweep, const SweepSpace& space);

/// "12 trials of configs/default.yaml, 3 rounds of 50, 150, 450 steps: loss, lowest".
std::string sweep_headline(const Sweep& sweep, const SweepSpace& space);
/// Trials, the best first; `most`: so many, 0: all.
ReportTable sweep_table(const Sweep& sweep, const SweepSpace& space, size_t most = 0);

nlohmann::ordered_json to_json(const Sweep& sweep, const SweepSpace& space);
std::string sweep_markdown(const Sweep& sweep, const SweepSpace& space);
/// A page that stands alone: settings of each trial as a line over parallel axes, curves, the table.
std::string sweep_page(const Sweep& sweep, const SweepSpace& space);

/// SVG: an axis for each setting that varies and one for the metric, a line for each trial that has a value, the best ones
/// in colour (Inselberg 1985, "The plane with parallel coordinates"). Empty where no trial has one.
std::string parallel_coordinates(const Sweep& sweep, const SweepSpace& space);

/// SVG: the metric of the best trial over steps, and median and quartiles of all of its round. Empty likewise.
std::string sweep_curves(const Sweep& sweep, const SweepSpace& space);

}  // namespace fullbore
