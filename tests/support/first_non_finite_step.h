#pragma once
#include <string>
#include <vector>

namespace fullbore::testing {

/// A job whose first step is made not to be finite.
struct NonFiniteCase {
  const char* configuration;  ///< of configs/
  std::vector<std::string> overrides;
  const char* gain;           ///< a parameter that activations are multiplied by
  const char* where;          ///< the module that does so
  bool is_recursive = false;  ///< is that within a loop of the model's own?
};

/// A gain of 3e38, times what a norm lets through, is beyond the largest f32 number: expects the module to be named.
void expect_named_in_forward_pass(const NonFiniteCase& each);
/// The same of what is planted in the gradients and in the update.
void expect_named_in_backward_pass_and_optimizer(const NonFiniteCase& each);

}  // namespace fullbore::testing
