#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/tokenizer.h"
#include "fullbore/text/huggingface_config.h"

namespace fullbore::latentwire {

/// A language model that others published, known by its sizes alone: for plans, and for measuring steps with random
/// weights.
struct PublishedShape {
  HuggingFaceConfig model;
  /// A token for each byte, and the special tokens by which its family's turns are told apart; far fewer than the table
  /// has rows.
  std::shared_ptr<const Tokenizer> tokenizer;
};

/// Names, as receivers.folders takes them behind "random:".
std::vector<std::string> published_shapes();
/// UsageError: there is none of this name.
PublishedShape published_shape(std::string_view name);

}  // namespace fullbore::latentwire
