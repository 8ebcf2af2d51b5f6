#pragma once

namespace fullbore {

/// Are two layers of one name a UsageError, unless share(trace) says that both mean the same weights? Of the whole
/// process, and off at first: asking again then gives the same weights. A program of one model (app/own_model.h) sets
/// it before anything is traced.
void set_distinct_layers(bool on);
bool distinct_layers();

}  // namespace fullbore
