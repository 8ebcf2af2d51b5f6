#pragma once
#include <cstdint>

namespace fullbore::testing {

/// While it lives, the n-th `operator new` (0, 1, ...) of this thread throws std::bad_alloc, and so
/// do all that follow if `for_good`. Works through replacements that are linked into the test.
class FailingNew {
 public:
  FailingNew(int64_t n, bool for_good);
  ~FailingNew();
  FailingNew(const FailingNew&) = delete;
  FailingNew& operator=(const FailingNew&) = delete;
  bool reached() const;  ///< has it thrown?
};

}  // namespace fullbore::testing
