#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/base/result.h"

namespace fullbore::energy_flow {

/// A text's tokens as a teacher was given them. `mask` is 1 where a token counts, else 0; as long as `ids`.
struct MaskedTokens {
  std::vector<int32_t> ids;
  std::vector<uint8_t> mask;
};

/// An embedding, with what it was made of as far as that is known.
struct EmbeddingRecord {
  std::vector<float> vector;  ///< f32[width]
  bool has_text = false;
  std::string text;  ///< UTF-8
  bool has_tokens = false;
  MaskedTokens tokens;
};

/// What is the same for all records of a file.
struct EmbeddingFacts {
  int64_t width = 0;        ///< elements of each vector
  bool has_tokens = false;  ///< every record has them
  bool has_text = false;
  bool normalized = false;  ///< every vector has unit length
  bool pairs = false;       ///< records alternate: an input, then its target
};

// What a file may claim, so that none exhausts memory.
inline constexpr int64_t kMostWidth = int64_t{1} << 16;
inline constexpr int64_t kMostTokens = int64_t{1} << 16;
inline constexpr int64_t kMostTextBytes = int64_t{1} << 20;
// Of a vector's length: outside, it is an error of whoever made it.
inline constexpr double kLeastNorm = 0.01;
inline constexpr double kMostNorm = 100;

/// Holds the record to `facts`: its width, elements that are finite, a length of the vector from kLeastNorm to
/// kMostNorm, of 1 within 1e-3 where vectors are normalized, and an even number of records where they are pairs is for
/// others to see. Failure: the field and what is wrong with it, "target: ...", without a place.
Status check_record(const EmbeddingRecord& record, const EmbeddingFacts& facts);

}  // namespace fullbore::energy_flow
