#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "fullbore/ir/op_def.h"
#include "fullbore/ir/tensor.h"

/// What `linear_recurrence`, of which wkv6 and ssd are forms, and the three ops that it is made of share.
///
/// Per head, with keys r_t, k_t of width K, values v_t of width V, log-decays g_t of width K or 1, and a
/// state S [K,V]:
///   S_t = diag(exp(g_t)) S_{t-1} + k_t^T v_t
///   inclusive      y_t = r_t S_t
///   not inclusive  y_t = r_t (S_{t-1} + diag(u) k_t^T v_t)
/// A reset before token t makes S_{t-1} zero. g is limited to [kLeastLogDecay, 0]: e^-20 is 2e-9, and sums
/// of larger ones would cancel where f32 differences of them are taken.
///
/// Tokens are cut into chunks. `recurrence_states` goes from chunk to chunk and makes the states at their
/// borders; then every chunk is by itself (`recurrence_outputs`, `recurrence_gradient`).
///
/// Operands, r and k [B,T,G,K] with H a multiple of G, v [B,T,H,V], g [B,T,H,K or 1], u [H,K]:
///   linear_recurrence    r, k, v, g, [u], initial, [resets]                  -> y, last
///   recurrence_states    k, v, g, initial, [resets]                          -> states, last
///   recurrence_outputs   r, k, v, g, [u], states, [resets]                   -> y
///   recurrence_gradient  r, k, v, dy, g, [u], states, cotangents, [resets]   -> dr, dk, dv, dg, [du]
/// with initial and last [B,H,K,V], states and cotangents [chunks,B,H,K,V], du [chunks,B,H,K]. Attributes:
/// chunk, inclusive, resets (are there any?), and of recurrence_states reverse: then it is the state's
/// cotangents that go from the last chunk to the first, with r and dy for k and v.
namespace fullbore {

inline constexpr double kLeastLogDecay = -20;
/// Tokens whose decays are multiplied pair by pair, of decays that differ along a head's keys.
inline constexpr int64_t kSubChunk = 16;

struct RecurrenceShape {
  int64_t batch, tokens, heads, groups, keys, values;
  int64_t decays;  ///< keys, or 1
  int64_t chunk;   ///< tokens of a chunk, at most all
  int64_t chunks;
  bool inclusive, resets;

  RecurrenceShape(const TensorType& k, const TensorType& v, const TensorType& g,
                  const Attributes& attributes);
  bool bonus() const { return !inclusive; }
  bool scalar_decay() const { return decays == 1; }
  Shape state() const { return {batch, heads, keys, values}; }
  Shape states() const { return {chunks, batch, heads, keys, values}; }
  int64_t chunk_tokens(int64_t index) const {
    return index + 1 < chunks ? chunk : tokens - index * chunk;
  }
};

/// Flops of the matmuls per token and head: pairs of tokens within a chunk, and of a token with a state.
double recurrence_pair_flops(const RecurrenceShape& shape);
double recurrence_state_flops(const RecurrenceShape& shape);

Attributes recurrence_attributes(int64_t chunk, bool inclusive, bool resets);

/// Throws UsageError for k, v, g (operands of those indices) and attributes that fit none of the ops.
RecurrenceShape require_recurrence(const OpCall& call, size_t k, size_t v, size_t g);
/// "wkv6: needs bonus f32[4,32], got f32[32]": of the dtype of operand 0 or, if `wide`, what that is
/// computed in.
void require_operand(const OpCall& call, size_t index, std::string_view name, const Shape& shape,
                     bool wide = true);
/// Operand `index` is the last one if `resets`: bool [B,T].
void require_resets(const OpCall& call, size_t index, const RecurrenceShape& shape);

/// One call's tokens in chunks, [chunks,B,H,chunk,...] in the dtype that is computed in, and what decays.
class RecurrenceChunks {
 public:
  RecurrenceChunks(const RecurrenceShape& shape, Tensor g, Tensor resets);

  Tensor split(Tensor x) const;                ///< of [B,T,H or G,W]: heads repeated
  Tensor joined(Tensor x, DType dtype) const;  ///< to [B,T,H,W]
  Tensor summed(Tensor x, DType dtype) const;  ///< to [B,T,G,W], over the heads of a group
  /// exp of the sums of decays between a token and the border of its chunk, [chunks,B,H,chunk,decays]:
  /// from the chunk's beginning to where y_t reads, and from behind k_t to the chunk's end.
  Tensor reading() const;
  Tensor writing() const;
  Tensor through() const;  ///< and of the whole chunk, [chunks,B,H,decays,1]

  /// Tokens [first, end) of the chunks as readers, all tokens before `end` as writers.
  struct Block {
    int64_t first, end;
  };
  std::vector<Block> blocks() const;
  /// What each reader takes of each writer's value, [chunks,B,H,readers,writers]; not the bonus.
  Tensor weights(const Block& block, Tensor r, Tensor k) const;
  /// Cotangents of the block's r, and of k before its end, for those of the weights.
  struct Slopes {
    Tensor r, k;
  };
  Slopes slopes(const Block& block, Tensor r, Tensor k, Tensor dweights) const;

  /// Tokens [first, end) of a tensor of chunks.
  static Tensor tokens(Tensor x, int64_t first, int64_t end);

 private:
  Tensor exp_where(Tensor visible, Tensor exponent) const;
  Tensor last_token(Tensor x) const { return tokens(x, shape_.chunk - 1, shape_.chunk); }
  Tensor visible_pairs(int64_t first, int64_t end, int64_t writers, int64_t end_of_writers) const;
  Tensor pair_decays(int64_t first, int64_t end) const;
  /// exp of the sums of decays between a block's beginning and its readers, and the writers before it.
  Tensor behind_border(const Block& block) const;
  Tensor before_border(const Block& block) const;

  RecurrenceShape shape_;
  DType compute_;
  Tensor read_;     ///< sum of the log-decays from the chunk's beginning to where y_t reads
  Tensor before_;   ///< of the tokens before t
  Tensor after_;    ///< with t's own
  Tensor segment_;  ///< number of resets up to t, [chunks,B,1,chunk,1]; invalid without resets
};

void linear_recurrence_reference(ReferenceCall& call);
void recurrence_states_reference(ReferenceCall& call);
void recurrence_outputs_reference(ReferenceCall& call);
void recurrence_gradient_reference(ReferenceCall& call);

std::vector<Sample> linear_recurrence_samples();
std::vector<Sample> recurrence_states_samples();
std::vector<Sample> recurrence_outputs_samples();
std::vector<Sample> recurrence_gradient_samples();

}  // namespace fullbore
