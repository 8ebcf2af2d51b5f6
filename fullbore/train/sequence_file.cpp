#include <fmt/format.h>

#include <bit>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/train/sequence_states.h"

namespace fullbore {
namespace {

constexpr const char* kVersionKey = "fullbore.streams";
constexpr const char* kVersion = "1";
constexpr const char* kModelKey = "model";

/// Texts as tensors, a row for each sequence.
struct TextTensors {
  std::vector<int64_t> tokens, made, seed, stream;
  std::vector<int32_t> pending;
  std::vector<uint8_t> seen;

  TextTensors(size_t sequences, size_t vocabulary)
      : tokens(sequences),
        made(sequences),
        seed(sequences),
        stream(sequences),
        pending(sequences),
        seen(sequences * vocabulary) {}

  /// One row per sequence of `vocabulary` tokens; T is NamedTensor or TensorSlot.
  template <class T>
  std::vector<T> tensors() {
    const auto sequences = static_cast<int64_t>(tokens.size());
    const auto vocabulary = static_cast<int64_t>(seen.size()) / sequences;
    const TensorType counts{DType::i64, {sequences}};
    return {{"text.tokens", counts, tokens.data()},
            {"text.made", counts, made.data()},
            {"text.seed", counts, seed.data()},
            {"text.stream", counts, stream.data()},
            {"text.pending", {DType::i32, {sequences}}, pending.data()},
            {"text.seen", {DType::u8, {sequences, vocabulary}}, seen.data()}};
  }

  void set(size_t index, const SequenceText& text) {
    tokens[index] = text.tokens;
    made[index] = text.made;
    seed[index] = std::bit_cast<int64_t>(text.seed);
    stream[index] = std::bit_cast<int64_t>(text.stream);
    pending[index] = text.pending;
    for (size_t i = 0; i < text.seen.size(); ++i)
      seen[index * text.seen.size() + i] = text.seen[i] ? 1 : 0;
  }

  SequenceText get(size_t index) const {
    SequenceText text;
    text.tokens = tokens[index];
    text.made = made[index];
    text.seed = std::bit_cast<uint64_t>(seed[index]);
    text.stream = std::bit_cast<uint64_t>(stream[index]);
    text.pending = pending[index];
    const size_t vocabulary = seen.size() / tokens.size();
    for (size_t i = 0; i < vocabulary; ++i) text.seen.push_back(seen[index * vocabulary + i] != 0);
    return text;
  }
};

std::string wrong_with(const SequenceText& text) {
  if (text.tokens < 0) return fmt::format("{} tokens read", text.tokens);
  if (text.made < 0) return fmt::format("{} tokens made", text.made);
  if (text.pending < -1 || text.pending >= static_cast<int64_t>(text.seen.size()))
    return fmt::format("token {} is outside the vocabulary [0, {})", text.pending,
                       text.seen.size());
  return "";
}

}  // namespace

Status save_sequences(const std::string& path, const SequenceStates& sequences,
                      const std::string& model, FileSystem& files) {
  FB_CHECK(sequences.sequences() > 0, "no sequences to save in {}", path);
  const auto count = static_cast<size_t>(sequences.sequences());
  TextTensors texts(count, sequences.text(0).seen.size());
  for (size_t i = 0; i < count; ++i) texts.set(i, sequences.texts_[i]);
  std::vector<NamedTensor> tensors = texts.tensors<NamedTensor>();
  for (const SequenceStates::Tensor& tensor : sequences.tensors_)
    tensors.push_back({tensor.name, tensor.type, tensor.bytes.data()});
  return write_checkpoint(path, tensors, {{kVersionKey, kVersion}, {kModelKey, model}}, files);
}

Result<SequenceStates> load_sequences(const std::string& path, const SequenceStates& like,
                                      const std::string& model, Verify verify) {
  FB_CHECK(like.sequences() > 0, "no sequences to compare {} with", path);
  Result<Checkpoint> file = read_checkpoint(path, verify);
  if (!file.ok()) return Failure{file.error()};
  const Metadata& metadata = file.value().metadata();
  const auto version = metadata.find(kVersionKey);
  if (version == metadata.end())
    return Failure{
        fmt::format("{}: no states of sequences: its header has no '{}'", path, kVersionKey)};
  if (version->second != kVersion)
    return Failure{fmt::format("{}: states of sequences of version {}; {} is known", path,
                               version->second.substr(0, 80), kVersion)};
  const auto own = metadata.find(kModelKey);
  if (own == metadata.end() || own->second != model)
    return Failure{fmt::format("{}: states of another model: {}; {} was expected", path,
                               own == metadata.end() ? "none is named" : excerpt(own->second, 200),
                               model)};
  // How many sequences there are, the file itself says.
  const StoredTensor* const counts = file.value().find("text.tokens");
  if (counts == nullptr || counts->type.shape.rank() != 1 || counts->type.shape[0] < 1)
    return Failure{fmt::format("{}: does not tell of how many sequences it is", path)};
  const int64_t sequences = counts->type.shape[0];
  // Nothing is allocated for what the file does not hold: the bytes of each tensor there were counted.
  const auto vocabulary = static_cast<int64_t>(like.text(0).seen.size());
  const auto differs = [&](const std::string& name, const TensorType& wanted) -> std::string {
    const StoredTensor* const stored = file.value().find(name);
    if (stored != nullptr && stored->type == wanted) return "";
    return fmt::format("{}: '{}' is {}, {} was expected", path, name,
                       stored == nullptr ? "missing" : stored->type.text(), wanted.text());
  };
  std::string found = differs("text.seen", {DType::u8, {sequences, vocabulary}});
  for (const SequenceStates::Tensor& tensor : like.tensors_)
    if (found.empty())
      found = differs(tensor.name, {tensor.type.dtype, tensor.type.shape.with(0, sequences)});
  if (!found.empty()) return Failure{found};
  SequenceStates result = like.resized(sequences);
  TextTensors texts(static_cast<size_t>(sequences), static_cast<size_t>(vocabulary));
  std::vector<TensorSlot> slots = texts.tensors<TensorSlot>();
  for (SequenceStates::Tensor& tensor : result.tensors_)
    slots.push_back({tensor.name, tensor.type, tensor.bytes.data()});
  if (const Status restored = restore(file.value(), slots); !restored.ok())
    return Failure{restored.error()};
  for (size_t i = 0; i < result.texts_.size(); ++i) {
    result.texts_[i] = texts.get(i);
    if (const std::string wrong = wrong_with(result.texts_[i]); !wrong.empty())
      return Failure{fmt::format("{}: sequence {}: {}", path, i, wrong)};
  }
  return result;
}

}  // namespace fullbore
