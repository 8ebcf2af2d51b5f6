#pragma once
#include <memory>
#include <string>

#include "fullbore/nn/decoder_model.h"
#include "fullbore/train/config.h"
#include "fullbore/train/trainer.h"
#include "workloads/latentwire/corpus_tokenizer.h"

namespace fullbore::latentwire {

/// The two small language models that the corpus is for, each a configuration and its tokens.
///
///   bpe    as Llama: 2 layers of width 64, 4 heads of 2 groups, MLP 168, 512 byte pairs: 154,944 parameters
///   bytes  as GPT-2: 3 layers of width 96, 4 heads, MLP 384, 640 positions, 259 bytes: 422,016 parameters
struct ReaderModel {
  nn::DecoderConfig decoder;
  std::shared_ptr<const CorpusTokenizer> tokenizer;
};
/// kind: "bpe" or "bytes".
ReaderModel reader_model(const std::string& kind);

/// Documents of the corpus, each with its beginning and end, padded on the right: the job of training such a model.
TrainingJob reader_job(const Config& config);
LossFunction reader_loss(const Config& config);
std::vector<BatchField> reader_fields(const Config& config);

}  // namespace fullbore::latentwire
