#include "workloads/long_context/example_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/data/split_mix.h"
#include "workloads/long_context/needle_example.h"

namespace fullbore::long_context {
namespace {

constexpr uint64_t kTraining = 0x747261696e;    // apart from one another, and from the keys of
constexpr uint64_t kValidation = 0x76616c6964;  // recall_accuracy.cpp and needle_grid.cpp
constexpr uint64_t kSettings = 1;

uint64_t use_key(ExampleUse use) { return use == ExampleUse::training ? kTraining : kValidation; }

}  // namespace

std::vector<BatchField> example_fields(int64_t batch_size, int64_t length) {
  const TensorType type{DType::i32, Shape{batch_size, length}};
  return {{"inputs", type}, {"targets", type}};
}

RecallBatches::RecallBatches(std::vector<RecallSizes> mix, int64_t batch_size, uint64_t seed,
                             ExampleUse use)
    : mix_(std::move(mix)), batch_size_(batch_size), seed_(seed), use_(use) {
  FB_CHECK(!mix_.empty() && batch_size_ > 0, "{} sizes, batches of {}", mix_.size(), batch_size_);
  std::set<int64_t> lengths;
  for (const RecallSizes& sizes : mix_) {
    check_recall_sizes(sizes);
    lengths.insert(sizes.length);
  }
  for (const int64_t length : lengths) shapes_.push_back(example_fields(batch_size_, length));
}

const RecallSizes& RecallBatches::sizes_at(uint64_t position) const {
  if (use_ == ExampleUse::validation) return mix_[position % mix_.size()];
  return mix_[SplitMix64(mixed_key({seed_, use_key(use_), position, kSettings}))
                  .below(mix_.size())];
}

size_t RecallBatches::shape_at(uint64_t position) const {
  const int64_t length = sizes_at(position).length;
  return static_cast<size_t>(
      std::ranges::find_if(shapes_,
                           [&](const auto& fields) { return fields[0].type.shape[1] == length; }) -
      shapes_.begin());
}

void RecallBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const RecallSizes& sizes = sizes_at(position);
  for (int64_t row = 0; row < batch_size_; ++row) {
    const RecallExample example = make_recall_example(
        mixed_key({seed_, use_key(use_), position, 0, static_cast<uint64_t>(row)}), sizes);
    std::ranges::copy(example.tokens, static_cast<int32_t*>(buffers[0]) + row * sizes.length);
    std::ranges::copy(example.targets, static_cast<int32_t*>(buffers[1]) + row * sizes.length);
  }
}

PasskeyBatches::PasskeyBatches(std::shared_ptr<const Tokenizer> tokenizer,
                               const PasskeyOptions& options, uint64_t seed, ExampleUse use)
    : tokenizer_(std::move(tokenizer)), options_(options), seed_(seed), use_(use) {
  FB_CHECK(options.batch_size > 0 && options.shortest <= options.longest, "{} to {}",
           options.shortest, options.longest);
  make_needle_example(0, {.characters = options.shortest});
  const std::string alphabet = needle_alphabet();
  const Result<std::vector<int32_t>> tokens = tokenizer_->encode(alphabet, SpecialTokens::kAsText);
  if (!tokens) throw UsageError("the tokenizer cannot spell a passkey: " + tokens.error());
  if (tokens.value().size() != alphabet.size())
    throw UsageError("passkeys need a tokenizer with a token for each character");
  fields_ = example_fields(options.batch_size, options.longest + 4);
}

void PasskeyBatches::fill(uint64_t position, std::span<void* const> buffers) const {
  const auto width = static_cast<size_t>(fields_[0].type.shape[1]);
  for (int64_t row = 0; row < options_.batch_size; ++row) {
    const uint64_t key = mixed_key({seed_, use_key(use_), position, 0, static_cast<uint64_t>(row)});
    SplitMix64 settings(mixed_key({key, kSettings}));
    const auto lengths = static_cast<uint64_t>(options_.longest - options_.shortest + 1);
    NeedleOptions options;
    options.characters = options_.shortest + static_cast<int64_t>(settings.below(lengths));
    options.depth = static_cast<double>(settings.below(1001)) / 1000;
    const NeedleExample example = make_needle_example(key, options);
    const std::string& answer = example.questions[0].answers[0].text;
    const std::vector<int32_t> tokens =
        tokenizer_
            ->encode(example.text + example.questions[0].text + answer, SpecialTokens::kAsText)
            .take_or_throw();
    int32_t* const inputs = static_cast<int32_t*>(buffers[0]) + static_cast<size_t>(row) * width;
    int32_t* const targets = static_cast<int32_t*>(buffers[1]) + static_cast<size_t>(row) * width;
    const size_t used = tokens.size() - 1;
    for (size_t i = 0; i < width; ++i) {
      inputs[i] = i < used ? tokens[i] : 0;
      targets[i] = i < used && i + answer.size() >= used ? tokens[i + 1] : -1;
    }
  }
}

}  // namespace fullbore::long_context
