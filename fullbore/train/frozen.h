#pragma once
#include <string>
#include <vector>

#include "fullbore/train/step_function.h"

namespace fullbore {

/// The loss with those parameters frozen whose whole names match a pattern (trace/trace.h, FrozenScope): `*` stands for
/// any characters, `?` for one. UsageError, when it is traced, names a pattern of train.freeze that matches no parameter,
/// and the nearest one. `storage`: the dtype that a parameter is stored in, as FrozenScope has it.
LossFunction with_frozen(LossFunction loss, std::vector<std::string> patterns,
                         FrozenScope::Storage storage = {});

/// Per term of the loss: has it a name, and depends on no trained parameter of the trace? Such a dead loss has no
/// backward pass. A term without a name has none either, and stays in the sum, for nobody could be told of it. None is
/// dead where all are, in a trace that trains nothing. UsageError, which names the terms, where something is trained and
/// no term depends on it; so it is for a loss without terms.
std::vector<bool> dead_terms(Trace& trace, const Loss& loss);

/// The loss without its dead terms: its mean is the sum of the others. Each becomes a metric of its name, unless the
/// loss has one of that name already, and is dead code where nobody asks for that. Loss::dead tells the names.
Loss without_terms(Loss loss, const std::vector<bool>& dead);

}  // namespace fullbore
