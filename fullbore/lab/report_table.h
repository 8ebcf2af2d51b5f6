#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fullbore {

/// A table of a report, whoever it is written for. The first column is text, the others are numbers.
struct ReportTable {
  std::string title;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  ///< each as long as the header
};

/// Columns in characters, for terminals: as wide as they must be. A first column that would make lines longer than `width` is
/// continued on lines of its own.
std::string table_text(const ReportTable& table, size_t width = 80);
std::string table_markdown(const ReportTable& table);
/// <table>, escaped.
std::string table_html(const ReportTable& table);

/// Lines of at most `width` columns; a word that is longer stands alone.
std::string wrapped_text(const std::string& text, size_t width = 80);

/// The text as it stands in HTML, within elements and quoted attributes.
std::string html_text(std::string_view text);

}  // namespace fullbore
