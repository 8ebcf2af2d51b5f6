#pragma once
#include <string>

#include "fullbore/text/text_model.h"

namespace fullbore {

/// Batches that are made up, of no text: data.batching=mqar (associative recall) and passkey (needles). Loss
/// and accuracy are of what is asked for alone; example_batches.h says how they are made.
TextTask example_task(const std::string& name);

}  // namespace fullbore
