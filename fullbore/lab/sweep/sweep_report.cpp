#include "fullbore/lab/sweep/sweep_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "fullbore/base/counted.h"
#include "fullbore/base/text.h"

namespace fullbore {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#6a737d;--rule:#d9dee3;--best:#0072b2;--rest:#b9c2cc}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--paper:#15181c;--soft:#98a2ad;--rule:#343b43;--best:#56b4e9;--rest:#4a535d}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:980px;margin:2em auto;padding:0 1em}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}
.wide{overflow-x:auto}.lead{color:var(--soft)}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:3px 9px;border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
th{color:var(--soft);font-weight:600}
svg{width:100%;height:auto;display:block}
svg.axes text{font:12px system-ui,sans-serif;fill:var(--soft)}svg.axes text.name{fill:var(--ink)}
svg.axes line{stroke:var(--rule)}
svg.axes polyline{fill:none;stroke:var(--rest);stroke-width:1}
svg.axes polyline.best{stroke:var(--best);stroke-width:2}
)";

const char* method_name(SweepSpace::Method method) {
  switch (method) {
    case SweepSpace::Method::grid: return "grid";
    case SweepSpace::Method::random: return "random";
    case SweepSpace::Method::halving: break;
  }
  return "halving";
}

nlohmann::ordered_json number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
}

const std::vector<std::string>& values_of(const Sweep& sweep, const SweepRow& row) {
  return sweep.trials[static_cast<size_t>(row.trial)];
}

/// The document behind its declaration, which only a file begins with.
std::string inner_svg(const std::string& document) {
  const size_t begin = document.find("<svg");
  return begin == document.npos ? "" : document.substr(begin);
}

}  // namespace

std::vector<SweepRow> ranked(const Sweep& sweep, const SweepSpace& space) {
  std::vector<SweepRow> rows;
  for (size_t round = sweep.runs.size(); round-- > 0;)
    for (const SweepRun& run : sweep.runs[round])
      if (std::ranges::find(rows, run.trial, &SweepRow::trial) == rows.end())
        rows.push_back({run.trial, static_cast<int64_t>(round), &run});
  std::ranges::stable_sort(rows, [&](const SweepRow& a, const SweepRow& b) {
    if (a.run->ok() != b.run->ok()) return a.run->ok();
    if (a.round != b.round) return a.round > b.round;
    if (!a.run->ok()) return a.trial < b.trial;
    return space.higher_is_better ? a.run->value > b.run->value : a.run->value < b.run->value;
  });
  return rows;
}

std::string sweep_headline(const Sweep& sweep, const SweepSpace& space) {
  return fmt::format("{}: {} of {} ({}), {} of {} steps; {}, {}{}", space.config,
                     counted(std::ssize(sweep.trials), "trial"),
                     counted(std::ssize(space.dimensions), "setting"), method_name(space.method),
                     counted(std::ssize(sweep.rounds), "round"), fmt::join(sweep.rounds, ", "),
                     space.metric, space.higher_is_better ? "highest" : "lowest",
                     sweep.out_of_time ? "; out of time: not all were made" : "");
}

ReportTable sweep_table(const Sweep& sweep, const SweepSpace& space, size_t most) {
  ReportTable table;
  table.title = "Trials, the best first";
  table.header = {"trial"};
  for (const SweepDimension& dimension : space.dimensions)
    table.header.push_back(dimension.key.substr(dimension.key.find('.') + 1));
  table.header.insert(table.header.end(), {"steps", space.metric, "time", "memory"});
  for (const SweepRow& row : ranked(sweep, space)) {
    if (most > 0 && table.rows.size() == most) break;
    std::vector<std::string> cells = {fmt::format("{}", row.trial)};
    const std::vector<std::string>& values = values_of(sweep, row);
    cells.insert(cells.end(), values.begin(), values.end());
    const SweepRun& run = *row.run;
    cells.push_back(fmt::format("{}", sweep.rounds[static_cast<size_t>(row.round)]));
    cells.push_back(run.ok() ? fmt::format("{:.4f}", run.value) : "failed");
    cells.push_back(std::isfinite(run.seconds) ? duration_text(run.seconds) : "-");
    cells.push_back(run.resident_peak_bytes > 0
                        ? bytes_text(static_cast<double>(run.resident_peak_bytes))
                        : "-");
    table.rows.push_back(std::move(cells));
  }
  return table;
}

nlohmann::ordered_json to_json(const Sweep& sweep, const SweepSpace& space) {
  nlohmann::ordered_json keys = nlohmann::ordered_json::array();
  for (const SweepDimension& dimension : space.dimensions) keys.push_back(dimension.key);
  nlohmann::ordered_json json = {{"config", space.config},
                                 {"method", method_name(space.method)},
                                 {"metric", space.metric},
                                 {"goal", space.higher_is_better ? "highest" : "lowest"},
                                 {"rounds", sweep.rounds},
                                 {"keys", std::move(keys)},
                                 {"trials", std::ssize(sweep.trials)},
                                 {"out_of_time", sweep.out_of_time}};
  json["ranked"] = nlohmann::ordered_json::array();
  for (const SweepRow& row : ranked(sweep, space)) {
    nlohmann::ordered_json curve = nlohmann::ordered_json::array();
    for (const SweepRun::Point& point : row.run->curve) curve.push_back({point.step, point.value});
    json["ranked"].push_back({{"trial", row.trial},
                              {"round", row.round},
                              {"values", values_of(sweep, row)},
                              {"value", number(row.run->value)},
                              {"seconds", number(row.run->seconds)},
                              {"resident_peak_bytes", row.run->resident_peak_bytes},
                              {"reason", row.run->reason},
                              {"curve", std::move(curve)}});
  }
  return json;
}

std::string sweep_markdown(const Sweep& sweep, const SweepSpace& space) {
  std::string out = fmt::format("# Sweep\n\n{}\n\n{}", sweep_headline(sweep, space),
                                table_markdown(sweep_table(sweep, space)));
  for (const SweepRow& row : ranked(sweep, space))
    if (!row.run->ok()) out += fmt::format("\nTrial {}: {}\n", row.trial, row.run->reason);
  return out;
}

std::string sweep_page(const Sweep& sweep, const SweepSpace& space) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Sweep of {0}</title>\n"
      "<style>{1}</style></head><body>\n<h1>Sweep of {0}</h1>\n<p class=\"lead\">{2}</p>\n",
      html_text(space.config), kStyle, html_text(sweep_headline(sweep, space)));
  if (const std::string axes = parallel_coordinates(sweep, space); !axes.empty())
    out += "<h2>What goes with what</h2>\n" + axes;
  if (const std::string curves = sweep_curves(sweep, space); !curves.empty())
    out += "<h2>The best trial among all of its round</h2>\n" + inner_svg(curves);
  out += table_html(sweep_table(sweep, space));
  for (const SweepRow& row : ranked(sweep, space))
    if (!row.run->ok())
      out += fmt::format("<p>Trial {}: {}</p>\n", row.trial, html_text(row.run->reason));
  return out + "</body></html>\n";
}

}  // namespace fullbore
