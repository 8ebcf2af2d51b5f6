#pragma once
#include "fullbore/ir/target.h"

namespace fullbore::cpu {

/// What pays to be packed apart on this processor, and how.
PackingTarget packing_target();

}  // namespace fullbore::cpu
