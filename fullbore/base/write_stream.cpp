#include "fullbore/base/write_stream.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace fullbore {

int write_stream(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<size_t>(written));
      continue;
    }
    if (written == 0) return ENOSPC;  // or this would never end
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return errno;
    pollfd ready{descriptor, POLLOUT, 0};
    ::poll(&ready, 1, -1);
  }
  return 0;
}

}  // namespace fullbore
