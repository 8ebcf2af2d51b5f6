#pragma once
#include <string>

#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

namespace fullbore::peptide {

/// x [..., I] -> [..., outputs]; parameters `<name>.weight` and `.bias`, which begin as torch.nn.Linear's do.
Tensor dense(Trace& trace, const char* name, Tensor x, int64_t outputs);

/// The layers of encoder and decoder, pre-norm, with biases everywhere; dropout on attention's weights, branches and
/// inside the feed-forward network. Vaswani et al. 2017, arXiv:1706.03762; Xiong et al. 2020, arXiv:2002.04745.
class Layers {
 public:
  struct Options {
    int64_t width = 0;
    int64_t heads = 1;  ///< divides the width
    double dropout = 0;
  };
  Layers(Trace& trace, const Options& options) : trace_(trace), options_(options) {}

  /// Self-attention and feed-forward: x [B,L,H], visible bool [B,1,1,L].
  Tensor encode(const std::string& name, Tensor x, Tensor visible) const;

  /// What the cross-attention of decoder layer `name` makes of a context [B,L,H].
  struct Context {
    Tensor keys;    ///< [B,heads,L,D]
    Tensor values;  ///< the same
  };
  Context look_at(const std::string& name, Tensor context) const;

  /// Self-attention, cross-attention to the context and feed-forward: x [B,S,H]; visible bool [B,1,1,L] or none.
  Tensor decode(const std::string& name, Tensor x, const Context& context, Tensor visible) const;

 private:
  Tensor dropped(Tensor x) const;
  Tensor by_heads(Tensor x, int64_t parts) const;
  AttentionOptions attention_options(Tensor visible) const;
  Tensor output(Tensor mixed) const;
  Tensor self_attention(const char* name, Tensor x, Tensor visible) const;
  Tensor cross_attention(Tensor x, const Context& context, Tensor visible) const;
  Tensor feed_forward(Tensor x) const;

  Trace& trace_;
  Options options_;
};

}  // namespace fullbore::peptide
