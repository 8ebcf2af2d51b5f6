#pragma once

namespace fullbore {

// Thread groups are of neighbouring workers, as equal as can be.

/// Which one a worker is of.
inline int thread_group_of(int worker, int thread_groups, int workers) {
  return worker * thread_groups / workers;
}
/// Who is first in it.
inline int first_worker(int thread_group, int thread_groups, int workers) {
  return (thread_group * workers + thread_groups - 1) / thread_groups;
}

}  // namespace fullbore
