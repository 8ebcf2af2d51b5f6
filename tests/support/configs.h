#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fullbore::testing {

/// The message with which a configuration, named configs/x.yaml, is refused; "" when it is not.
std::string config_refusal(std::string_view yaml, const std::vector<std::string>& overrides = {});

/// Expects a file of configs/ to be read, and to show every key that there is for its model.
void expect_shows_its_keys(const std::string& name);

}  // namespace fullbore::testing
