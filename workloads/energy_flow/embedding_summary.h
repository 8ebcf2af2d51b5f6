#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "workloads/energy_flow/embedding_file.h"

namespace fullbore::energy_flow {

/// What a file of embeddings holds.
struct EmbeddingSummary {
  EmbeddingFormat format = EmbeddingFormat::jsonl;
  int64_t records = 0;
  int64_t width = 0;
  int64_t texts = 0;        ///< records that have one
  int64_t token_lists = 0;  ///< records that have tokens
  int64_t most_tokens = 0;  ///< of a record
  int64_t most_masked = 0;  ///< tokens of a record that do not count
  double least_norm = 0;    ///< of the vectors
  double most_norm = 0;
  double sum_of_norms = 0;
  bool says_pairs = false;  ///< its flag
  bool says_normalized = false;
  std::vector<std::string> first_texts;  ///< of the first records, as many as were asked for

  double mean_norm() const { return records > 0 ? sum_of_norms / static_cast<double>(records) : 0; }
  /// What every record has, and what the file says.
  EmbeddingFacts facts() const;
};

using EmbeddingProgress = std::function<void(int64_t records)>;  ///< may be empty

/// Reads all of the file, and so checks it.
Result<EmbeddingSummary> summarize_embeddings(const std::string& path,
                                              const EmbeddingReadOptions& options = {},
                                              size_t texts = 0,
                                              const EmbeddingProgress& progress = {});

struct EmbeddingConversion {
  EmbeddingFormat format = EmbeddingFormat::efb2;
  bool pairs = false;      ///< records alternate: an input, then its target
  bool normalize = false;  ///< scale vectors to unit length
  int64_t limit = 0;       ///< at most so many records; 0: all
};

/// What a conversion made of a file.
struct ConvertedEmbeddings {
  EmbeddingFacts facts;
  int64_t records = 0;
  std::vector<std::string> left_out;  ///< sentences: what was in the file and is not in the new one
};

/// Reads the file twice, as the head of EFB says what all records have. Texts and tokens that not every record has,
/// or that the format cannot hold, are left out. UsageError for what the format cannot say.
Result<ConvertedEmbeddings> convert_embeddings(const std::string& from, const std::string& to,
                                               const EmbeddingConversion& conversion,
                                               const EmbeddingProgress& progress = {});

}  // namespace fullbore::energy_flow
