#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/runtime/state.h"
#include "fullbore/train/bound_program.h"
#include "fullbore/train/config.h"
#include "workloads/latentwire/answer_rows.h"

namespace fullbore::latentwire {

/// What is wanted of a trained encoder and its receivers.
struct TrainedLatentOptions {
  enum class Cache : uint8_t { off, on, check };
  int64_t rows = 64;  ///< at once, fewer where their caches would take more than kCacheBytes
  /// Do answers keep keys and values? `check` answers both ways, and keeps what whole passes say.
  Cache cache = Cache::on;
  int64_t answer_tokens = 0;  ///< at most written; 0: receivers.max_answer_tokens
  /// Tokens of the longest text that a receiver is to be given; none: no text is.
  std::function<int64_t(const Receiver&)> longest_text = {};
  /// Told of the run's configuration, before that is asked.
  std::function<void(const Config&)> opened = {};
  /// Where the weights lie that the checkpoint knows by their hashes: a folder, or NAME=FOLDER of each receiver.
  std::vector<std::string> frozen_from = {};
};

/// What both ways of answering made of the same rows.
struct CacheCheck {
  int64_t rows = 0;
  int64_t other_answers = 0;  ///< rows whose answers are not the same
  double largest_loss = 0;    ///< difference of a token's -log p
};

/// A trained encoder with its receivers, to be run on prompts. Rows are built as training builds them.
class TrainedLatent {
 public:
  using Answers = std::vector<std::vector<int32_t>>;
  static constexpr int64_t kCacheBytes = int64_t{1} << 30;  ///< of one receiver's cache

  /// DataError or UsageError: no checkpoint, or another model's; other weights.
  explicit TrainedLatent(const std::string& run_or_checkpoint,
                         const TrainedLatentOptions& options = {});
  ~TrainedLatent();

  const Config& config() const { return config_; }
  const std::string& path() const { return path_; }
  int64_t step() const { return step_; }
  const std::vector<Receiver>& receivers() const { return receivers_; }
  int64_t slots() const { return slots_; }  ///< of the wire
  int64_t width() const { return width_; }
  int64_t prefix_length() const { return prefix_; }  ///< vectors that one receiver reads
  int64_t answer_tokens() const { return answer_; }  ///< read of an answer that is given, at most
  int64_t rows() const { return rows_; }             ///< at once
  /// Of the encoder: its parameters and what of the configuration says how they are used.
  uint64_t fingerprint() const { return fingerprint_; }

  /// Does the encoder read all of a text? Of tokens, what is behind wire.max_tokens is left out.
  bool reads_whole(const std::string& text) const;
  /// Wires [texts, slots, width] of what the encoder reads, at most wire.max_bytes each.
  std::vector<float> encode(std::span<const std::string> texts);
  double encode_seconds() const { return encode_seconds_; }
  /// Of wires what a receiver reads: [wires, prefix_length, d].
  std::vector<float> prefixes(std::span<const float> wires, size_t receiver);

  struct Wanted {
    bool writes = false;
    Writing writing = {};
    /// Answers to be judged, a set of one for each row; any number of sets.
    std::span<const Answers> judged = {};
  };
  struct Answered {
    Answers written;                            ///< by row
    std::vector<std::vector<Likelihood>> read;  ///< by set and row
    AnswerTimes times;
  };
  /// All that is wanted behind each row, which is read once. UsageError: a text that does not fit the receiver.
  Answered answer(const Given& given, size_t receiver, const Wanted& wanted);
  /// What the likeliest tokens answer.
  Answers write(const Given& given, size_t receiver) {
    return answer(given, receiver, {.writes = true}).written;
  }
  std::vector<Likelihood> read(const Given& given, const Answers& answers, size_t receiver) {
    return answer(given, receiver, {.judged = {&answers, 1}}).read[0];
  }
  /// Of Cache::check, all that was answered so far.
  const CacheCheck& cache_check() const { return check_; }

 private:
  AnswerSizes sizes_of(size_t receiver) const;
  void set_rows(const TrainedLatentOptions& options);
  int64_t most_units() const;  ///< that the encoder reads of a prompt
  BoundProgram& encoder(int64_t places);
  void check_texts(const Given& given, size_t receiver) const;
  AnswerRows& rows_of(size_t receiver, bool is_cached);
  void answer_rows(AnswerRows& rows, const Given& given, std::span<const size_t> chosen,
                   const Wanted& wanted, Answered& result) const;
  void compare(const Answered& whole, const Answered& cached);

  Config config_;
  std::string path_;
  TrainedLatentOptions::Cache cache_;
  int64_t step_ = 0, rows_ = 0, slots_ = 0, width_ = 0, prefix_ = 0, answer_ = 0, written_ = 0;
  uint64_t fingerprint_ = 0;
  double encode_seconds_ = 0;
  CacheCheck check_;
  std::vector<Receiver> receivers_;
  std::shared_ptr<const TextEncoder> text_;  ///< null: bytes are read
  std::vector<int64_t> text_places_;         ///< by receiver
  std::unique_ptr<State> state_;
  std::map<int64_t, BoundProgram> encoders_;  ///< by bytes of a prompt
  std::map<size_t, BoundProgram> adapters_;   ///< by receiver
  std::map<std::pair<size_t, bool>, std::unique_ptr<AnswerRows>> answering_;  ///< and is_cached
};

}  // namespace fullbore::latentwire
