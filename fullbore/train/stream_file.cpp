#include <fmt/format.h>

#include <bit>
#include <utility>

#include "fullbore/base/check.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/train/stream_states.h"

namespace fullbore {
namespace {

constexpr const char* kVersionKey = "fullbore.streams";
constexpr const char* kVersion = "1";
constexpr const char* kModelKey = "model";

/// Texts as tensors, a row for each stream.
struct TextTensors {
  std::vector<int64_t> tokens, made, seed, stream;
  std::vector<int32_t> pending;
  std::vector<uint8_t> seen;

  TextTensors(size_t streams, size_t vocabulary)
      : tokens(streams),
        made(streams),
        seed(streams),
        stream(streams),
        pending(streams),
        seen(streams * vocabulary) {}

  /// One row per stream of `vocabulary` tokens; T is NamedTensor or TensorSlot.
  template <class T>
  std::vector<T> tensors() {
    const auto streams = static_cast<int64_t>(tokens.size());
    const auto vocabulary = static_cast<int64_t>(seen.size()) / streams;
    const TensorType counts{DType::i64, {streams}};
    return {{"text.tokens", counts, tokens.data()},
            {"text.made", counts, made.data()},
            {"text.seed", counts, seed.data()},
            {"text.stream", counts, stream.data()},
            {"text.pending", {DType::i32, {streams}}, pending.data()},
            {"text.seen", {DType::u8, {streams, vocabulary}}, seen.data()}};
  }

  void set(size_t stream_index, const StreamText& text) {
    tokens[stream_index] = text.tokens;
    made[stream_index] = text.made;
    seed[stream_index] = std::bit_cast<int64_t>(text.seed);
    stream[stream_index] = std::bit_cast<int64_t>(text.stream);
    pending[stream_index] = text.pending;
    for (size_t i = 0; i < text.seen.size(); ++i)
      seen[stream_index * text.seen.size() + i] = text.seen[i] ? 1 : 0;
  }

  StreamText get(size_t stream_index) const {
    StreamText text;
    text.tokens = tokens[stream_index];
    text.made = made[stream_index];
    text.seed = std::bit_cast<uint64_t>(seed[stream_index]);
    text.stream = std::bit_cast<uint64_t>(stream[stream_index]);
    text.pending = pending[stream_index];
    const size_t vocabulary = seen.size() / tokens.size();
    for (size_t i = 0; i < vocabulary; ++i)
      text.seen.push_back(seen[stream_index * vocabulary + i] != 0);
    return text;
  }
};

std::string wrong_with(const StreamText& text) {
  if (text.tokens < 0) return fmt::format("{} tokens read", text.tokens);
  if (text.made < 0) return fmt::format("{} tokens made", text.made);
  if (text.pending < -1 || text.pending >= static_cast<int64_t>(text.seen.size()))
    return fmt::format("token {} is outside the vocabulary [0, {})", text.pending,
                       text.seen.size());
  return "";
}

}  // namespace

Status save_streams(const std::string& path, const StreamStates& streams, const std::string& model,
                    FileSystem& files) {
  FB_CHECK(streams.streams() > 0, "no streams to save in {}", path);
  const auto count = static_cast<size_t>(streams.streams());
  TextTensors texts(count, streams.text(0).seen.size());
  for (size_t i = 0; i < count; ++i) texts.set(i, streams.texts_[i]);
  std::vector<NamedTensor> tensors = texts.tensors<NamedTensor>();
  for (const StreamStates::Tensor& tensor : streams.tensors_)
    tensors.push_back({tensor.name, tensor.type, tensor.bytes.data()});
  return write_checkpoint(path, tensors, {{kVersionKey, kVersion}, {kModelKey, model}}, files);
}

Result<StreamStates> load_streams(const std::string& path, const StreamStates& like,
                                  const std::string& model, Verify verify) {
  FB_CHECK(like.streams() > 0, "no streams to compare {} with", path);
  Result<Checkpoint> file = read_checkpoint(path, verify);
  if (!file.ok()) return Failure{file.error()};
  const Metadata& metadata = file.value().metadata();
  const auto version = metadata.find(kVersionKey);
  if (version == metadata.end())
    return Failure{
        fmt::format("{}: no states of streams: its header has no '{}'", path, kVersionKey)};
  if (version->second != kVersion)
    return Failure{fmt::format("{}: states of streams of version {}; {} is known", path,
                               version->second.substr(0, 80), kVersion)};
  const auto own = metadata.find(kModelKey);
  if (own == metadata.end() || own->second != model)
    return Failure{fmt::format("{}: states of another model: {}; {} was expected", path,
                               own == metadata.end() ? "none is named" : excerpt(own->second, 200),
                               model)};
  // How many streams there are, the file itself says.
  const StoredTensor* const counts = file.value().find("text.tokens");
  if (counts == nullptr || counts->type.shape.rank() != 1 || counts->type.shape[0] < 1)
    return Failure{fmt::format("{}: does not tell of how many streams it is", path)};
  const int64_t streams = counts->type.shape[0];
  // Nothing is allocated for what the file does not hold: the bytes of each tensor there were counted.
  const auto vocabulary = static_cast<int64_t>(like.text(0).seen.size());
  const auto differs = [&](const std::string& name, const TensorType& wanted) -> std::string {
    const StoredTensor* const stored = file.value().find(name);
    if (stored != nullptr && stored->type == wanted) return "";
    return fmt::format("{}: '{}' is {}, {} was expected", path, name,
                       stored == nullptr ? "missing" : stored->type.text(), wanted.text());
  };
  std::string found = differs("text.seen", {DType::u8, {streams, vocabulary}});
  for (const StreamStates::Tensor& tensor : like.tensors_)
    if (found.empty())
      found = differs(tensor.name, {tensor.type.dtype, tensor.type.shape.with(0, streams)});
  if (!found.empty()) return Failure{found};
  StreamStates result = like.resized(streams);
  TextTensors texts(static_cast<size_t>(streams), static_cast<size_t>(vocabulary));
  std::vector<TensorSlot> slots = texts.tensors<TensorSlot>();
  for (StreamStates::Tensor& tensor : result.tensors_)
    slots.push_back({tensor.name, tensor.type, tensor.bytes.data()});
  if (const Status restored = restore(file.value(), slots); !restored.ok())
    return Failure{restored.error()};
  for (size_t i = 0; i < result.texts_.size(); ++i) {
    result.texts_[i] = texts.get(i);
    if (const std::string wrong = wrong_with(result.texts_[i]); !wrong.empty())
      return Failure{fmt::format("{}: stream {}: {}", path, i, wrong)};
  }
  return result;
}

}  // namespace fullbore
