#include "fullbore/lab/report_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "fullbore/base/printable.h"
#include "fullbore/base/svg_text.h"

namespace fullbore {
namespace {

constexpr size_t kGap = 2;

/// Code points, which is what terminals count of our own texts.
size_t columns_of(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string padding(size_t count) { return std::string(count, ' '); }

std::string markdown_cell(std::string_view text) {
  std::string cell;
  for (const char c : printable_name(text)) {
    if (c == '|' || c == '\\' || c == '<' || c == '`' || c == '*' || c == '_') cell += '\\';
    cell += c;
  }
  return cell;
}

}  // namespace

std::string table_text(const ReportTable& table, size_t width) {
  std::vector<size_t> widths;
  for (size_t column = 0; column < table.header.size(); ++column) {
    size_t widest = columns_of(table.header[column]);
    for (const std::vector<std::string>& row : table.rows)
      widest = std::max(widest, columns_of(printable_name(row[column])));
    widths.push_back(widest);
  }
  const size_t others =
      std::accumulate(widths.begin() + 1, widths.end(), size_t{0}) + kGap * (widths.size() - 1);
  const size_t room = width > others + 8 ? width - others : 8;
  widths[0] = std::min(widths[0], room);
  std::string out = table.title.empty() ? "" : table.title + '\n';
  const auto add = [&](const std::vector<std::string>& row) {
    const std::string first = printable_name(row[0]);
    std::string line = first;
    if (columns_of(first) > widths[0]) {
      out += first + '\n';
      line.clear();
    }
    line += padding(widths[0] - columns_of(line));
    for (size_t column = 1; column < row.size(); ++column) {
      const std::string cell = printable_name(row[column]);
      line += padding(kGap + widths[column] - columns_of(cell)) + cell;
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  };
  add(table.header);
  for (const std::vector<std::string>& row : table.rows) add(row);
  return out;
}

std::string table_markdown(const ReportTable& table) {
  std::string out = table.title.empty() ? "" : fmt::format("## {}\n\n", markdown_cell(table.title));
  const auto add = [&](const std::vector<std::string>& row) {
    out += '|';
    for (const std::string& cell : row) out += ' ' + markdown_cell(cell) + " |";
    out += '\n';
  };
  add(table.header);
  for (size_t column = 0; column < table.header.size(); ++column)
    out += column == 0 ? "| --- |" : " ---: |";
  out += '\n';
  for (const std::vector<std::string>& row : table.rows) add(row);
  return out;
}

std::string wrapped_text(const std::string& text, size_t width) {
  std::string out;
  size_t column = 0;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = text.find(' ', at);
    if (end == text.npos) end = text.size();
    if (column > 0 && column + 1 + (end - at) > width) {
      out += '\n';
      column = 0;
    }
    if (column > 0) out += ' ', ++column;
    out.append(text, at, end - at);
    column += end - at;
    at = end + 1;
  }
  return out + '\n';
}

std::string html_text(std::string_view text) { return svg_text(text); }

std::string table_html(const ReportTable& table) {
  std::string out = table.title.empty() ? "" : fmt::format("<h2>{}</h2>\n", html_text(table.title));
  out += "<div class=\"wide\"><table>\n";
  const auto add = [&](const std::vector<std::string>& row, const char* cell) {
    out += "<tr>";
    for (const std::string& text : row)
      out += fmt::format("<{}>{}</{}>", cell, html_text(text), cell);
    out += "</tr>\n";
  };
  add(table.header, "th");
  for (const std::vector<std::string>& row : table.rows) add(row, "td");
  return out + "</table></div>\n";
}

}  // namespace fullbore
