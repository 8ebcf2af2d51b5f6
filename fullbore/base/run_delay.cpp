#include "fullbore/base/run_delay.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>

namespace fullbore {

int thread_id() { return gettid(); }

std::optional<int64_t> run_delay_ns(int thread_id, const char* proc) {
  std::array<char, 256> text;
  const int length =
      std::snprintf(text.data(), text.size(), "%s/self/task/%d/schedstat", proc, thread_id);
  if (length < 0 || static_cast<size_t>(length) >= text.size()) return std::nullopt;
  const int file = open(text.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const ssize_t read_bytes = read(file, text.data(), text.size() - 1);
  close(file);
  if (read_bytes <= 0) return std::nullopt;
  text[static_cast<size_t>(read_bytes)] = '\0';
  // Time on a processor, time waiting for one, and how often it was given one.
  const char* const begin = text.data();
  char* end = nullptr;
  std::strtoll(begin, &end, 10);
  if (end == begin || *end != ' ') return std::nullopt;
  const char* const second = end;
  const long long delay = std::strtoll(second, &end, 10);
  if (end == second || delay < 0) return std::nullopt;
  return delay;
}

}  // namespace fullbore
