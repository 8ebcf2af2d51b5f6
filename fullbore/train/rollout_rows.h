#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "fullbore/train/page_pool.h"
#include "fullbore/train/paged_programs.h"
#include "fullbore/train/rollout.h"

namespace fullbore {

/// A completion that is being made.
struct GrowingRow {
  PagedRow pages;     ///< of all its tokens but the last
  int32_t last = 0;   ///< which is read next
  int64_t limit = 0;  ///< most tokens of it
  uint32_t index = 0;
  std::vector<bool> seen = {};  ///< by token, where there is a repetition penalty
  RolloutRow row = {};
  bool ended = false;
};

/// Tokens that a row is to read.
struct Prefilling {
  PagedRow* row = nullptr;
  std::span<const int32_t> tokens;
};

/// The launches of a rollout: fills what programs read, and appends what they make to rows.
class RolloutSteps {
 public:
  RolloutSteps(const RolloutSizes& sizes, int64_t row_pages, PagedPrograms& programs,
               const RolloutOptions& options);

  /// Of at most RolloutSizes::prefilled rows. Returns the launches made.
  int64_t prefill(std::span<const Prefilling> rows);
  /// One launch: rows get up to tokens_per_launch tokens more each. Returns how many they got in all. NumericalError for
  /// logits of which no probability can be made.
  int64_t decode(std::span<GrowingRow> rows);

 private:
  int64_t pages_for(int64_t most) const;
  int64_t rows_for(size_t count) const;
  void extend(PagedRow& row, int64_t tokens);
  void put_pages(BoundProgram& program, size_t row, const PagedRow& pages) const;
  void put_draws(BoundProgram& program, std::span<const GrowingRow> rows,
                 std::span<const int64_t> most) const;
  int64_t append_drawn(const BoundProgram& program, std::span<GrowingRow> rows,
                       std::span<const int64_t> most) const;
  int64_t append_by_logits(const BoundProgram& program, std::span<GrowingRow> rows) const;
  void append(GrowingRow& row, const SampledToken& token) const;

  const RolloutSizes& sizes_;
  int64_t row_pages_;
  PagedPrograms& programs_;
  const RolloutOptions& options_;
  DecodeShape shape_;  ///< but for rows and pages
  std::vector<PagedRow::Copy> copies_;
};

}  // namespace fullbore
