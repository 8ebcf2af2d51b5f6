#include "fullbore/text/gguf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fullbore/base/error.h"
#include "fullbore/base/excerpt.h"

namespace fullbore {
namespace {

using nn::DecoderConfig;
using Kind = nn::RotaryScaling::Kind;

constexpr std::string_view kOwnScaling = "fullbore.rotary_scaling";

/// The keys of one architecture: "llama." stands before each.
class Keys {
 public:
  Keys(const GgufFile& file, const std::string& architecture)
      : file_(file), prefix_(architecture + ".") {}

  [[noreturn]] void refuse(const std::string& key, const std::string& reason) const {
    throw DataError(fmt::format("{}: the key '{}{}' {}", file_.path(), prefix_, key, reason));
  }
  bool has(const std::string& key) const { return file_.metadata().contains(prefix_ + key); }
  int64_t whole(const std::string& key, int64_t most) const {
    const uint64_t value = file_.whole(prefix_ + key).take_or_throw();
    if (value < 1 || value > static_cast<uint64_t>(most))
      refuse(key, fmt::format("is {}; a whole number from 1 to {} was expected", value, most));
    return static_cast<int64_t>(value);
  }
  int64_t whole(const std::string& key, int64_t most, int64_t fallback) const {
    return has(key) ? whole(key, most) : fallback;
  }
  double positive(const std::string& key) const {
    const double value = file_.real(prefix_ + key).take_or_throw();
    if (!(value > 0) || !std::isfinite(value))
      refuse(key, fmt::format("is {}; a number above 0 was expected", value));
    return value;
  }
  /// As the file's f32 was written: 1e-05f is 1e-5.
  double positive(const std::string& key, double fallback) const {
    return has(key) ? std::stod(fmt::format("{}", static_cast<float>(positive(key)))) : fallback;
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

void read_scaling(const GgufFile& file, const std::string& family, const Keys& keys,
                  DecoderConfig& decoder) {
  const std::string type = keys.has("rope.scaling.type")
                               ? file.text(family + ".rope.scaling.type").take_or_throw()
                               : "none";
  if (type == "linear")
    decoder.scaling = {.kind = Kind::linear, .factor = keys.positive("rope.scaling.factor", 1)};
  else if (type != "none")
    keys.refuse("rope.scaling.type",
                fmt::format("is '{}'; none or linear was expected", excerpt(type)));
  const GgufTensor* const stored = file.find(kGgufFrequencies);
  if (stored == nullptr) return;
  // The format has the frequencies alone: which of the published settings they are is found by trying; files of our own
  // say it besides.
  std::vector<nn::RotaryScaling> settings = {{Kind::llama3, 8, 1, 4, 8192},
                                             {Kind::llama3, 32, 1, 4, 8192}};
  if (const auto own = file.metadata().find(kOwnScaling); own != file.metadata().end()) {
    const auto* const said = std::get_if<std::vector<double>>(&own->second);
    const auto is_good = [](double value) { return value > 0 && value < 1e9; };
    if (said == nullptr || said->size() != 4 || !std::ranges::all_of(*said, is_good))
      throw DataError(fmt::format("{}: the key '{}' is no list of 4 numbers above 0", file.path(),
                                  kOwnScaling));
    settings = {
        {Kind::llama3, (*said)[0], (*said)[1], (*said)[2], static_cast<int64_t>((*said)[3])}};
  }
  const std::vector<float> values = file.read(*stored).take_or_throw();
  for (const nn::RotaryScaling& scaling : settings) {
    decoder.scaling = scaling;
    const std::vector<float> known = gguf_frequencies(decoder);
    bool same = known.size() == values.size();
    for (size_t i = 0; same && i < known.size(); ++i)
      same = std::fabs(known[i] - values[i]) <= 1e-4F * known[i];
    if (same) return;
  }
  throw DataError(fmt::format(
      "{}: the tensor '{}' is not that of Llama 3.1 or 3.2; no other frequencies are known",
      file.path(), kGgufFrequencies));
}

}  // namespace

HuggingFaceConfig gguf_config(const GgufFile& file) {
  HuggingFaceConfig config;
  config.family = file.text("general.architecture").take_or_throw();
  const Keys keys(file, config.family);
  const bool gpt2 = config.family == "gpt2";
  if (!gpt2 && config.family != "llama" && config.family != "qwen2")
    throw DataError(
        fmt::format("{}: 'general.architecture' is '{}'; gpt2, llama or qwen2 was expected",
                    file.path(), excerpt(config.family)));
  DecoderConfig& decoder = config.decoder;
  decoder.style = gpt2 ? DecoderConfig::Style::gpt2 : DecoderConfig::Style::llama;
  decoder.layers = keys.whole("block_count", 1000);
  decoder.width = keys.whole("embedding_length", 65536);
  decoder.heads = keys.whole("attention.head_count", 1024);
  decoder.hidden = keys.whole("feed_forward_length", 1048576);
  decoder.context = keys.whole("context_length", int64_t{1} << 24);
  const GgufTensor* const table = file.find("token_embd.weight");
  if (table == nullptr || table->shape.rank() != 2)
    throw DataError(fmt::format("{}: the tensor 'token_embd.weight' is missing", file.path()));
  decoder.vocabulary = table->shape[0];
  decoder.tie_head = file.find("output.weight") == nullptr;
  if (keys.has("expert_count") && file.whole(config.family + ".expert_count").value() > 0)
    keys.refuse("expert_count", "says that there are experts, which are not supported");
  if (decoder.width % decoder.heads != 0 && !keys.has("attention.key_length"))
    keys.refuse("attention.head_count", fmt::format("is {}, which does not divide the width {}",
                                                    decoder.heads, decoder.width));
  if (gpt2) {
    decoder.tanh_gelu = true;
    decoder.epsilon = keys.positive("attention.layer_norm_epsilon", 1e-5);
    return config;
  }
  decoder.groups = keys.whole("attention.head_count_kv", 1024, decoder.heads);
  if (decoder.heads % decoder.groups != 0)
    keys.refuse("attention.head_count_kv", fmt::format("is {}, which does not divide {} heads",
                                                       decoder.groups, decoder.heads));
  decoder.epsilon = keys.positive("attention.layer_norm_rms_epsilon", 1e-5);
  decoder.theta = keys.positive("rope.freq_base", 10000);
  decoder.head_width = keys.whole("attention.key_length", 65536, decoder.width / decoder.heads);
  for (const char* key : {"attention.value_length", "rope.dimension_count"})
    if (const int64_t width = keys.whole(key, 65536, decoder.head_width);
        width != decoder.head_width)
      keys.refuse(key, fmt::format("is {}; the width of a head, {}, was expected", width,
                                   decoder.head_width));
  decoder.attention_bias = file.find("blk.0.attn_q.bias") != nullptr;
  decoder.projection_bias = file.find("blk.0.attn_output.bias") != nullptr;
  decoder.mlp_bias = file.find("blk.0.ffn_up.bias") != nullptr;
  read_scaling(file, config.family, keys, decoder);
  return config;
}

GgufMetadata gguf_metadata(const HuggingFaceConfig& config) {
  const DecoderConfig& decoder = config.decoder;
  const bool gpt2 = decoder.style == DecoderConfig::Style::gpt2;
  if (gpt2 && !decoder.tanh_gelu)
    throw UsageError("GGUF's gpt2 has the GELU by tanh, this model the exact one");
  if (decoder.window > 0) throw UsageError("GGUF's models have no window, this model has one");
  GgufMetadata metadata;
  const auto put = [&](const char* key, GgufValue value) {
    metadata[config.family + "." + key] = std::move(value);
  };
  const auto whole = [&](const char* key, int64_t value) {
    put(key, static_cast<uint64_t>(value));
  };
  metadata["general.architecture"] = config.family;
  whole("block_count", decoder.layers);
  whole("embedding_length", decoder.width);
  whole("feed_forward_length", decoder.hidden > 0 ? decoder.hidden : 4 * decoder.width);
  whole("context_length", decoder.context);
  whole("attention.head_count", decoder.heads);
  whole("vocab_size", decoder.vocabulary);
  if (gpt2) {
    put("attention.layer_norm_epsilon", decoder.epsilon);
    return metadata;
  }
  const int64_t head = decoder.head_width > 0 ? decoder.head_width : decoder.width / decoder.heads;
  whole("attention.head_count_kv", decoder.groups > 0 ? decoder.groups : decoder.heads);
  whole("attention.key_length", head);
  whole("attention.value_length", head);
  whole("rope.dimension_count", head);
  put("rope.freq_base", decoder.theta);
  put("attention.layer_norm_rms_epsilon", decoder.epsilon);
  if (decoder.scaling.kind == Kind::linear) {
    put("rope.scaling.type", std::string("linear"));
    put("rope.scaling.factor", decoder.scaling.factor);
  }
  if (decoder.scaling.kind == Kind::llama3)
    metadata[std::string(kOwnScaling)] =
        std::vector<double>{decoder.scaling.factor, decoder.scaling.low, decoder.scaling.high,
                            static_cast<double>(decoder.scaling.original)};
  return metadata;
}

std::vector<float> gguf_frequencies(const DecoderConfig& decoder) {
  if (decoder.scaling.kind != Kind::llama3) return {};
  const int64_t head = decoder.head_width > 0 ? decoder.head_width : decoder.width / decoder.heads;
  const std::vector<double> plain = nn::rotary_frequencies(head, decoder.theta);
  const std::vector<double> scaled = nn::rotary_frequencies(head, decoder.theta, decoder.scaling);
  std::vector<float> values;
  for (size_t i = 0; i < plain.size(); ++i)
    values.push_back(static_cast<float>(plain[i] / scaled[i]));
  return values;
}

}  // namespace fullbore
