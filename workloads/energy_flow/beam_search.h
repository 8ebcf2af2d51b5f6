#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace fullbore::energy_flow {

struct BeamOptions {
  int64_t texts = 1;
  int64_t beams = 1;   ///< texts that are followed side by side for each one wanted; 1: greedy
  int64_t length = 1;  ///< tokens of a text at most, the one that ends it included
  int64_t vocabulary = 1;
  int32_t begin = 0;                ///< the token that a decoder reads first
  int32_t end = 0;                  ///< the token behind a text's last
  std::vector<int32_t> never = {};  ///< tokens that are not written
};

/// A text as far as it is written, and the sum of its tokens' log-probabilities.
struct WrittenText {
  std::vector<int32_t> tokens;  ///< without the one that ends it
  double score = 0;
};

/// The search for the most probable texts, a token at a time: of the continuations of a text's beams the best are followed
/// on; those that end among the best are kept. Texts x beams rows go through the decoder side by side. Equal scores are
/// taken in the order of beams, then of tokens. A search ends when no beam can become better than the best that has
/// ended, for scores only fall. Graves 2012, arXiv:1211.3711, section 3.
class BeamSearch {
 public:
  explicit BeamSearch(BeamOptions options);

  int64_t rows() const { return options_.texts * options_.beams; }
  /// i32 [rows]: the token that the decoder reads next.
  std::span<const int32_t> tokens() const { return tokens_; }
  /// i32 [rows]: the row that each goes on from.
  std::span<const int32_t> parents() const { return parents_; }
  /// f32 [rows, vocabulary]: of the token that follows.
  void take(std::span<const float> log_probabilities);
  bool is_done() const;
  /// The best text, ended or, where the length did not do, as far as it came.
  WrittenText best(int64_t text) const;

 private:
  struct Continuation {
    double score;
    int64_t beam;
    int32_t token;
  };
  void advance(int64_t text, std::span<const float> log_probabilities);
  std::vector<Continuation> best_continuations(int64_t text,
                                               std::span<const float> log_probabilities) const;
  size_t row(int64_t text, int64_t beam) const {
    return static_cast<size_t>(text * options_.beams + beam);
  }

  BeamOptions options_;
  std::vector<bool> writes_;          ///< by token
  std::vector<WrittenText> written_;  ///< by row; a score of -infinity: a beam that is not followed
  std::vector<WrittenText> ended_;    ///< by text, the best; -infinity: none
  std::vector<bool> done_;            ///< by text
  std::vector<int32_t> tokens_;
  std::vector<int32_t> parents_;
  int64_t length_ = 0;
};

}  // namespace fullbore::energy_flow
