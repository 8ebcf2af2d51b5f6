#pragma once
#include <functional>

#include "fullbore/ops/cross_entropy.h"
#include "fullbore/ops/row_blocks.h"

/// What linear_cross_entropy and its gradient share. Both read hidden [N,C], weight [V,C], targets [N]
/// and, if `weighted`, weights [N].
namespace fullbore {

Attributes linear_cross_entropy_attributes(const CrossEntropyOptions& options, bool weighted,
                                           int64_t rows);
/// The checks of both ops.
void require_linear_cross_entropy(const OpCall& call);

/// A call whose rows are cut into blocks of equal size, the last of which may end in ignored rows.
class LinearCrossEntropy {
 public:
  LinearCrossEntropy(std::span<const Tensor> inputs, const Attributes& attributes);

  /// What is made of one block. Cotangents are multiplied by a constant, which run() takes out again.
  struct RowBlock {
    Tensor losses;       ///< [R], without their weights
    Tensor hidden = {};  ///< [R,C] cotangent, as hidden
    Tensor weight = {};  ///< [V,C] cotangent in the dtype that sums are computed in
  };
  struct Result {
    Tensor sum;     ///< [] of weights * losses
    Tensor losses;  ///< [N]
    Tensor hidden = {};
    Tensor weight = {};
  };
  /// All blocks, by a loop if there are several; with or without cotangents, those of a result of 1.
  Result run(bool gradient) const;

 private:
  RowBlock block(Tensor hidden, Tensor targets, Tensor weights, bool gradient) const;

  Tensor hidden_;
  Tensor weight_;
  Tensor targets_;
  Tensor weights_;  // none: all 1
  CrossEntropyOptions options_;
  RowBlocks blocks_;
};

/// The losses [...] that linear_cross_entropy() of the same operands (ops.h) sums, without their weights: for metrics, at
/// no cost beside that call and its gradient. No gradient goes through it.
Tensor linear_cross_entropy_losses(Tensor hidden, Tensor weight, Tensor targets,
                                   LinearCrossEntropyOptions options = {},
                                   SourceLoc loc = SourceLoc::here());

/// Both by definition, in plain loops: the outputs are the first of sum, losses, hidden, weight.
void linear_cross_entropy_reference(ReferenceCall& call);
void linear_cross_entropy_gradient_reference(ReferenceCall& call);

std::vector<Sample> linear_cross_entropy_samples();
std::vector<ErrorSample> linear_cross_entropy_error_samples();

}  // namespace fullbore
