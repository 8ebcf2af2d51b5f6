#pragma once
#include "fullbore/data/tokenize.h"
#include "fullbore/monitor/console.h"

namespace fullbore {

/// Shows on the console's live line how much of a text has become tokens, how fast, and how long the
/// rest will take. The console must outlive it.
TextProgress text_progress(Console& console);

}  // namespace fullbore
