#pragma once
#include <functional>
#include <string>

#include "fullbore/nn/key_value_cache.h"
#include "fullbore/ops/ops.h"
#include "fullbore/trace/trace.h"

/// Building blocks with parameters. Each is a function: it declares its parameters in the trace
/// under its name and returns the result. The same name again means the same weights; in a program of one model it is
/// an error (trace/distinct_layers.h) unless share(trace) says that both mean them.
namespace fullbore::nn {

/// What is added to the result of the linear layer `name`, from outside: x [..., I] -> [..., outputs]; an empty
/// Tensor: nothing.
using LinearAddition = std::function<Tensor(const std::string& name, Tensor x, int64_t outputs)>;

struct LinearOptions {
  bool bias = true;
  Initializer weight_initializer = Initializer::normal(0.02);
  LinearAddition beside = {};
  Initializer bias_initializer = Initializer::zeros();
};
/// Begins as PyTorch's nn.Linear of so many inputs does: weight and bias uniform in +-1 / sqrt(inputs).
///     nn::linear(trace, "first", x, 64, nn::linear_of_pytorch(x.dim(-1)))
LinearOptions linear_of_pytorch(int64_t inputs, bool bias = true);
/// x [..., I] -> [..., O]; parameters `<name>.weight` [O, I] and `<name>.bias` [O], both f32, cast to
/// x's dtype where they are used.
Tensor linear(Trace& trace, const std::string& name, Tensor x, int64_t outputs,
              const LinearOptions& options = {}, SourceLoc loc = SourceLoc::here());

/// Rows of a table: indices [...] integer -> [..., width]; parameter `<name>.weight` [rows, width].
Tensor embedding(Trace& trace, const std::string& name, Tensor indices, int64_t rows, int64_t width,
                 Initializer initializer = Initializer::normal(0.02),
                 SourceLoc loc = SourceLoc::here());
/// The table itself, to tie an output head to it: may be asked for again, and of an embedding's name.
Tensor embedding_table(Trace& trace, const std::string& name, int64_t rows, int64_t width,
                       Initializer initializer = Initializer::normal(0.02),
                       SourceLoc loc = SourceLoc::here());

struct LayerNormOptions {
  bool bias = true;
  double epsilon = 1e-5;
};
/// Over the last axis; parameters `<name>.weight` (ones) and `<name>.bias` (zeros) [C].
Tensor layer_norm(Trace& trace, const std::string& name, Tensor x, LayerNormOptions options = {},
                  SourceLoc loc = SourceLoc::here());

/// Zeroes elements with `probability` while training; x itself otherwise.
Tensor dropout(Trace& trace, Tensor x, double probability, SourceLoc loc = SourceLoc::here());

struct SelfAttentionOptions {
  int64_t heads = 1;
  bool causal = true;
  bool bias = true;
  double dropout = 0;  ///< on the attention probabilities
  Initializer projection_initializer = Initializer::normal(0.02);  ///< of the output projection
  /// As attention() has it, combined with `causal`; with a cache bool [B or 1,H or 1,T or 1,capacity].
  Tensor mask = {};
  CacheOptions cache = {};  ///< with a position: see below
  KeyValues before =
      {};  ///< H heads of keys and values that every token sees; causal attention alone has it
  LinearAddition beside = {};  ///< of "qkv" and "projection"
};
/// bool [B,1,T,T] from segments [B,T], integer: which tokens are of one document. As a mask of
/// self_attention() it keeps documents in a row apart.
Tensor same_segment(Tensor segments, SourceLoc loc = SourceLoc::here());
/// bool [B,1,T,T] from branches [B,T], integer: the same for texts that begin alike. Branch 0 is what all texts of a row
/// begin with, and every branch sees it beside itself.
Tensor same_branch(Tensor branches, SourceLoc loc = SourceLoc::here());

/// Multi-head self-attention, x [B,T,C] -> [B,T,C], C a multiple of heads; parameters
/// `<name>.qkv` (one matmul for queries, keys and values) and `<name>.projection`.
/// Vaswani et al. 2017, arXiv:1706.03762, section 3.2.
///
/// With a cache, which needs `causal`, x holds the tokens at position ... position + T - 1: their
/// keys and values are written to the State `<name>.cache.keys` and `.values` [B,H,capacity,D], role
/// stream, and query t sees what the cache holds up to place position + t. What lies behind is not
/// read, so a place may be written before its token is known, and again.
Tensor self_attention(Trace& trace, const std::string& name, Tensor x, SelfAttentionOptions options,
                      SourceLoc loc = SourceLoc::here());

}  // namespace fullbore::nn
