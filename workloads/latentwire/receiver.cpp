#include "workloads/latentwire/receiver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "fullbore/app/job_options.h"
#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"
#include "fullbore/base/json.h"
#include "fullbore/ckpt/mapped_tensors.h"
#include "fullbore/data/chat_template.h"
#include "fullbore/text/gguf_model.h"
#include "fullbore/text/gguf_tokenizer.h"
#include "fullbore/text/huggingface_model.h"
#include "fullbore/train/weight_source.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/published_shapes.h"
#include "workloads/latentwire/reader_model.h"
#include "workloads/latentwire/receiver_rows.h"
#include "workloads/latentwire/receiver_weights.h"

namespace fullbore::latentwire {
namespace {

constexpr const char* kTerminator = "\n";
constexpr const char* kKey = "receivers.folders";

bool is_kind(const std::string& kind) { return kind == "bpe" || kind == "bytes"; }

bool is_name(const std::string& name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

Receiver make_receiver(const std::string& name, const std::string& folder, const std::string& kind,
                       const Config& config) {
  const ReaderModel model = reader_model(kind);
  Receiver receiver{.name = name,
                    .folder = folder,
                    .kind = kind,
                    .decoder = model.decoder,
                    .tokenizer = model.tokenizer,
                    .begin = CorpusTokenizer::kBegin,
                    .terminator = kTerminator};
  set_rows(receiver, config);
  return receiver;
}

// Of a folder of transformers: an answer ends as a turn of the family does, or as a text.
Receiver huggingface_receiver(const std::string& name, const std::string& folder,
                              const HuggingFaceConfig& model, std::string config_json,
                              std::shared_ptr<const Tokenizer> tokenizer, const Config& config) {
  Receiver receiver{.name = name,
                    .folder = folder,
                    .kind = kHuggingFace,
                    .config_json = std::move(config_json),
                    .decoder = model.decoder,
                    .tokenizer = std::move(tokenizer),
                    .terminator = {}};
  const Tokenizer& tokens = *receiver.tokenizer;
  if (tokens.vocabulary_size() > model.decoder.vocabulary)
    throw DataError(
        fmt::format("receiver {}: the tokenizer has {} tokens, the model's table {} rows", name,
                    tokens.vocabulary_size(), model.decoder.vocabulary));
  receiver.terminator_id = ChatTemplate::of(tokens).terminator(tokens);
  if (receiver.terminator_id < 0 && !model.end_tokens.empty())
    receiver.terminator_id = static_cast<int32_t>(model.end_tokens.front());
  if (receiver.terminator_id < 0 || receiver.terminator_id >= model.decoder.vocabulary)
    throw DataError(
        fmt::format("receiver {}: no token ends an answer: neither the tokenizer nor "
                    "eos_token_id of config.json has one",
                    name));
  receiver.begin = tokens.beginning_of_text();
  set_rows(receiver, config);
  return receiver;
}

Receiver open_huggingface(const std::string& name, const std::string& folder,
                          const Config& config) {
  const HuggingFaceModel model = HuggingFaceModel::open(folder);
  Receiver receiver =
      huggingface_receiver(name, folder, model.config(), huggingface_config_json(model.config()),
                           load_tokenizer(folder + "/tokenizer.json").take_or_throw(), config);
  receiver.storage = storage_in_place(model).value_or(DType::f32);
  return receiver;
}

Receiver open_gguf(const std::string& name, const std::string& path, const Config& config) {
  const GgufModel model = GgufModel::open(path);
  return huggingface_receiver(name, path, model.config(), huggingface_config_json(model.config()),
                              gguf_tokenizer(model.file()).take_or_throw(), config);
}

// With random weights: a model of the corpus, or one of a published model's sizes.
Receiver random_receiver(const std::string& name, const std::string& kind, const Config& config) {
  if (is_kind(kind)) return make_receiver(name, "", kind, config);
  std::vector<std::string> known = published_shapes();
  if (std::ranges::find(known, kind) == known.end()) {
    known.insert(known.begin(), {"bpe", "bytes"});
    throw UsageError(fmt::format("{}: {}={}{}: there is no such model; {} are known", kKey, name,
                                 kRandomReceiver, kind, fmt::join(known, ", ")));
  }
  const PublishedShape shape = published_shape(kind);
  Receiver receiver = huggingface_receiver(
      name, "", shape.model, huggingface_config_json(shape.model), shape.tokenizer, config);
  // As small as they are computed with, which is how their files come.
  receiver.storage = compile_options(config).precision;
  return receiver;
}

// None: a checkpoint of older versions, which copied the weights as f32.
DType recorded_storage(const std::string& name, const std::string& source) {
  if (name.empty()) return DType::f32;
  const std::optional<DType> dtype = parse_dtype(name);
  if (!dtype || !is_floating(*dtype))
    throw DataError(
        fmt::format("{}: weights of '{}'; f32, bf16 or f16 was expected", source, excerpt(name)));
  return *dtype;
}

std::string trimmed(const std::string& text) {
  constexpr const char* kSpace = " \t\n\r\f\v";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace

std::vector<int32_t> Receiver::ids(const std::string& text) const {
  return tokenizer->encode(text, SpecialTokens::kAsText).take_or_throw();
}

bool Receiver::ends(std::span<const int32_t> tokens) const {
  if (terminator_id >= 0) return !tokens.empty() && tokens.back() == terminator_id;
  std::string text;
  for (const int32_t id : tokens) tokenizer->append_bytes(id, text);
  return text.find(terminator) != std::string::npos;
}

int64_t Receiver::terminator_tokens() const {
  return terminator_id >= 0 ? 1 : std::ssize(ids(terminator));
}

std::string Receiver::answer_text(std::span<const int32_t> tokens) const {
  std::string text;
  for (const int32_t id : tokens) {
    // A table may have more rows than there are tokens.
    if (id == terminator_id || id < 0 || id >= tokenizer->vocabulary_size()) break;
    tokenizer->append_bytes(id, text);
  }
  return trimmed(terminator.empty() ? text : text.substr(0, text.find(terminator)));
}

std::vector<Receiver> open_receivers(const Config& config) {
  std::vector<Receiver> receivers;
  std::set<std::string> names;
  for (const std::string& each : latent_keys(config).receivers.folders) {
    const size_t equals = each.find('=');
    const std::string name = each.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == each.size() || !is_name(name))
      throw UsageError(fmt::format(
          "{}: '{}' is no NAME=RUN with a name of letters a to z, digits, - and _", kKey, each));
    if (!names.insert(name).second)
      throw UsageError(fmt::format("{}: two receivers are named {}", kKey, name));
    const std::string folder = each.substr(equals + 1);
    if (folder.starts_with(kRandomReceiver)) {
      receivers.push_back(random_receiver(name, folder.substr(kRandomReceiver.size()), config));
      continue;
    }
    if (!std::filesystem::exists(folder))
      throw UsageError(fmt::format(
          "{}: there is no {}; `fullbore latentwire prepare` trains the small models of the corpus",
          kKey, folder));
    if (is_gguf(folder)) {
      receivers.push_back(open_gguf(name, folder, config));
      continue;
    }
    if (std::filesystem::exists(folder + "/config.json") &&
        std::filesystem::exists(folder + "/tokenizer.json")) {
      receivers.push_back(open_huggingface(name, folder, config));
      continue;
    }
    const WeightSource source = WeightSource::open(folder);
    if (source.config().model.name != kReaderModel)
      throw UsageError(fmt::format("{}: {} is of a {} model, not of model.name={}", kKey, folder,
                                   source.config().model.name, kReaderModel));
    receivers.push_back(
        make_receiver(name, folder, latent_keys(source.config()).reader.kind, config));
  }
  if (receivers.empty()) throw UsageError(fmt::format("{}: none is named", kKey));
  return receivers;
}

std::string weights_identity(const Receiver& receiver, const Config& config) {
  if (receiver.folder.empty()) return fmt::format("random, seed {}", config.run.seed);
  if (is_gguf(receiver.folder)) {
    const auto file = MappedFile::open(receiver.folder).take_or_throw();
    const MappedTensor whole{"", {DType::u8, {std::ssize(file->bytes())}}, file->bytes(), file};
    const MappedTensor* const only[] = {&whole};
    return tensor_hashes(only).front();
  }
  const MappedTensors tensors =
      receiver.kind == kHuggingFace
          ? MappedTensors::open(receiver.folder,
                                HuggingFaceModel::open(receiver.folder).tensors().files())
          : MappedTensors::open(WeightSource::open(receiver.folder).path());
  std::vector<const MappedTensor*> each;
  for (const MappedTensor& tensor : tensors.tensors()) each.push_back(&tensor);
  return fmt::format("{}", fmt::join(tensor_hashes(each), " "));
}

std::string receivers_json(const std::vector<Receiver>& receivers, const TextEncoder* encoder) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Receiver& each : receivers) {
    list.push_back({{"name", each.name}, {"kind", each.kind}});
    if (each.kind != kHuggingFace) continue;
    list.back()["dtype"] = dtype_name(each.storage);
    list.back()["config"] = each.config_json;
    list.back()["tokenizer"] = each.tokenizer->to_json();
  }
  nlohmann::ordered_json all = {{"receivers", std::move(list)}};
  if (encoder != nullptr) all["text_encoder"] = text_encoder_json(*encoder);
  return all.dump() + "\n";
}

std::vector<Receiver> recorded_receivers(const std::string& json, const Config& config) {
  const nlohmann::json parsed = parse_json(json).take_or_throw();
  const auto text = [](const nlohmann::json& each, const char* key) {
    const auto found = each.is_object() ? each.find(key) : each.end();
    return each.is_object() && found != each.end() && found->is_string() ? found->get<std::string>()
                                                                         : std::string();
  };
  std::vector<Receiver> receivers;
  const nlohmann::json list =
      parsed.is_object() ? parsed.value("receivers", nlohmann::json()) : nlohmann::json();
  for (const nlohmann::json& each : list) {
    const std::string name = text(each, "name"), kind = text(each, "kind");
    if (is_name(name) && kind == kHuggingFace) {
      const std::string source = "the checkpoint's receiver " + name;
      const std::string model = text(each, "config");
      receivers.push_back(huggingface_receiver(
          name, "", parse_huggingface_config(model, source), model,
          parse_tokenizer(text(each, "tokenizer"), source).take_or_throw(), config));
      receivers.back().storage = recorded_storage(text(each, "dtype"), source);
      continue;
    }
    if (!is_name(name) || !is_kind(kind))
      throw DataError("the checkpoint's receivers: a name, and bpe or bytes, were expected");
    receivers.push_back(make_receiver(name, "", kind, config));
  }
  if (receivers.empty()) throw DataError("the checkpoint tells of no receivers");
  return receivers;
}

}  // namespace fullbore::latentwire
