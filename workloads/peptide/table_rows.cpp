#include "workloads/peptide/table_rows.h"

namespace fullbore::peptide {

Status TableRows::begin_cell() {
  if (count_ == kMostCells) return failure("the row has too many cells");
  if (count_ == cells_.size()) cells_.emplace_back();
  cells_[count_++].clear();
  return success();
}

Status TableRows::take(char c, Quotes& quotes) {
  std::string& cell = cells_[count_ - 1];
  if (c == separator_ && quotes != Quotes::inside) {
    quotes = Quotes::none;
    return begin_cell();
  }
  if (c == '"' && quotes == Quotes::inside) {
    quotes = Quotes::closed;
  } else if (c == '"' && quotes == Quotes::closed) {  // a doubled one
    quotes = Quotes::inside;
    cell += c;
  } else if (c == '"' && quotes == Quotes::none && trimmed(cell).empty()) {
    cell.clear();  // blanks before a quote are no text
    quotes = Quotes::inside;
  } else if (quotes == Quotes::closed && c != ' ') {
    return failure("text follows the end of a quoted cell; a quote in it would be doubled");
  } else if (quotes != Quotes::closed) {
    cell += c;
  }
  return success();
}

Status TableRows::split() {
  line_ = lines_.number();
  count_ = 0;
  Status status = begin_cell();
  Quotes quotes = Quotes::none;
  size_t bytes = 0;
  for (;;) {
    bytes += lines_.line().size() + 1;
    if (bytes > TextLines::kMostBytes) return failure("the row is too long");
    for (const char c : lines_.line()) {
      status = take(c, quotes);
      if (!status.ok()) return status;
    }
    if (quotes != Quotes::inside) return success();
    cells_[count_ - 1] += '\n';
    const Result<bool> more = lines_.next();
    if (!more.ok()) return Failure{more.error()};
    if (!more.value()) return failure("a quote does not end");
  }
}

}  // namespace fullbore::peptide
