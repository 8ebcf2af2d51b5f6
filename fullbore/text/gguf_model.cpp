#include "fullbore/text/gguf_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/text.h"
#include "fullbore/text/gguf_tokenizer.h"

namespace fullbore {
namespace {

using nn::DecoderConfig;

constexpr std::string_view kTable = "token_embd.weight";
constexpr std::string_view kHead = "output.weight";

[[noreturn]] void refuse(const GgufFile& file, const std::string& reason) {
  throw DataError(fmt::format("{}: {}", file.path(), reason));
}

bool is_gpt2(const DecoderConfig& decoder) { return decoder.style == DecoderConfig::Style::gpt2; }

GgufType type_of(const GgufName& name, GgufType matrices) {
  if (name.shape.rank() < 2 || name.ours == "position_embedding.weight") return GgufType::f32;
  return name.shape[1] % gguf_block_values(matrices) == 0 ? matrices : GgufType::f16;
}

}  // namespace

GgufModel GgufModel::open(const std::string& path) {
  GgufFile file = GgufFile::open(path).take_or_throw();
  HuggingFaceConfig config = gguf_config(file);
  GgufModel model(std::move(file), std::move(config));
  model.check_tensors();
  return model;
}

void GgufModel::check_tensors() const {
  std::vector<std::string> known;
  for (const GgufName& name : gguf_names(config_.decoder, config_.family)) {
    known.push_back(name.theirs);
    const GgufTensor* const tensor = file_.find(name.theirs);
    if (tensor == nullptr) refuse(file_, fmt::format("the tensor '{}' is missing", name.theirs));
    if (tensor->shape != name.shape)
      refuse(file_, fmt::format("'{}' is {}; {} was expected", name.theirs, tensor->shape.text(),
                                name.shape.text()));
  }
  std::ranges::sort(known);
  for (const GgufTensor& tensor : file_.tensors())
    if (!std::ranges::binary_search(known, tensor.name) && tensor.name != kGgufFrequencies)
      refuse(file_, fmt::format("'{}' is no tensor of a {} of these sizes.{}", excerpt(tensor.name),
                                config_.family, did_you_mean(tensor.name, known)));
}

std::vector<GgufName> GgufModel::names(const DecoderConfig& decoder) const {
  DecoderConfig with_head = config_.decoder;
  with_head.tie_head = decoder.tie_head;
  std::vector<GgufName> names;
  for (GgufName& name : gguf_names(with_head, config_.family)) {
    if (is_gpt2(decoder) && !decoder.bias && name.ours.ends_with(".bias")) continue;
    if (file_.find(name.theirs) == nullptr) name.theirs = kTable;
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<float> GgufModel::read(const GgufName& name) const {
  std::vector<float> values = file_.read(*file_.find(name.theirs)).take_or_throw();
  if (name.paired_heads > 0) values = halved_rows(values, name.shape[0], name.paired_heads);
  return values;
}

void GgufModel::fill(const DecoderConfig& decoder, State& state,
                     const HuggingFaceAdvice& advice) const {
  DecoderConfig with_all = decoder;
  with_all.bias = true;
  for (const GgufName& name : names(with_all)) {
    std::vector<float> values = read(name);
    if (state.find(name.ours) < 0) {
      if (std::ranges::any_of(values, [](float value) { return value != 0; }))
        refuse(file_, fmt::format("'{}' is not zero, and the model has no biases{}", name.theirs,
                                  advice.bias));
      continue;
    }
    // A shorter context takes the first positions.
    const TensorType& type = state.entries()[static_cast<size_t>(state.find(name.ours))].type;
    values.resize(static_cast<size_t>(type.elements()));
    state.write(name.ours, values);
  }
  const GgufTensor* const head = file_.find(kHead);
  if (!decoder.tie_head || head == nullptr) return;
  if (file_.read(*head).take_or_throw() != file_.read(*file_.find(kTable)).take_or_throw())
    refuse(file_, "the output head is not the token table" + advice.head);
}

void export_gguf_model(const std::string& path, const HuggingFaceConfig& model,
                       const Tokenizer& tokenizer, GgufType matrices, const State& state) {
  GgufMetadata metadata = gguf_metadata(model);
  // llama.cpp's LLAMA_FTYPE_MOSTLY_F16 and _Q8_0.
  metadata["general.file_type"] = uint64_t{matrices == GgufType::q8_0 ? 7U : 1U};
  metadata["general.quantization_version"] = uint64_t{2};
  add_gguf_tokenizer(tokenizer, model.decoder.vocabulary, metadata);
  std::error_code error;
  if (std::filesystem::exists(path, error))
    throw DataError(fmt::format("{}: exists already; name another file", path));
  std::vector<GgufSource> tensors;
  for (const GgufName& name : gguf_names(model.decoder, model.family)) {
    const auto read = [&state, name] {
      if (state.find(name.ours) < 0)
        return std::vector<float>(static_cast<size_t>(name.shape.elements()), 0.0F);
      std::vector<float> values = state.read<float>(name.ours);
      if (name.paired_heads > 0) values = paired_rows(values, name.shape[0], name.paired_heads);
      return values;
    };
    tensors.push_back({name.theirs, name.shape, type_of(name, matrices), read});
  }
  if (const std::vector<float> values = gguf_frequencies(model.decoder); !values.empty())
    tensors.push_back({kGgufFrequencies, Shape{static_cast<int64_t>(values.size())}, GgufType::f32,
                       [values] { return std::vector<float>(values); }});
  const Status written = write_gguf(path, metadata, tensors);
  if (!written) throw DataError(written.error());
}

}  // namespace fullbore
