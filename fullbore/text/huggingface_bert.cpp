#include "fullbore/text/huggingface_bert.h"

#include <fmt/format.h>

#include <utility>

#include "fullbore/base/error.h"
#include "fullbore/base/files.h"
#include "fullbore/base/json.h"
#include "fullbore/text/huggingface_fields.h"

namespace fullbore {
namespace {

// Lists of names are made of these sizes before the file is looked at.
constexpr int64_t kMostTokens = 1'000'000'000, kMostLayers = 1000, kMostHeads = 1024;
constexpr int64_t kMostWidth = 65536, kMostHidden = 1048576, kMostContext = int64_t{1} << 24;

[[noreturn]] void refuse(const std::string& path, const std::string& reason) {
  throw DataError(fmt::format("{}: {}", path, reason));
}

}  // namespace

nn::BertConfig parse_bert_config(std::string_view text, const std::string& path) {
  const Result<nlohmann::json> parsed = parse_json(std::string(text));
  if (!parsed.ok()) refuse(path, parsed.error());
  if (!parsed.value().is_object()) refuse(path, "a JSON object was expected");
  HuggingFaceFields fields(parsed.value(), path);
  if (fields.word("model_type", "") != "bert") fields.refuse("model_type", "bert was expected");
  nn::BertConfig config;
  config.vocabulary = fields.whole("vocab_size", 1, kMostTokens);
  config.layers = fields.whole("num_hidden_layers", 1, kMostLayers);
  config.heads = fields.whole("num_attention_heads", 1, kMostHeads);
  config.width = fields.whole("hidden_size", 1, kMostWidth);
  if (config.width % config.heads != 0)
    fields.refuse("hidden_size", "a multiple of num_attention_heads was expected");
  config.hidden = fields.whole("intermediate_size", 1, kMostHidden);
  config.context = fields.whole("max_position_embeddings", 1, kMostContext);
  config.types = fields.whole("type_vocab_size", 1, kMostTokens, 2);
  config.epsilon = fields.not_negative("layer_norm_eps", 1e-12);
  fields.require("hidden_act", "gelu");
  fields.require("position_embedding_type", "absolute");
  fields.require("is_decoder", false);
  fields.require("add_cross_attention", false);
  fields.require("chunk_size_feed_forward", 0);
  fields.ignore_bookkeeping();
  // How it was trained, and what its heads are.
  fields.ignore({"eos_token_id", "gradient_checkpointing", "attention_probs_dropout_prob",
                 "hidden_dropout_prob", "classifier_dropout", "tie_word_embeddings", "cell",
                 "pre_trained", "training"});
  fields.finish();
  return config;
}

std::string bert_config_json(const nn::BertConfig& config) {
  const nlohmann::ordered_json json = {{"model_type", "bert"},
                                       {"vocab_size", config.vocabulary},
                                       {"num_hidden_layers", config.layers},
                                       {"num_attention_heads", config.heads},
                                       {"hidden_size", config.width},
                                       {"intermediate_size", config.hidden},
                                       {"max_position_embeddings", config.context},
                                       {"type_vocab_size", config.types},
                                       {"layer_norm_eps", config.epsilon},
                                       {"hidden_act", "gelu"}};
  return json.dump(2) + "\n";
}

std::vector<HuggingFaceName> bert_names(const nn::BertConfig& config, const std::string& prefix) {
  const int64_t width = config.width, hidden = config.hidden;
  std::vector<HuggingFaceName> names;
  const auto table = [&](const char* ours, const char* theirs, int64_t rows) {
    names.push_back({std::string(ours) + ".weight",
                     prefix + "embeddings." + theirs + ".weight",
                     {rows, width}});
  };
  const auto norm = [&](const std::string& ours, const std::string& theirs) {
    for (const char* part : {".weight", ".bias"})
      names.push_back({ours + part, prefix + theirs + part, {width}});
  };
  table("token_embedding", "word_embeddings", config.vocabulary);
  table("position_embedding", "position_embeddings", config.context);
  table("type_embedding", "token_type_embeddings", config.types);
  norm("embedding_norm", "embeddings.LayerNorm");
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string ours = fmt::format("layers.{}.", layer);
    const std::string theirs = fmt::format("encoder.layer.{}.", layer);
    const auto gemm = [&](const char* our, const char* their, int64_t inputs, int64_t outputs) {
      names.push_back(
          {ours + our + ".weight", prefix + theirs + their + ".weight", {outputs, inputs}});
      names.push_back({ours + our + ".bias", prefix + theirs + their + ".bias", {outputs}});
    };
    gemm("attention.query", "attention.self.query", width, width);
    gemm("attention.key", "attention.self.key", width, width);
    gemm("attention.value", "attention.self.value", width, width);
    gemm("attention.projection", "attention.output.dense", width, width);
    norm(ours + "attention_norm", theirs + "attention.output.LayerNorm");
    gemm("mlp.up", "intermediate.dense", width, hidden);
    gemm("mlp.down", "output.dense", hidden, width);
    norm(ours + "mlp_norm", theirs + "output.LayerNorm");
  }
  return names;
}

HuggingFaceBert HuggingFaceBert::open(const std::string& folder) {
  const std::string path = folder + "/config.json";
  HuggingFaceBert bert{folder,
                       parse_bert_config(read_file(path).take_or_throw(), path),
                       HuggingFaceTensors::open(folder),
                       {},
                       load_tokenizer(folder + "/tokenizer.json").take_or_throw()};
  if (bert.tensors.find("bert.embeddings.word_embeddings.weight")) bert.prefix = "bert.";
  for (const HuggingFaceName& name : bert_names(bert.config, bert.prefix)) {
    const auto tensor = bert.tensors.find(name.theirs);
    if (!tensor)
      refuse(bert.tensors.path(), fmt::format("the tensor '{}' is missing", name.theirs));
    if (tensor->type().shape != name.shape || !is_floating(tensor->type().dtype))
      refuse(tensor->file->path(),
             fmt::format("'{}' is {}; {} was expected", name.theirs, tensor->type().text(),
                         TensorType{DType::f32, name.shape}.text()));
  }
  if (bert.tokenizer->vocabulary_size() > bert.config.vocabulary)
    refuse(folder, fmt::format("the tokenizer has {} tokens, the model's table {} rows",
                               bert.tokenizer->vocabulary_size(), bert.config.vocabulary));
  return bert;
}

}  // namespace fullbore
