#include "fullbore/lab/diagnosis/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace fullbore {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kColumns = 80;

std::vector<DiagnosisAdder>& adders() {
  static std::vector<DiagnosisAdder> all;
  return all;
}

double part(double some, double all) { return all > 0 ? some / all : 0; }

std::string percent(double share) { return fmt::format("{:.1f}%", 100 * share); }

const char* bound_of(const AttributionRow& row) {
  if (!(row.roofline_seconds > 0)) return "";
  return row.memory_seconds > 0.5 * row.roofline_seconds ? "memory" : "arithmetic";
}

/// Words in lines of at most kColumns columns; lines after the first are indented.
std::string wrapped(const std::string& words, const std::string& first, const std::string& others) {
  std::string out;
  std::string line = first;
  bool empty = true;
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find(' ', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    begin = end + 1;
    if (!empty && line.size() + 1 + word.size() > kColumns) {
      out += line + '\n';
      line = others;
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return out + line + '\n';
}

// Rows that take less than this of what was measured and of the whole run are told together.
constexpr double kLeastShown = 0.005;

std::string table_row(const std::string& phase, const std::string& what, double seconds,
                      double share, double whole, bool projected, const std::string& roofline,
                      const char* bound) {
  std::string line =
      fmt::format("{:<11}{:<22.22}{:>9.3f}{:>7}", phase, what, seconds, percent(share));
  if (projected) line += fmt::format("{:>10}", percent(whole));
  line += fmt::format("{:>9} {}", roofline, bound);
  while (line.ends_with(' ')) line.pop_back();
  return line + '\n';
}

std::string table(const Diagnosis& diagnosis) {
  const Attribution& measured = diagnosis.facts.measured;
  const Attribution& whole = diagnosis.facts.whole;
  const bool projected = !diagnosis.is_run;
  std::string out =
      fmt::format("{:<11}{:<22}{:>9}{:>7}{}{:>9} {}\n", "phase", "what", "seconds", "share",
                  projected ? fmt::format("{:>10}", "whole run") : "", "roofline", "bound by");
  struct Rest {
    double seconds = 0, whole = 0;
    int rows = 0;
    std::string what = {};  ///< of the last
  };
  Rest rest;
  std::optional<RunPhase> named;  // on the first row of each
  const auto name_of = [&](RunPhase phase) {
    const bool known = named == phase;
    named = phase;
    return known ? std::string() : std::string(run_phase_name(phase));
  };
  const auto flush = [&](RunPhase phase) {
    if (rest.rows > 0)
      out +=
          table_row(name_of(phase), rest.rows == 1 ? rest.what : fmt::format("{} more", rest.rows),
                    rest.seconds, part(rest.seconds, measured.wall_seconds),
                    part(rest.whole, whole.wall_seconds), projected, "", "");
    rest = {};
  };
  for (size_t i = 0; i < measured.rows.size(); ++i) {
    const AttributionRow& row = measured.rows[i];
    const double share = part(row.seconds, measured.wall_seconds);
    const double of_whole = part(whole.rows[i].seconds, whole.wall_seconds);
    if (std::max(share, of_whole) < kLeastShown) {
      rest.seconds += row.seconds;
      rest.whole += whole.rows[i].seconds;
      ++rest.rows;
      rest.what = row.what;
    } else {
      out += table_row(name_of(row.phase), row.what, row.seconds, share, of_whole, projected,
                       row.roofline_seconds > 0
                           ? fmt::format("{:.0f}%", 100 * row.roofline_seconds / row.seconds)
                           : "",
                       bound_of(row));
    }
    if (i + 1 == measured.rows.size() || measured.rows[i + 1].phase != row.phase) flush(row.phase);
  }
  out += table_row("all", "", measured.seconds(), part(measured.seconds(), measured.wall_seconds),
                   1, projected, "", "");
  return out;
}

std::string advice_text(const std::vector<Advice>& advice) {
  if (advice.empty()) return "\nNothing to advise: no rule found anything.\n";
  std::string out = "\nAdvice, the largest gain first:\n";
  int number = 0;
  for (const Advice& each : advice) {
    out += wrapped(each.finding, fmt::format("{:>2}. ", ++number), "    ");
    const std::string gain =
        std::isnan(each.gain) ? ""
                              : fmt::format(" (at most {} of the time less)", percent(each.gain));
    out += wrapped(each.change + gain, "    try   ", "          ");
    if (!each.undo.empty()) out += wrapped(each.undo, "    undo  ", "          ");
  }
  return out;
}

/// Not a number is written as null.
Json to_json(const Attribution& attribution) {
  Json rows = Json::array();
  for (const AttributionRow& row : attribution.rows) {
    Json json = {{"phase", run_phase_name(row.phase)},
                 {"what", row.what},
                 {"seconds", row.seconds},
                 {"share", part(row.seconds, attribution.wall_seconds)}};
    if (row.roofline_seconds > 0) {
      json["roofline_seconds"] = row.roofline_seconds;
      json["memory_seconds"] = row.memory_seconds;
      json["launches"] = row.launches;
      json["bound"] = bound_of(row);
    }
    rows.push_back(std::move(json));
  }
  return {{"wall_seconds", attribution.wall_seconds},
          {"attributed_share", part(attribution.seconds(), attribution.wall_seconds)},
          {"rows", rows}};
}

}  // namespace

void register_diagnosis_adder(DiagnosisAdder adder) { adders().push_back(std::move(adder)); }
const std::vector<DiagnosisAdder>& diagnosis_adders() { return adders(); }

std::vector<Advice> all_advice(const Diagnosis& diagnosis) {
  std::vector<Advice> advice = advise(diagnosis.facts);
  for (const DiagnosisAddition& addition : diagnosis.additions)
    advice.insert(advice.end(), addition.advice.begin(), addition.advice.end());
  std::ranges::stable_sort(advice, std::greater<>(), [](const Advice& each) {
    return std::isnan(each.gain) ? -1 : each.gain;
  });
  return advice;
}

Json to_json(const Diagnosis& diagnosis) {
  const RunFacts& facts = diagnosis.facts;
  Json advice = Json::array();
  for (const Advice& each : all_advice(diagnosis))
    advice.push_back({{"rule", each.rule},
                      {"finding", each.finding},
                      {"change", each.change},
                      {"gain", each.gain},
                      {"undo", each.undo}});
  Json additions = Json::object();
  for (const DiagnosisAddition& addition : diagnosis.additions) {
    Json figures = Json::object();
    for (const auto& [name, value] : addition.figures) figures[name] = value;
    additions[addition.title] = std::move(figures);
  }
  Json inactive = Json::array();
  for (const InactiveSwitch& each : facts.inactive)
    inactive.push_back({{"setting", each.setting}, {"why", each.why}, {"without", each.without}});
  Json json = {{"subject", diagnosis.subject},
               {"job", diagnosis.job},
               {"measured", to_json(facts.measured)}};
  if (!diagnosis.is_run) json["whole_run"] = to_json(facts.whole);
  json.update({{"bottleneck", bottleneck(facts)},
               {"advice", advice},
               {"inactive_switches", inactive},
               {"parameters_without_gradient", facts.idle_parameters},
               {"steps", facts.steps},
               {"launches_per_step", diagnosis.launches_per_step},
               {"unrecorded_launches", diagnosis.unrecorded_launches},
               {"loader_seconds", facts.loader_seconds},
               {"planned_bytes", facts.planned_bytes},
               {"resident_bytes", facts.resident_bytes},
               {"memory_bytes", facts.memory_bytes},
               {"utilisation", diagnosis.utilisation},
               {"additions", additions},
               {"notes", diagnosis.notes}});
  return json;
}

std::string text(const Diagnosis& diagnosis) {
  std::string out = wrapped(diagnosis.job, "", "  ");
  if (!diagnosis.measured.empty()) out += wrapped(diagnosis.measured, "", "  ");
  for (const std::string& note : diagnosis.notes) out += wrapped(note, "note: ", "  ");
  out += '\n' + table(diagnosis);
  if (std::ranges::any_of(diagnosis.facts.measured.rows, [](const AttributionRow& row) {
        return row.roofline_seconds > 1.005 * row.seconds;
      }))
    out += "roofline above 100 %: operands came from caches; the roofline counts memory\n";
  out += '\n' + wrapped(bottleneck(diagnosis.facts), "Bottleneck: ", "  ");
  for (const DiagnosisAddition& addition : diagnosis.additions) {
    out += '\n';
    for (const std::string& line : addition.lines) out += line + '\n';
  }
  return out + advice_text(all_advice(diagnosis));
}

}  // namespace fullbore
