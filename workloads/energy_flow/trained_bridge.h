#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fullbore/runtime/state.h"
#include "fullbore/train/config.h"
#include "workloads/energy_flow/batch_program.h"
#include "workloads/energy_flow/text_cache.h"
#include "workloads/energy_flow/text_losses.h"
#include "workloads/energy_flow/text_tokens.h"

namespace fullbore::energy_flow {

/// How texts are written of surfaces.
struct WritingOptions {
  double temperature = 0.8;  ///< divides the logits
  /// So many times each text is written anew, with draws at temperature 0.7 - 0.1 k in round k, and of all of them the one
  /// is kept that the encoder makes the nearest surface of.
  int64_t correction_steps = 2;
  uint64_t seed = 1;  ///< of these draws
};

/// A trained text bridge, and with model.name=energy_flow the lattice between, compiled for so many texts at a time.
class TrainedBridge {
 public:
  struct Sizes {
    int64_t batch = 8;  ///< texts at a time
    int64_t beams = 2;  ///< followed for each text
    int64_t length =
        32;  ///< tokens of a text that is written, at most; 0: bridge.tokens and an end
    int64_t cached = 1000;  ///< texts and surfaces that are remembered, each
  };
  /// `run_or_checkpoint`: a run (its best checkpoint) or a checkpoint. UsageError: of another model, or without a bridge;
  /// DataError: damaged.
  TrainedBridge(const std::string& run_or_checkpoint, const Sizes& sizes);
  ~TrainedBridge();

  const std::string& path() const { return path_; }
  const Config& config() const { return config_; }
  const TextForm& form() const { return *form_; }
  int64_t cells() const { return cells_; }
  bool has_lattice() const { return config_.model.name == "energy_flow"; }

  /// The mapper's surfaces f32 [n, S] of embeddings f32 [n, W].
  std::vector<float> map(std::span<const float> embeddings);
  /// f32 [texts, S]; of what is longer than bridge.tokens the beginning is read. What is remembered is not computed again.
  /// DataError: a text that the tokenizer does not take.
  std::vector<float> encode(std::span<const std::string> texts);
  /// What the lattice makes of surfaces f32 [n, S], each by itself.
  std::vector<float> flow(std::span<const float> surfaces);
  /// The text of each surface f32 [n, S].
  std::vector<std::string> write(std::span<const float> surfaces, const WritingOptions& options);

  const LruCache<std::vector<float>>& encoded() const { return encoded_; }
  const LruCache<std::string>& written() const { return written_; }

 private:
  BatchProgram& part(const char* name) { return *parts_.at(name); }
  std::vector<float> run_rows(const char* name, std::span<const float> rows, int64_t width);
  void encode_batch(std::span<const std::string* const> texts, std::vector<float>& surfaces);
  std::vector<std::string> write_batch(std::span<const float> surfaces,
                                       const WritingOptions& options);
  std::vector<std::string> search(int64_t texts, double temperature);
  std::vector<std::string> draw(double temperature, uint64_t seed);
  void correct(std::span<const float> surfaces, int64_t round, const WritingOptions& options,
               std::vector<std::string>& texts, std::vector<double>& errors);
  std::vector<float> log_probabilities(std::span<const int32_t> tokens,
                                       std::span<const int32_t> rows, int64_t position,
                                       double temperature);
  int64_t rows() const { return sizes_.batch * sizes_.beams; }

  Sizes sizes_;
  std::string path_;
  Config config_;
  std::optional<TextForm> form_;
  int64_t cells_ = 0;
  std::unique_ptr<State> state_;
  std::map<std::string, std::unique_ptr<BatchProgram>> parts_;
  LruCache<std::vector<float>> encoded_;
  LruCache<std::string> written_;
};

}  // namespace fullbore::energy_flow
