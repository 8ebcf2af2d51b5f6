#include "fullbore/monitor/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "fullbore/base/files.h"
#include "fullbore/monitor/run_log.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// A terminal of 60 columns that remembers what was written to it.
class Terminal {
 public:
  Terminal() {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = 60;
    if (openpty(&master_, &slave_, nullptr, nullptr, &size) != 0) abort();
    fcntl(master_, F_SETFL, O_NONBLOCK);
  }
  ~Terminal() {
    close(master_);
    close(slave_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;
  int fd() const { return slave_; }
  void resize(int columns) const {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = static_cast<unsigned short>(columns);
    ioctl(slave_, TIOCSWINSZ, &size);
  }
  // All that has been written: the kernel hands it over a little later, and not in one piece.
  std::string take() const {
    constexpr int kQuietMilliseconds = 20;
    std::string taken;
    char bytes[4096];
    pollfd ready{master_, POLLIN, 0};
    while (poll(&ready, 1, kQuietMilliseconds) > 0) {
      const ssize_t count = read(master_, bytes, sizeof bytes);
      if (count <= 0) break;
      taken.append(bytes, static_cast<size_t>(count));
    }
    return taken;
  }

 private:
  int master_ = -1;
  int slave_ = -1;
};

const Progress kProgress = {.phase = "", .step = 3, .total_steps = 10, .train_loss = 1.5};

class ConsoleTest : public ::testing::Test {
 protected:
  ConsoleTest() {
    setenv("TERM", "xterm", 1);
    setenv("LC_ALL", "C", 1);
    setenv("NO_COLOR", "1", 1);
  }
};

TEST_F(ConsoleTest, LiveLineIsRedrawnInPlaceAtMostTenTimesASecond) {
  const Terminal terminal;
  Console console(terminal.fd());
  EXPECT_TRUE(console.terminal());
  EXPECT_EQ(console.width(), 60);
  const Console::Clock::time_point start{std::chrono::seconds(100)};
  console.live(kProgress, start);
  const std::string drawn = terminal.take();
  EXPECT_THAT(drawn, StartsWith("\r\x1b[K"));
  EXPECT_THAT(drawn, HasSubstr("step 3/10  loss 1.5000"));
  EXPECT_THAT(drawn, Not(HasSubstr("\n")));
  EXPECT_LT(display_width(drawn.substr(4)), 60);
  console.live(kProgress, start + std::chrono::milliseconds(99));
  EXPECT_EQ(terminal.take(), "");
  console.live(kProgress, start + std::chrono::milliseconds(100));
  EXPECT_THAT(terminal.take(), HasSubstr("step 3/10"));
}

TEST_F(ConsoleTest, LiveLineFitsANarrowTerminal) {
  const Terminal terminal;
  Progress progress = kProgress;
  progress.tokens_per_second = 12345;
  progress.seconds_left = 100;
  for (const int columns : {1, 2, 5, 9, 17, 40, 200}) {
    terminal.resize(columns);
    Console console(terminal.fd());
    console.live(progress, Console::Clock::time_point{std::chrono::seconds(100)});
    EXPECT_LT(display_width(terminal.take().substr(4)), columns);
    console.live("l\u00E4uft \u00FCber das Ende hinaus");
    const std::string drawn = terminal.take().substr(4);
    EXPECT_LT(display_width(drawn), columns);
    EXPECT_TRUE(drawn.empty() || (static_cast<unsigned char>(drawn.back()) & 0xC0U) != 0xC0U)
        << "a letter is cut in two";
    console.clear();
    terminal.take();
  }
}

TEST_F(ConsoleTest, LinesThatAreLostAreToldWhyAndLeaveTheRestAlone) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  Console console(full);
  EXPECT_EQ(console.failure(), "");
  console.line("lost");
  EXPECT_EQ(console.failure(), "No space left on device");
  close(full);
  console.line("lost too");
  EXPECT_EQ(console.failure(), "No space left on device") << "the first reason stays";
}

TEST_F(ConsoleTest, LinesStayAboveTheLiveLine) {
  const Terminal terminal;
  {
    Console console(terminal.fd());
    console.live("compiling");
    EXPECT_EQ(terminal.take(), "\r\x1b[Kcompiling");
    console.line("saved");
    EXPECT_EQ(terminal.take(), "\r\x1b[Ksaved\r\n\r\x1b[Kcompiling");
  }
  EXPECT_EQ(terminal.take(), "\r\x1b[K") << "the live line outlived the console";
}

TEST_F(ConsoleTest, EnvironmentChoosesColourAndLetters) {
  const Terminal terminal;
  EXPECT_FALSE(Console(terminal.fd()).style().colour);
  EXPECT_FALSE(Console(terminal.fd()).style().unicode);
  unsetenv("NO_COLOR");
  setenv("LC_ALL", "en_US.UTF-8", 1);
  EXPECT_TRUE(Console(terminal.fd()).style().colour);
  EXPECT_TRUE(Console(terminal.fd()).style().unicode);
  setenv("TERM", "dumb", 1);
  EXPECT_FALSE(Console(terminal.fd()).terminal());
  EXPECT_FALSE(Console(terminal.fd()).style().colour);
}

class ConsoleToFile : public ConsoleTest {
 protected:
  ConsoleToFile() : path_(::testing::TempDir() + "fullbore_console"), log_path_(path_ + ".log") {
    std::filesystem::remove(log_path_);
    fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  }
  ~ConsoleToFile() override {
    close(fd_);
    std::filesystem::remove(path_);
    std::filesystem::remove(log_path_);
  }
  std::string path_;
  std::string log_path_;
  int fd_ = -1;
};

TEST_F(ConsoleToFile, GetsPlainLinesOnly) {
  Console console(fd_);
  EXPECT_FALSE(console.terminal());
  console.live(kProgress);
  console.live("compiling");
  console.line("one");
  console.clear();
  EXPECT_EQ(read_file(path_).value(), "one\n");
}

TEST_F(ConsoleToFile, LogGoesToConsoleAndFileAndAppends) {
  Console console(fd_);
  {
    const auto log = make_run_log(console, log_path_).take_or_throw();
    log->info("step {}", 5);
    log->warn("odd");
    log->debug("detail");
  }
  make_run_log(console, log_path_).take_or_throw()->info("resumed");
  EXPECT_EQ(read_file(path_).value(), "step 5\nfullbore: warning: odd\nresumed\n");
  EXPECT_THAT(read_file(log_path_).value(),
              ::testing::MatchesRegex("[0-9 .:-]+ info: step 5\n[0-9 .:-]+ warning: odd\n"
                                      "[0-9 .:-]+ debug: detail\n[0-9 .:-]+ info: resumed\n"));
}

TEST_F(ConsoleToFile, UnwritableLogIsAFailure) {
  Console console(fd_);
  const auto log = make_run_log(console, "/proc/no/log.txt");
  ASSERT_FALSE(log.ok());
  EXPECT_THAT(log.error(), HasSubstr("cannot write /proc/no/log.txt"));
}

}  // namespace
}  // namespace fullbore
