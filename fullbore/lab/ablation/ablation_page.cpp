#include <fmt/format.h>

#include "fullbore/lab/ablation/ablation_plots.h"
#include "fullbore/lab/ablation/ablation_report.h"
#include "fullbore/lab/ablation/ablation_tables.h"

namespace fullbore {
namespace {

constexpr const char* kStyle = R"(
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--soft:#6a737d;--rule:#d9dee3;
--better:#1a7f4b;--worse:#b3362b;--plain:#5b6b8c}
@media(prefers-color-scheme:dark){:root{--ink:#e4e8ec;--paper:#15181c;--soft:#98a2ad;--rule:#343b43;
--better:#4cc38a;--worse:#f0786b;--plain:#9aabcf}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:980px;
margin:2em auto;padding:0 1em}
h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}
th,td{padding:3px 9px;border-bottom:1px solid var(--rule);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}
th{color:var(--soft);font-weight:600}
svg{width:100%;height:auto;display:block}
svg text{font:12px system-ui,sans-serif}
text.note{fill:var(--soft)}text.name{fill:var(--ink)}
line{stroke-width:2}line.grid{stroke:var(--rule);stroke-width:1}line.base{stroke:var(--soft);stroke-width:1}
line.better{stroke:var(--better)}line.worse{stroke:var(--worse)}line.plain{stroke:var(--plain)}
circle.better,rect.better{fill:var(--better)}circle.worse,rect.worse{fill:var(--worse)}
circle.plain,rect.plain{fill:var(--plain)}circle.base{fill:var(--ink)}
.lead{color:var(--soft)}
)";

std::string figure(const std::string& title, const std::string& svg) {
  return svg.empty() ? "" : fmt::format("<h2>{}</h2>\n{}", html_text(title), svg);
}

/// A document of its own within another one: without the declaration that only a file begins with.
std::string inner_svg(const std::string& document) {
  const size_t begin = document.find("<svg");
  return begin == document.npos ? "" : document.substr(begin);
}

}  // namespace

std::string ablation_page(const AblationReport& report) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>Ablation of {}</title>\n<style>{}</style></head><body>\n<h1>Ablation of {}</h1>\n"
      "<p class=\"lead\">{}</p>\n",
      html_text(report.config), kStyle, html_text(report.config),
      html_text(ablation_headline(report)));
  const std::vector<std::string> notes = ablation_notes(report);
  out += fmt::format("<p><strong>{}</strong></p>\n", html_text(notes.back()));
  out += figure("Speed against the base, with 95 % intervals", speed_forest(report));
  out += figure("Quality against speed", quality_against_speed(report));
  out +=
      figure("The ladder: time of a step as switches are added", ladder_waterfall(report, false));
  out += figure("The ladder in the reverse order", ladder_waterfall(report, true));
  out +=
      figure("Curves over seconds of training steps, first seed", inner_svg(loss_curves(report)));
  for (const ReportTable& table : ablation_tables(report)) out += table_html(table);
  out += "<h2>Notes</h2>\n<ul>\n";
  for (const std::string& note : notes) out += fmt::format("<li>{}</li>\n", html_text(note));
  return out + "</ul>\n</body></html>\n";
}

}  // namespace fullbore
