#pragma once
#include <string>
#include <vector>

#include "fullbore/train/config.h"
#include "workloads/latentwire/receiver.h"

namespace fullbore::latentwire {

/// Does something stand between vectors and answer (receivers.anchor_mode, receivers.anchor)?
bool has_anchor(const Config& config);

/// Decides how rows of a receiver are built, when all else of it is known: its anchor, what surrounds a prompt that it reads
/// as text, and the layout of rows behind vectors. UsageError: turns of a conversation are asked for, and the
/// tokenizer is of no family that has them; a BOS that it lacks.
void set_rows(Receiver& receiver, const Config& config);

/// All that decides how rows are built, in words and tokens. A run is resumed with the same.
std::string row_recipe(const Config& config, const std::vector<Receiver>& receivers);
/// DataError, with both, where a checkpoint's rows were built as `recorded` says and receivers build others here: what a run
/// has learnt is measured on the rows that it was trained on.
void check_rows(const std::string& recorded, const Config& config,
                const std::vector<Receiver>& receivers, const std::string& path);

}  // namespace fullbore::latentwire
