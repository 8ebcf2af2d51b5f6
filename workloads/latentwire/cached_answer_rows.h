#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "fullbore/nn/key_value_cache.h"
#include "fullbore/train/bound_program.h"
#include "fullbore/train/page_pool.h"
#include "workloads/latentwire/answer_graphs.h"
#include "workloads/latentwire/answer_rows.h"

namespace fullbore::latentwire {

/// What cached_answer_rows() gives.
class CachedAnswerRows : public AnswerRows {
 public:
  CachedAnswerRows(const AnswerSizes& sizes, State& state)
      : sizes_(sizes),
        state_(state),
        vocabulary_(static_cast<size_t>(receiver().decoder.vocabulary)),
        pool_(static_cast<int32_t>(pool_pages(sizes))),
        shared_(pool_, nn::kPageTokens) {
    for (int64_t row = 0; row < sizes.rows; ++row) rows_.emplace_back(pool_, nn::kPageTokens);
  }

  void begin(const Given& given, std::span<const size_t> chosen) override;
  std::vector<std::vector<int32_t>> write(const Writing& writing) override;
  std::vector<Likelihood> judge(std::span<const std::vector<int32_t>> answers) override;

 private:
  const Receiver& receiver() const { return sizes_.receivers[sizes_.number]; }
  BoundProgram& program(const CachedStep& step);
  BoundProgram& embedding(int64_t length);
  /// A step's inputs that are not its tokens: every row's place, `counts` by row, and its pages.
  void put_places(BoundProgram& program, int64_t behind, std::span<const int64_t> counts);
  void put_wires(BoundProgram& program, const CachedStep& step);
  void begin_wires();
  void begin_texts();
  void read_shared(const std::vector<int32_t>& tokens);
  CachedStep step_of(int64_t length, bool judges) const {
    return {.is_behind_wire = !given_.is_text(),
            .judges = judges,
            .rows = sizes_.rows,
            .length = length,
            .pages = pages_};
  }
  int32_t first_token(size_t row, const Writing& writing) const;
  std::span<const float> logits_of(size_t row) const {
    return std::span(logits_).subspan(row * vocabulary_, vocabulary_);
  }

  AnswerSizes sizes_;
  State& state_;
  size_t vocabulary_;
  PagePool pool_;
  PagedRow shared_;  ///< what all texts begin with
  std::vector<int32_t> shared_tokens_;
  std::vector<PagedRow> rows_;
  Given given_;
  std::vector<size_t> chosen_;
  std::vector<int64_t> places_;  ///< of each row, before its answer
  int64_t pages_ = 1;
  std::vector<float> logits_;  ///< [rows,V], behind those places
  std::map<std::tuple<CachedStep::Reads, bool, bool, int64_t, int64_t, int64_t>, BoundProgram>
      programs_;
  std::map<int64_t, BoundProgram> embeddings_;  ///< by length
};

}  // namespace fullbore::latentwire
