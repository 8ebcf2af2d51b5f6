#include "workloads/latentwire/text_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "fullbore/app/job_options.h"
#include "fullbore/base/error.h"
#include "fullbore/base/json.h"
#include "fullbore/data/word_piece_tokenizer.h"
#include "fullbore/text/huggingface_bert.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/mapped_folder.h"

namespace fullbore::latentwire {
namespace {

constexpr const char* kBegin = "[CLS]";
constexpr const char* kEnd = "[SEP]";

void check_tokens(const TextEncoder& encoder, const std::string& source) {
  for (const char* const token : {kBegin, kEnd})
    if (encoder.tokenizer->special_token(token) < 0)
      throw DataError(fmt::format("{}: the tokenizer has no token {}", source, token));
  if (encoder.tokenizer->vocabulary_size() > encoder.config.vocabulary)
    throw DataError(fmt::format("{}: the tokenizer has {} tokens, the model's table {} rows",
                                source, encoder.tokenizer->vocabulary_size(),
                                encoder.config.vocabulary));
}

TextEncoder random_encoder(const Config& config) {
  WordPieceVocabulary vocabulary;
  vocabulary.pieces = {"[PAD]", "[UNK]", kBegin, kEnd};
  for (char c = '!'; c <= '~'; ++c) {
    if (c >= 'A' && c <= 'Z') continue;  // text is lowered first
    vocabulary.pieces.emplace_back(1, c);
    vocabulary.pieces.push_back(std::string("##") + c);
  }
  TextEncoder encoder;
  encoder.tokenizer = std::make_shared<const WordPieceTokenizer>(
      WordPieceTokenizer::create(std::move(vocabulary)).take_or_throw());
  encoder.storage = compile_options(config).precision;
  return encoder;
}

}  // namespace

std::vector<int32_t> TextEncoder::ids(const std::string& text, int64_t most) const {
  std::vector<int32_t> ids = {tokenizer->special_token(kBegin)};
  const std::vector<int32_t> words =
      tokenizer->encode(text, SpecialTokens::kAsText).take_or_throw();
  const auto room = static_cast<size_t>(std::max<int64_t>(0, most - 2));
  ids.insert(ids.end(), words.begin(),
             words.begin() + static_cast<std::ptrdiff_t>(std::min(words.size(), room)));
  ids.push_back(tokenizer->special_token(kEnd));
  return ids;
}

std::shared_ptr<const TextEncoder> open_text_encoder(const Config& config) {
  const LatentKeys::Wire& keys = latent_keys(config).wire;
  if (keys.encoder == "bytes") return nullptr;
  TextEncoder encoder;
  if (keys.text_encoder == kRandomTextEncoder) {
    encoder = random_encoder(config);
  } else {
    if (!std::filesystem::is_directory(keys.text_encoder))
      throw UsageError(fmt::format(
          "wire.text_encoder: there is no folder '{}'; one with config.json, tokenizer.json and "
          "model.safetensors of a BERT was expected, or {}",
          keys.text_encoder, kRandomTextEncoder));
    const HuggingFaceBert bert = HuggingFaceBert::open(keys.text_encoder);
    encoder = {
        bert.folder, bert.config, bert.tokenizer,
        dtype_in_place(bert.tensors, bert_names(bert.config, bert.prefix)).value_or(DType::f32)};
  }
  check_tokens(encoder, keys.text_encoder);
  if (keys.max_tokens > encoder.config.context)
    throw UsageError(fmt::format("wire.max_tokens={}: {} reads {} tokens", keys.max_tokens,
                                 keys.text_encoder, encoder.config.context));
  return std::make_shared<const TextEncoder>(std::move(encoder));
}

std::string text_encoder_json(const TextEncoder& encoder) {
  return nlohmann::ordered_json{{"config", bert_config_json(encoder.config)},
                                {"dtype", dtype_name(encoder.storage)},
                                {"tokenizer", encoder.tokenizer->to_json()}}
      .dump();
}

std::shared_ptr<const TextEncoder> recorded_text_encoder(const std::string& receivers,
                                                         const Config& config) {
  if (latent_keys(config).wire.encoder == "bytes") return nullptr;
  constexpr const char* kSource = "the checkpoint's text_encoder";
  const auto member = [&](const nlohmann::json& object, const char* key) {
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end() || !found->is_string())
      throw DataError(fmt::format("{}: a text '{}' was expected", kSource, key));
    return found->get<std::string>();
  };
  const nlohmann::json all = parse_json(receivers).take_or_throw();
  const nlohmann::json own = parse_json(member(all, "text_encoder")).take_or_throw();
  const std::optional<DType> dtype = parse_dtype(member(own, "dtype"));
  if (!dtype || !is_floating(*dtype))
    throw DataError(fmt::format("{}: dtype: f32, bf16 or f16 was expected", kSource));
  TextEncoder encoder{{},
                      parse_bert_config(member(own, "config"), kSource),
                      parse_tokenizer(member(own, "tokenizer"), kSource).take_or_throw(),
                      *dtype};
  check_tokens(encoder, kSource);
  return std::make_shared<const TextEncoder>(std::move(encoder));
}

void add_in_place(const TextEncoder& encoder, std::shared_ptr<FrozenWeights>& weights) {
  if (encoder.folder.empty()) return;
  const HuggingFaceBert bert = HuggingFaceBert::open(encoder.folder);
  const std::vector<HuggingFaceName> names = bert_names(bert.config, bert.prefix);
  if (dtype_in_place(bert.tensors, names) == encoder.storage)
    map_folder(encoder.folder, bert.tensors, names, TextEncoder::kScope, weights);
}

void fill_text_encoder(const TextEncoder& encoder, State& state) {
  if (encoder.folder.empty()) return;
  const HuggingFaceBert bert = HuggingFaceBert::open(encoder.folder);
  for (const HuggingFaceName& name : bert_names(bert.config, bert.prefix)) {
    const int entry = state.find(fmt::format("{}.{}", TextEncoder::kScope, name.ours));
    if (entry >= 0 && !state.is_lent(entry))
      state.write(fmt::format("{}.{}", TextEncoder::kScope, name.ours),
                  bert.tensors.find(name.theirs)->read());
  }
}

std::vector<int32_t> prompt_units(const TextEncoder* encoder, const std::string& text,
                                  int64_t most) {
  if (encoder != nullptr) return encoder->ids(text, most);
  std::vector<int32_t> bytes;
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

}  // namespace fullbore::latentwire
