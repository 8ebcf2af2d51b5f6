#include "fullbore/train/retired_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "fullbore/train/config_keys.h"

namespace fullbore {
namespace {

struct Key {
  std::string_view retired;
  std::string_view now;
};

constexpr std::array kKeys = {
    Key{"engine.backend", "engine.device"},
    Key{"engine.shards", "engine.parallel_microbatches"},
};

const std::array kWords = {
    RetiredWord{"engine.disabled_passes", "fold_constants", "constant_folding"},
    RetiredWord{"engine.disabled_passes", "simplify", "algebraic_simplification"},
    RetiredWord{"engine.disabled_passes", "hoist_invariants", "loop_invariant_code_motion"},
    RetiredWord{"engine.disabled_passes", "merge_common", "common_subexpression_elimination"},
    RetiredWord{"engine.disabled_passes", "remove_dead", "dead_code_elimination"},
    RetiredWord{"engine.disabled_passes", "narrow_stacks", "reduce_residual_precision"},
    RetiredWord{"engine.disabled_passes", "narrow_storage", "reduce_intermediate_precision"},
    RetiredWord{"engine.disabled_passes", "gather_products", "batch_weight_gradients"},
    RetiredWord{"engine.disabled_passes", "accumulate_products", "gemm_accumulation"},
    RetiredWord{"engine.disabled_passes", "keep_copies", "low_precision_weight_copies"},
    RetiredWord{"engine.disabled_passes", "pack_factors", "prepack_operands"},
    RetiredWord{"engine.disabled_passes", "recompute", "rematerialize"},
    RetiredWord{"engine.disabled_passes", "schedule", "order_nodes"},
};

constexpr std::array kSources = {
    Key{"train/batch_parts.cpp", "train/microbatches.cpp"},
};

constexpr std::array kRoles = {Key{"average", "ema"}, Key{"stream", "recurrent"}};
constexpr std::array kLoopAttributes = {Key{"trips", "iterations"}};

/// Ours, and those of registered keys.
template <typename Take>
void for_each_word(const Take& take) {
  for (const RetiredWord& word : kWords) take(word);
  for (const ConfigKeys& keys : registered_config_keys())
    for (const RetiredWord& word : keys.retired_words) take(word);
}

/// All "<before><retired>" that end there as words, with `now` instead.
void replace_word(std::string& text, const std::string& before, const RetiredWord& word) {
  const std::string retired = before + word.retired;
  for (size_t at = text.find(retired); at != text.npos; at = text.find(retired, at + 1)) {
    const size_t end = at + retired.size();
    if (end == text.size() || text[end] == ' ' || text[end] == ',')
      text.replace(at + before.size(), word.retired.size(), word.now);
  }
}

/// `before` + retired + `after` within [from, to) of the line, with `now` instead.
void replace_between(std::string& line, size_t from, size_t to, char before, char after,
                     std::span<const Key> keys) {
  for (const auto& [retired, now] : keys) {
    const size_t at = line.find(fmt::format("{}{}{}", before, retired, after), from);
    if (at < to) line.replace(at + 1, retired.size(), now);
  }
}

/// One line of a stored graph: `%0 = input "name" role : type` or `%2 = loop(%0) {attributes} : type {`.
void rename_in_graph(std::string& line) {
  constexpr std::string_view kInput = " = input \"", kLoop = " = loop(";
  // Before the first quotation mark there is no name that could look like either.
  const std::string_view head = std::string_view(line).substr(0, line.find('"') + 1);
  if (const size_t input = head.find(kInput); input != head.npos) {
    size_t end = input + kInput.size();
    while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
    replace_between(line, end, line.find(' ', end + 2), ' ', ' ', kRoles);
  } else if (const size_t loop = line.find(kLoop); loop < line.find('"')) {
    const size_t begin = line.find('{', loop);
    replace_between(line, begin, line.find('}', loop), ' ', '=', kLoopAttributes);
  }
}

}  // namespace

std::string_view renamed_key(std::string_view key) {
  const auto found = std::ranges::find(kKeys, key, &Key::retired);
  return found == kKeys.end() ? std::string_view() : found->now;
}

std::string_view renamed_value(std::string_view key, std::string_view value) {
  std::string_view now;
  for_each_word([&](const RetiredWord& word) {
    if (word.key == key && word.retired == value) now = word.now;
  });
  return now;
}

std::string renamed_identity(std::string text) {
  for_each_word([&](const RetiredWord& word) {
    const std::string name = word.key.substr(word.key.find('.') + 1);
    replace_word(text, name + "=", word);
    replace_word(text, name + " by ", word);
  });
  return text;
}

std::string_view renamed_source(std::string_view source) {
  const auto found = std::ranges::find(kSources, source, &Key::retired);
  return found == kSources.end() ? std::string_view() : found->now;
}

std::string renamed_graph(std::string_view text) {
  std::string renamed;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string line(text.substr(0, end));
    rename_in_graph(line);
    renamed += line;
    text.remove_prefix(end);
  }
  return renamed;
}

}  // namespace fullbore
