#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fullbore/base/tensor_memory.h"
#include "fullbore/runtime/program.h"
#include "fullbore/runtime/state.h"
#include "fullbore/train/config.h"
#include "workloads/latentwire/receiver.h"

namespace fullbore::latentwire {

/// A trained encoder with its receivers, to be run on prompts. Rows are built as training builds them.
class TrainedLatent {
 public:
  /// batch: rows at once. DataError or UsageError: no checkpoint, or another model's.
  explicit TrainedLatent(const std::string& run_or_checkpoint, int64_t batch = 64);
  ~TrainedLatent();

  const Config& config() const { return config_; }
  const std::string& path() const { return path_; }
  int64_t step() const { return step_; }
  const std::vector<Receiver>& receivers() const { return receivers_; }
  int64_t slots() const { return slots_; }  ///< of the wire
  int64_t width() const { return width_; }
  int64_t prefix_length() const { return prefix_; }  ///< vectors that one receiver reads
  int64_t answer_tokens() const { return answer_; }  ///< at most written, and read of an answer
  /// Of the encoder: its parameters and what of the configuration says how they are used.
  uint64_t fingerprint() const { return fingerprint_; }

  /// Wires [texts, slots, width] of what the encoder reads, at most wire.max_bytes each.
  std::vector<float> encode(std::span<const std::string> texts);
  /// Of wires what a receiver reads: [wires, prefix_length, d].
  std::vector<float> prefixes(std::span<const float> wires, size_t receiver);

  /// What stands before an answer: wires, or tokens of each row.
  struct Given {
    std::span<const float> wires = {};
    std::span<const std::vector<int32_t>> prompts = {};
    size_t rows(int64_t wire_numbers) const {
      return prompts.empty() ? wires.size() / static_cast<size_t>(wire_numbers) : prompts.size();
    }
  };
  /// Answers, token by token the likeliest, until each has its terminator or answer_tokens().
  std::vector<std::vector<int32_t>> write(const Given& given, size_t receiver);
  /// What the receiver thinks of answers that are given.
  struct Likelihood {
    double nats = 0;           ///< -log p of all tokens
    bool first_right = false;  ///< is the first token the likeliest?
  };
  std::vector<Likelihood> read(const Given& given, std::span<const std::vector<int32_t>> answers,
                               size_t receiver);

 private:
  struct Part;
  /// Results of one batch: what is likeliest at each place of the answers, and their losses; both [B,T].
  struct Places {
    std::vector<int32_t> choices;
    std::vector<float> losses;
  };
  Part& part(const std::string& name, const Graph& graph);
  Part& answering(size_t receiver, int64_t prompt_places);
  Places run(Part& part, const Given& given, size_t begin, size_t count,
             std::span<const std::vector<int32_t>> answers);

  Config config_;
  std::string path_;
  int64_t step_ = 0, batch_ = 0, slots_ = 0, width_ = 0, prefix_ = 0, answer_ = 0;
  uint64_t fingerprint_ = 0;
  std::vector<Receiver> receivers_;
  std::unique_ptr<State> state_;
  std::map<std::string, std::unique_ptr<Part>> parts_;
};

}  // namespace fullbore::latentwire
