#include "fullbore/lab/runs/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fullbore/base/svg_text.h"
#include "fullbore/base/text.h"
#include "fullbore/train/config_schema.h"

namespace fullbore {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

/// What says where a run stands, and is no curve of it.
bool is_bookkeeping(const std::string& metric) {
  return metric == "best" || metric == "predictions" || metric.starts_with("ms/");
}

bool changes(const std::vector<RunCurves::Point>& points) {
  return std::ranges::any_of(points, [&](const RunCurves::Point& point) {
    return std::isfinite(point.value) && point.value != points.front().value;
  });
}

/// Metrics of one name before their last slash are of one kind; losses, of one scale, too.
std::string group_of(const std::string& metric) {
  if (metric == "loss" || metric == "validation_loss") return "loss";
  const size_t slash = metric.rfind('/');
  return slash == metric.npos ? metric : metric.substr(0, slash);
}

std::string rows_html(const Rows& rows) {
  std::string html = "<table>\n";
  for (const auto& [name, value] : rows)
    html += fmt::format("<tr><th>{}</th><td>{}</td></tr>\n", svg_text(name), svg_text(value));
  return html + "</table>\n";
}

constexpr const char* kStyle = R"(<style>
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; }
th { text-align: left; font-weight: normal; color: #777; padding: 0.1rem 1.5rem 0.1rem 0; vertical-align: top; }
td { overflow-wrap: anywhere; padding-right: 1rem; vertical-align: top; }
td.whole { white-space: nowrap; }
.curves { display: grid; grid-template-columns: repeat(auto-fill, minmax(25rem, 1fr)); gap: 0.5rem; }
svg { max-width: 100%; height: auto; border-radius: 4px; margin: 0.5rem 0; display: block; }
</style>
)";

}  // namespace

Rows run_facts_text(const RunFolder& run) {
  Rows rows;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) rows.emplace_back(name, value);
  };
  const auto figure = [&](const char* name, const char* key, const auto& text) {
    if (const double value = run.figure(key); std::isfinite(value))
      rows.emplace_back(name, text(value));
  };
  const auto plain = [](double value) { return fmt::format("{:.4f}", value); };
  const auto bytes = [](double value) { return bytes_text(value); };
  add("status", run.status);
  if (const auto error = run.summary.find("error");
      error != run.summary.end() && error->is_string())
    add("error", error->get<std::string>());
  if (run.config) {
    add("model", run.config->model.name);
    add("steps", fmt::format("{} of {}", run.steps(), run.config->train.steps));
    add("precision", run.config->engine.precision);
  }
  figure("parameters", "parameters", [](double value) { return count_text(value); });
  figure("training loss", "final_train_loss", plain);
  figure("validation loss", "final_validation_loss", plain);
  figure("best validation loss", "best_validation_loss", [&](double value) {
    return fmt::format("{:.4f} at step {:.0f}", value, run.figure("best_step"));
  });
  // What is counted in samples has no tokens: their rate is none, or the samples'.
  const double tokens = run.figure("tokens_per_second");
  if (tokens > 0 && tokens != run.figure("samples_per_second"))
    figure("tokens a second", "tokens_per_second", [](double value) { return count_text(value); });
  figure("samples a second", "samples_per_second", [](double value) { return count_text(value); });
  figure("of the machine's peak", "utilisation",
         [](double value) { return fmt::format("{:.1f} %", 100 * value); });
  figure("waiting for data", "data_wait_share",
         [](double value) { return fmt::format("{:.1f} %", 100 * value); });
  figure("memory at most", "peak_bytes", bytes);
  figure("memory planned", "planned_peak_bytes", bytes);
  figure("first step after", "seconds_to_first_step",
         [](double value) { return duration_text(value); });
  figure("since the last start", "wall_seconds", [](double value) { return duration_text(value); });
  if (const auto maker = run.summary.find("made_by");
      maker != run.summary.end() && maker->is_object())
    for (const auto& [name, value] : maker->items())
      rows.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  add("size on disk", bytes_text(static_cast<double>(run.bytes)));
  return rows;
}

Rows chosen_settings(const RunFolder& run) {
  Rows rows;
  if (!run.config) return rows;
  const Config defaults;
  for (const ConfigField& field : config_fields()) {
    if (!field.is_for(*run.config)) continue;
    const std::string value = value_yaml(field, *run.config);
    if (value != value_yaml(field, defaults)) rows.emplace_back(field.key, value);
  }
  for (const auto& [key, value] : run.foreign) {
    const ConfigField* const field = find_config_field(key);
    if (field == nullptr || value != value_yaml(*field, defaults)) rows.emplace_back(key, value);
  }
  return rows;
}

std::vector<CurveGroup> curve_groups(const RunCurves& curves) {
  std::map<std::string, CurveGroup> groups;
  for (const auto& [metric, points] : curves.curves) {
    if (is_bookkeeping(metric) || !changes(points)) continue;
    CurveGroup& group = groups[group_of(metric)];
    group.title = group_of(metric);
    group.metrics.push_back(metric);
  }
  std::vector<CurveGroup> all;
  for (auto& [name, group] : groups) all.push_back(std::move(group));
  std::ranges::stable_sort(all, {}, [](const CurveGroup& group) { return group.title != "loss"; });
  return all;
}

std::string run_page(const RunFolder& run, const RunCurves& curves,
                     std::span<const PagePart> parts) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n{1}</head>\n"
      "<body>\n<h1>{0}</h1>\n",
      svg_text(run.name), kStyle);
  html += rows_html(run_facts_text(run));
  for (const std::string& problem : run.problems)
    html += fmt::format("<p>{}</p>\n", svg_text(problem));
  for (const PagePart& part : parts)
    html += fmt::format("<h2>{}</h2>\n{}", svg_text(part.title), part.html);
  html += "<h2>Curves</h2>\n";
  const std::vector<CurveGroup> groups = curve_groups(curves);
  if (groups.empty()) html += "<p>Nothing was recorded more than once.</p>\n";
  html += "<div class=\"curves\">\n";
  for (const CurveGroup& group : groups) {
    std::vector<ChartCurve> drawn;
    for (const std::string& metric : group.metrics)
      drawn.push_back(chart_curve(curves, metric, metric));
    html += curves_svg({group.title, "step", ""}, drawn);
  }
  html += "</div>\n<h2>Settings other than the defaults</h2>\n" + rows_html(chosen_settings(run));
  return html + "</body>\n</html>\n";
}

}  // namespace fullbore
