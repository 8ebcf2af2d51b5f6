#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/data/datasets.h"

namespace fullbore {
namespace {

/// Tokens [begin, begin + count) of a document, in one row.
struct Piece {
  uint64_t document;
  int64_t begin;
  int64_t count;
};
using Rows = std::vector<std::vector<Piece>>;

/// One document after the other, rows cut out of them as they come.
Rows fill_rows(const std::vector<int64_t>& lengths, int64_t length) {
  Rows rows;
  int64_t space = 0;
  for (uint64_t document = 0; document < lengths.size(); ++document) {
    for (int64_t begin = 0; begin < lengths[document];) {
      if (space == 0) {
        rows.emplace_back();
        space = length;
      }
      const int64_t count = std::min(space, lengths[document] - begin);
      rows.back().push_back({document, begin, count});
      begin += count;
      space -= count;
    }
  }
  return rows;
}

/// The longest first, each into the row with the least space that suffices.
Rows fit_rows(const std::vector<int64_t>& lengths, int64_t length) {
  std::vector<Piece> pieces;
  for (uint64_t document = 0; document < lengths.size(); ++document)
    for (int64_t begin = 0; begin < lengths[document]; begin += length)
      pieces.push_back({document, begin, std::min(length, lengths[document] - begin)});
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.count > b.count; });
  Rows rows;
  std::map<int64_t, std::vector<size_t>> by_space;
  for (const Piece& piece : pieces) {
    const auto best = by_space.lower_bound(piece.count);
    size_t row = rows.size();
    int64_t space = length;
    if (best == by_space.end()) {
      rows.emplace_back();
    } else {
      row = best->second.back();
      space = best->first;
      best->second.pop_back();
      if (best->second.empty()) by_space.erase(best);
    }
    rows[row].push_back(piece);
    if (space > piece.count) by_space[space - piece.count].push_back(row);
  }
  return rows;
}

class Packed : public Dataset {
 public:
  Packed(DatasetPtr source, const PackOptions& options)
      : source_(std::move(source)), length_(options.length) {
    if (length_ < 1) throw UsageError(fmt::format("pack: a row of {} tokens", length_));
    if (options.multiple_of < 1)
      throw UsageError(fmt::format("pack: a multiple of {} rows", options.multiple_of));
    const std::vector<int64_t> lengths = example_lengths("pack", *source_);
    rows_ = options.cut_documents ? fill_rows(lengths, length_) : fit_rows(lengths, length_);
    const auto multiple = static_cast<size_t>(options.multiple_of);
    rows_.resize((rows_.size() + multiple - 1) / multiple * multiple);
  }
  const std::vector<std::string>& names() const override { return names_; }
  uint64_t size() const override { return rows_.size(); }
  std::vector<TensorType> types(uint64_t) const override {
    return std::vector<TensorType>(4, TensorType{DType::i32, {length_}});
  }
  Example get(uint64_t index) const override {
    Example row(4, Array(TensorType{DType::i32, {length_}}));
    const auto targets = row[1].tokens();
    std::fill(targets.begin(), targets.end(), -1);
    size_t at = 0;
    int32_t segment = 0;
    for (const Piece& piece : rows_[index]) {
      // The last token's target comes after the piece, if the document goes on.
      const int64_t rest = source_->types(piece.document).at(0).elements() - piece.begin;
      const Array part =
          source_->part(piece.document, 0, piece.begin, std::min(piece.count + 1, rest));
      const std::span<const int32_t> tokens = part.tokens();
      ++segment;
      for (size_t i = 0; i < static_cast<size_t>(piece.count); ++i, ++at) {
        row[0].tokens()[at] = tokens[i];
        if (i + 1 < tokens.size()) targets[at] = tokens[i + 1];
        row[2].tokens()[at] = segment;
        row[3].tokens()[at] = static_cast<int32_t>(i);
      }
    }
    return row;
  }

 private:
  DatasetPtr source_;
  int64_t length_;
  Rows rows_;
  std::vector<std::string> names_ = {"inputs", "targets", "segments", "positions"};
};

}  // namespace

DatasetPtr pack_documents(DatasetPtr source, const PackOptions& options) {
  return std::make_shared<Packed>(std::move(source), options);
}

}  // namespace fullbore
