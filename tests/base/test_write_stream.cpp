#include "fullbore/base/write_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <thread>
#include <utility>

namespace fullbore {
namespace {

class WriteStream : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe2(ends_, O_CLOEXEC), 0); }
  void TearDown() override {
    for (const int end : ends_)
      if (end >= 0) close(end);
  }
  int ends_[2] = {-1, -1};
};

TEST_F(WriteStream, WaitsForASlowReaderOfANonBlockingPipe) {
  ASSERT_EQ(fcntl(ends_[1], F_SETFL, O_NONBLOCK), 0);
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i);  // more than a pipe holds
  std::string read_back;
  std::thread reader([&] {
    char bytes[777];
    for (ssize_t count = 0; (count = read(ends_[0], bytes, sizeof bytes)) > 0;)
      read_back.append(bytes, static_cast<size_t>(count));
  });
  EXPECT_EQ(write_stream(ends_[1], text), 0);
  close(std::exchange(ends_[1], -1));
  reader.join();
  EXPECT_EQ(read_back, text);
}

TEST_F(WriteStream, ReportsWhyItCannotWrite) {
  close(std::exchange(ends_[0], -1));
  const auto before = std::signal(SIGPIPE, SIG_DFL);  // a signal would end the test
  EXPECT_EQ(write_stream(ends_[1], "text"), EPIPE);
  EXPECT_EQ(write_stream(ends_[1], "text"), EPIPE);
  std::signal(SIGPIPE, before);
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  EXPECT_EQ(write_stream(full, "text"), ENOSPC);
  EXPECT_EQ(write_stream(full, ""), 0);
  close(full);
  EXPECT_EQ(write_stream(-1, "text"), EBADF);
}

}  // namespace
}  // namespace fullbore
