#include "fullbore/text/gguf_names.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "fullbore/base/check.h"
#include "fullbore/text/huggingface_names.h"

namespace fullbore {
namespace {

const std::map<std::string_view, std::string_view> kNames = {
    {"token_embedding", "token_embd"},
    {"position_embedding", "position_embd"},
    {"final_norm", "output_norm"},
    {"head", "output"},
    {"attention_norm", "attn_norm"},
    {"attention.qkv", "attn_qkv"},
    {"attention.query", "attn_q"},
    {"attention.key", "attn_k"},
    {"attention.value", "attn_v"},
    {"attention.projection", "attn_output"},
    {"mlp_norm", "ffn_norm"},
    {"mlp.gate", "ffn_gate"},
    {"mlp.up", "ffn_up"},
    {"mlp.down", "ffn_down"}};

/// "layers.3.attention.query.weight" -> "blk.3.attn_q.weight".
std::string renamed(std::string_view ours) {
  constexpr std::string_view kLayers = "layers.";
  std::string result;
  if (ours.starts_with(kLayers)) {
    ours.remove_prefix(kLayers.size());
    const size_t dot = ours.find('.') + 1;
    result = "blk." + std::string(ours.substr(0, dot));
    ours.remove_prefix(dot);
  }
  const size_t part = ours.rfind('.');
  return result.append(kNames.at(ours.substr(0, part))).append(ours.substr(part));
}

/// `to` of each row's place there, `from` here, or the other way round.
template <class Move>
void for_rows(int64_t rows, int64_t heads, const Move& move) {
  FB_CHECK(heads > 0 && rows % (2 * heads) == 0, "{} rows of {} heads", rows, heads);
  const int64_t width = rows / heads;
  for (int64_t head = 0; head < heads; ++head)
    for (int64_t i = 0; i < width / 2; ++i)
      for (int64_t s = 0; s < 2; ++s)
        move(head * width + i + s * (width / 2), head * width + 2 * i + s);
}

}  // namespace

std::vector<GgufName> gguf_names(const nn::DecoderConfig& decoder, const std::string& family) {
  const int64_t groups = decoder.groups > 0 ? decoder.groups : decoder.heads;
  std::vector<GgufName> names;
  for (const HuggingFaceName& name : huggingface_names(decoder, "")) {
    GgufName gguf{name.ours, renamed(name.ours), name.shape, 0};
    if (name.transposed) gguf.shape = Shape{name.shape[1], name.shape[0]};
    if (family == "llama" && name.ours.find(".attention.query.") != std::string::npos)
      gguf.paired_heads = decoder.heads;
    if (family == "llama" && name.ours.find(".attention.key.") != std::string::npos)
      gguf.paired_heads = groups;
    names.push_back(std::move(gguf));
  }
  return names;
}

std::vector<float> paired_rows(const std::vector<float>& values, int64_t rows, int64_t heads) {
  const auto width = static_cast<int64_t>(values.size()) / rows;
  std::vector<float> result(values.size());
  for_rows(rows, heads, [&](int64_t here, int64_t there) {
    std::copy_n(values.begin() + here * width, width, result.begin() + there * width);
  });
  return result;
}

std::vector<float> halved_rows(const std::vector<float>& values, int64_t rows, int64_t heads) {
  const auto width = static_cast<int64_t>(values.size()) / rows;
  std::vector<float> result(values.size());
  for_rows(rows, heads, [&](int64_t here, int64_t there) {
    std::copy_n(values.begin() + there * width, width, result.begin() + here * width);
  });
  return result;
}

}  // namespace fullbore
