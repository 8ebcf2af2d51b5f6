#pragma once
#include <set>
#include <string>

namespace fullbore::testing {

/// Folders of workloads/ that links of configs/ and docs/guide lead to, and that are not there: somebody deleted them.
/// What tells of all workloads, such as README.md, cannot be held against a command that lacks some.
std::set<std::string> absent_workloads();

}  // namespace fullbore::testing
