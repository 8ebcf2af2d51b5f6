#include "workloads/long_context/context_model.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "fullbore/data/character_tokenizer.h"
#include "fullbore/text/trained_text_model.h"
#include "fullbore/train/generator.h"
#include "workloads/long_context/needle_example.h"
#include "workloads/long_context/reference_readers.h"

namespace fullbore {
namespace {

using long_context::ContextReader;

/// A trained model. Of limited sight: of what it reads the newest tokens are kept, and taken by chunks when
/// it is asked for the first time. Without a context: what it reads is taken at once, by chunks, into a state
/// that does not grow.
class TrainedReader : public ContextReader {
 public:
  explicit TrainedReader(TrainedModel model)
      : model_(std::move(model)),
        sizes_(generator_sizes(model_.config, model_.tokenizer->vocabulary_size(), 1)),
        generator_(model_decode(model_.config, model_.tokenizer->vocabulary_size()), sizes_,
                   model_.state, trained_options(model_.config)) {}

  int64_t context() const override { return sizes_.context; }

  void begin(int64_t room) override {
    kept_.clear();
    begun_ = false;
    seen_ = std::max<int64_t>(1, sizes_.context - room);
  }

  void read(std::span<const int32_t> tokens) override {
    if (sizes_.context == 0) {
      if (tokens.empty()) return;
      begun_ ? generator_.extend(tokens) : generator_.begin(tokens);
      begun_ = true;
      return;
    }
    if (begun_) {
      for (const int32_t token : tokens) generator_.append({&token, 1});
      return;
    }
    const auto most = static_cast<size_t>(seen_);
    if (tokens.size() > most) tokens = tokens.last(most);
    kept_.insert(kept_.end(), tokens.begin(), tokens.end());
    if (kept_.size() > most)
      kept_.erase(kept_.begin(), kept_.end() - static_cast<std::ptrdiff_t>(most));
  }

  std::span<const float> logits() override {
    if (!begun_) generator_.begin(kept_);
    begun_ = true;
    return generator_.logits(0);
  }

 private:
  TrainedModel model_;
  GeneratorSizes sizes_;
  Generator generator_;
  std::vector<int32_t> kept_;
  int64_t seen_ = 0;
  bool begun_ = false;
};

std::shared_ptr<const Tokenizer> letters() {
  const std::string alphabet = long_context::shakespeare_alphabet();
  return std::make_shared<CharacterTokenizer>(
      std::vector<char32_t>(alphabet.begin(), alphabet.end()));
}

}  // namespace

ContextModel open_context_model(const std::string& name, uint64_t seed) {
  ContextModel model;
  model.name = name;
  const bool is_path = std::filesystem::exists(name);
  if (!is_path && (name == "oracle" || name == "random")) {
    model.tokenizer = letters();
    if (name == "oracle")
      model.reader = std::make_unique<long_context::NeedleOracle>(*model.tokenizer);
    else
      model.reader = std::make_unique<long_context::LetterGuesser>(*model.tokenizer, seed);
    return model;
  }
  TrainedModel trained = load_model(name, {.samples = 1});
  model.name = trained.path;
  model.step = trained.step;
  model.tokenizer = trained.tokenizer;
  model.reader = std::make_unique<TrainedReader>(std::move(trained));
  return model;
}

}  // namespace fullbore
