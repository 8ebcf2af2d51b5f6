#pragma once
#include <string_view>

#include "fullbore/ir/tensor.h"

namespace fullbore {

/// While it lives, what `builder` emits is an island of f32, with its gradient, whatever precision the target has: values
/// that it reads and makes are never rounded, contractions within read f32 operands, and those outside whose results it
/// reads, element by element, hand over the sums that they have. A model marks so what must not be rounded (positions,
/// statistics, losses); it names no parameters, whose names have the scopes in which they are declared.
class Fp32Scope {
 public:
  explicit Fp32Scope(GraphBuilder& builder) : builder_(builder) { builder.push_scope("fp32"); }
  ~Fp32Scope() { builder_.pop_scope(); }
  Fp32Scope(const Fp32Scope&) = delete;
  Fp32Scope& operator=(const Fp32Scope&) = delete;

 private:
  GraphBuilder& builder_;
};
/// Is a node of this scope in such an island?
bool is_fp32_scope(std::string_view scope);

}  // namespace fullbore
