#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fullbore/train/bound_program.h"
#include "fullbore/train/page_pool.h"
#include "fullbore/train/paged_decode.h"
#include "fullbore/train/sample_rows.h"

namespace fullbore {

/// A page table of rows, and how they draw: what a graph of the next tokens is made for.
struct DecodeShape {
  int64_t rows = 1;    ///< R
  int64_t pages = 1;   ///< P, of each row
  int64_t tokens = 1;  ///< K, in a loop where there are more than one
  /// Where tokens are drawn: in the graph, or on the host, by the logits of one token.
  bool draws = true;
  SamplingKind kind = SamplingKind::full;
  int64_t stops = 0;  ///< tokens that end a row
  auto operator<=>(const DecodeShape&) const = default;
};

/// The programs of a model over one pool of pages, each compiled when it is needed first. The State must outlive them.
class PagedPrograms {
 public:
  PagedPrograms(PagedDecodeFunction decode, PoolShape pool, int64_t vocabulary, State& state,
                const CompileOptions& options);

  /// Reads tokens of rows, whose page tables have been extended by them: nothing comes of it but keys and values.
  /// Inputs `tokens` i32 [R,T], `position` i64 [R], `counts` i64 [R], `pages` i32 [R,P].
  BoundProgram& prefill(int64_t rows, int64_t length, int64_t pages);

  /// Reads the last token of each row and makes those that follow, until K are made or all rows have ended.
  /// Inputs  `tokens` i32 [R], `position` and `live` (0 or 1) i64 [R], `pages` i32 [R,P]
  /// -> `logits` f32 [R,V] where the host draws; else, with further inputs `made` and `limit` i64 [R] (tokens of each
  ///    row so far, and how many there may be), `key` i64 [], `counter` i64 [R] (step + 2^32 prompt), `sample` i64 [R],
  ///    `temperature` f32 [], `top_k` i64 [] and `top_p` f32 [] as SampleRowsInputs has them, `stops` i32 [stops]:
  /// -> `tokens` i32 [K,R], `raw` and `sampled` f32 [K,R], zeros where no iteration was made; rows that have ended give
  ///    anything.
  BoundProgram& decode(const DecodeShape& shape);

  /// Copies pages, before anything is written to the rows that have asked for it.
  void copy(std::span<const PagedRow::Copy> copies);

  static Graph trace_prefill(const PagedDecodeFunction& decode, PoolShape pool, int64_t rows,
                             int64_t length, int64_t pages);
  static Graph trace_decode(const PagedDecodeFunction& decode, PoolShape pool, int64_t vocabulary,
                            const DecodeShape& shape);

 private:
  BoundProgram compile(const Graph& graph) const { return {graph, state_, options_}; }
  Graph trace_copies() const;

  static constexpr int64_t kCopies = 16;  ///< of one launch

  PagedDecodeFunction decode_;
  PoolShape pool_;
  int64_t vocabulary_;
  State& state_;
  CompileOptions options_;
  std::map<std::vector<int64_t>, BoundProgram> prefills_;  ///< by rows, length, pages
  std::map<DecodeShape, BoundProgram> decodes_;
  std::map<int, BoundProgram> copies_;  ///< one, or none yet
};

}  // namespace fullbore
