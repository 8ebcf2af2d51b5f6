#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fullbore/data/tokenizer.h"
#include "fullbore/nn/bert_encoder.h"
#include "fullbore/text/huggingface_names.h"
#include "fullbore/text/huggingface_tensors.h"

namespace fullbore {

/// What config.json of a BERT says; `text`: of the file at `path`. DataError as parse_huggingface_config().
nn::BertConfig parse_bert_config(std::string_view text, const std::string& path);
/// The file that says it.
std::string bert_config_json(const nn::BertConfig& config);

/// Every tensor of such an encoder, without pooler and heads. `prefix`: "bert.", or nothing where the body was saved alone.
std::vector<HuggingFaceName> bert_names(const nn::BertConfig& config, const std::string& prefix);

/// An encoder of text as transformers and sentence-transformers keep it: a folder with config.json, tokenizer.json (word
/// pieces) and model.safetensors.
struct HuggingFaceBert {
  std::string folder;
  nn::BertConfig config;
  HuggingFaceTensors tensors;
  std::string prefix;
  std::shared_ptr<const Tokenizer> tokenizer;

  /// DataError: a file that is missing or malformed, a tensor that is missing or of another shape, a setting that is not
  /// obeyed here, more tokens than the table has rows.
  static HuggingFaceBert open(const std::string& folder);
};

}  // namespace fullbore
