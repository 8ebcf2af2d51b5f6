#pragma once
#include <string>

#include "fullbore/ir/tensor.h"

namespace fullbore {

/// The line of the model that made a tensor, for the end of an error: " (mine.cpp:88)", or "" for an input.
std::string made_at(Tensor x);

}  // namespace fullbore
