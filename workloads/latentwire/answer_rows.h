#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fullbore/app/job_options.h"
#include "fullbore/runtime/state.h"
#include "fullbore/train/config.h"
#include "workloads/latentwire/receiver.h"

namespace fullbore::latentwire {

/// What stands before answers: a wire for each row, or tokens.
struct Given {
  std::span<const float> wires = {};
  std::span<const std::vector<int32_t>> prompts = {};
  /// Are the tokens read as vectors of the token table, which must change nothing?
  bool as_embeddings = false;

  bool is_text() const { return !prompts.empty(); }
  size_t rows(int64_t wire_numbers) const {
    return is_text() ? prompts.size() : wires.size() / static_cast<size_t>(wire_numbers);
  }
};

/// How answers are written; the likeliest token, unless said otherwise.
struct Writing {
  int64_t least_tokens = 0;      ///< before as many, nothing is written that ends an answer
  double first_temperature = 0;  ///< of the first token; 0: the likeliest
  double first_top_p = 1;        ///< as SamplingOptions has it
  uint64_t seed = 0;             ///< of the first tokens, with a row's number
};

/// What a receiver thinks of an answer that is given, token by token.
struct Likelihood {
  std::vector<float> losses;   ///< -log p
  std::vector<int32_t> ranks;  ///< how many tokens are likelier

  double nats() const;
  /// One token more, of the logits of what may follow.
  void add(std::span<const float> logits, int32_t token);
};
/// The token with the largest logit behind `answer`; of those that would not end it, where it may not end.
int32_t likeliest_token(std::span<const float> logits, const Receiver& receiver,
                        const std::vector<int32_t>& answer, bool may_end);

/// Seconds that a receiver took, results read by the host; compilers are not counted.
struct AnswerTimes {
  double prefill = 0, decode = 0, judge = 0;
  int64_t prefilled = 0;  ///< places that were computed before answers, padding too
  int64_t shared = 0;     ///< places that rows have of another's computing
  int64_t decoded = 0;    ///< tokens that were written behind the first of each answer

  AnswerTimes operator-(const AnswerTimes& other) const;
};

/// Adds the seconds that it lives.
class Seconds {
 public:
  explicit Seconds(double& sum) : sum_(sum) {}
  ~Seconds() { sum_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Seconds(const Seconds&) = delete;
  Seconds& operator=(const Seconds&) = delete;

 private:
  using Clock = std::chrono::steady_clock;
  double& sum_;
  Clock::time_point start_ = Clock::now();
};

/// Some prompts that a receiver has read, behind which answers are written and judged, each any number of times.
class AnswerRows {
 public:
  virtual ~AnswerRows() = default;
  /// Reads rows `chosen` of what is given, at most as many as there is room for; they replace those before.
  virtual void begin(const Given& given, std::span<const size_t> chosen) = 0;
  /// An answer for each row, its terminator included if it has one.
  virtual std::vector<std::vector<int32_t>> write(const Writing& writing) = 0;
  /// Of an answer for each row.
  virtual std::vector<Likelihood> judge(std::span<const std::vector<int32_t>> answers) = 0;

  const AnswerTimes& times() const { return times_; }

 protected:
  AnswerTimes times_;
};

/// Of one receiver. What it refers to must outlive what is made of it.
struct AnswerSizes {
  const Config& config;
  const std::vector<Receiver>& receivers;
  size_t number = 0;          ///< of the receiver
  int64_t rows = 1;           ///< at once
  int64_t answer_tokens = 1;  ///< of an answer, at most
  int64_t text_places = 0;    ///< tokens of the longest text; 0: none is read
};

/// Each token of an answer is a pass over the whole row, as training has it: slow, and what the other must agree with. It
/// writes what is likeliest, whatever it is told.
std::unique_ptr<AnswerRows> whole_answer_rows(const AnswerSizes& sizes, State& state);
/// A graph that has all State which that needs.
Graph whole_answer_graph(const AnswerSizes& sizes);

/// Keys and values of what stands before answers are kept, by pages (nn/key_value_cache.h): it is read once for all answers
/// behind it, and each token of an answer is one step. Tokens that all texts begin with are read once for all rows.
std::unique_ptr<AnswerRows> cached_answer_rows(const AnswerSizes& sizes, State& state);
Graph cached_answer_graph(const AnswerSizes& sizes);
/// Bytes that its cache takes for each row.
int64_t cached_row_bytes(const AnswerSizes& sizes);

}  // namespace fullbore::latentwire
