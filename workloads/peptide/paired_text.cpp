#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "workloads/peptide/paired.h"

namespace fullbore::peptide {

nlohmann::ordered_json to_json(const PairedReport& report) {
  nlohmann::ordered_json measures = nlohmann::ordered_json::array();
  for (const PairedMeasure& measure : report.measures) {
    measures.push_back({{"name", measure.name},
                        {"a", measure.a},
                        {"b", measure.b},
                        {"difference", measure.difference},
                        {"interval", {measure.interval.low, measure.interval.high}}});
    if (!measure.unit.empty()) measures.back()["unit"] = measure.unit;
    if (measure.mcnemar_p)
      measures.back().update({{"only_a", measure.only_a},
                              {"only_b", measure.only_b},
                              {"mcnemar_p", *measure.mcnemar_p}});
  }
  return {{"spectra", report.spectra},
          {"confidence", report.options.confidence},
          {"replicates", report.options.replicates},
          {"key", report.options.key},
          {"measures", measures}};
}

std::string text(const PairedReport& report) {
  std::string lines = fmt::format("{:<26}{:>11}{:>11}{:>11}   {:<25}{}\n", "", "A", "B", "B - A",
                                  fmt::format("{:g} % interval", 100 * report.options.confidence),
                                  "right in A or B alone");
  for (const PairedMeasure& measure : report.measures) {
    const bool is_share = measure.unit.empty();
    const double scale = is_share ? 100 : 1;
    const std::string interval = fmt::format("{:+.3f} to {:+.3f}", scale * measure.interval.low,
                                             scale * measure.interval.high);
    const std::string name =
        fmt::format("{}, {}", measure.name, is_share ? "%" : measure.unit.c_str());
    const std::string row =
        fmt::format("{:<26}{:>11.3f}{:>11.3f}{:>+11.3f}   {:<25}", name, scale * measure.a,
                    scale * measure.b, scale * measure.difference, interval);
    lines += measure.mcnemar_p ? fmt::format("{}{} : {}, p = {:.3g}\n", row, measure.only_a,
                                             measure.only_b, *measure.mcnemar_p)
                               : row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  return lines +
         fmt::format(
             "\n{} spectra, the same of both. Intervals: percentiles of {} bootstrap samples of "
             "spectra, key {}; p: McNemar, exact, two-sided.\n",
             report.spectra, report.options.replicates, report.options.key);
}

}  // namespace fullbore::peptide
