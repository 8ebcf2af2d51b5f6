#pragma once
#include <cstdint>

#include "fullbore/trace/trace.h"

/// Encoders of text that see both ways. Source: Devlin et al. 2019, arXiv:1810.04805; names and defaults of transformers'
/// modeling_bert.py.
namespace fullbore::nn {

/// What such a model is; the defaults are MiniLM's (Wang et al. 2020, arXiv:2002.10957) in six layers.
struct BertConfig {
  int64_t vocabulary = 30522;
  int64_t layers = 6;
  int64_t heads = 12;
  int64_t width = 384;
  int64_t hidden = 1536;  ///< of the MLP
  int64_t context = 512;  ///< learned positions
  int64_t types = 2;      ///< kinds of segments, of which the first is read
  double epsilon = 1e-12;
  bool operator==(const BertConfig&) const = default;
};

/// Without a pooler.
int64_t bert_parameters(const BertConfig& config);

/// tokens integer [B,T], lengths i32 [B] -> [B,T,C]: what the last layer says of each token. Norms stand behind the sums,
/// GELU is the exact one, and what lies at and behind a row's length is not attended to. Parameters are declared in the
/// trace under its scope. Errors: UsageError for more tokens than the context, a width that is no multiple of the heads.
Tensor bert_states(Trace& trace, Tensor tokens, Tensor lengths, const BertConfig& config,
                   SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn
