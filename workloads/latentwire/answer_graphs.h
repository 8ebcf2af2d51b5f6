#pragma once
#include <cstdint>

#include "fullbore/ir/graph.h"
#include "workloads/latentwire/answer_rows.h"

namespace fullbore::latentwire {

/// What the programs of AnswerRows are made of. A graph's batch inputs and results are listed with it: S rows, T tokens of an
/// answer, V of the vocabulary.

/// Numbers of a wire.
int64_t wire_numbers(const AnswerSizes& sizes);
/// Places of a cache that a wire's keys take before the tokens (nn::KeyValues).
int64_t places_before_row(const AnswerSizes& sizes);
/// Places that a wire's row takes of the cache before its answer, those among them.
int64_t wire_places(const AnswerSizes& sizes);

/// The whole row of each answer: `answer` i32 [S,T] and `wire` f32 [S,M,C], or of texts `prompt` i32 [S,prompt_places] and
/// `lengths` i32 [S] -> `choices` i32 [S,T], `losses` f32 [S,T], `ranks` i32 [S,T]. prompt_places 0: behind a wire.
Graph trace_whole(const AnswerSizes& sizes, int64_t prompt_places);

/// A step over the cache.
struct CachedStep {
  enum class Reads : uint8_t { wire, tokens, embeddings };
  Reads reads = Reads::tokens;
  bool is_behind_wire = false;  ///< do the tokens stand behind a wire, with what that adds?
  bool judges = false;
  int64_t rows = 1;
  int64_t length = 1;  ///< tokens of each row at once; a wire's row has its own
  int64_t pages = 1;   ///< that a row has at most
};
/// `position` i64 [S], `counts` i64 [S], `pages` i32 [S,pages], and `wire` f32 [S,M,C], `tokens` i32 [S,length] or
/// `embeddings` f32 [S,length,d] -> `logits` f32 [S,V] behind each row's last token and `choices` i32 [S], their likeliest;
/// a step that judges has `targets` i32 [S,length] -> `losses` f32, `ranks` i32 [S,length].
Graph trace_cached(const AnswerSizes& sizes, const CachedStep& step);
/// `tokens` i32 [S,length] -> `embeddings` f32 [S,length,d].
Graph trace_embeddings(const AnswerSizes& sizes, int64_t length);

/// Pages of a row of so many places and an answer; of all rows and of what they share.
int64_t row_pages(const AnswerSizes& sizes, int64_t places);
int64_t pool_pages(const AnswerSizes& sizes);
/// Places of a text of so many tokens: few sizes, so that there are few programs.
int64_t rounded_places(int64_t tokens);

}  // namespace fullbore::latentwire
