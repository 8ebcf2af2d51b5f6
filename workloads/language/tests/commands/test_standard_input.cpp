// Standard input may have any length: what reads it takes memory for a piece at a time.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "tests/support/job.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMebibyte = int64_t{1} << 20;
// The program and its libraries take 80 MiB; a copy of the input would take as much again as there is below.
constexpr int64_t kMostBytes = 144 * kMebibyte;
constexpr int kInputMebibytes = 96;

/// Standard input of this process, and of the commands that it runs, is the file.
class InputFrom {
 public:
  explicit InputFrom(const std::string& path) : before_(dup(STDIN_FILENO)) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(dup2(file, STDIN_FILENO), STDIN_FILENO);
    close(file);
  }
  ~InputFrom() {
    dup2(before_, STDIN_FILENO);
    close(before_);
  }
  InputFrom(const InputFrom&) = delete;
  InputFrom& operator=(const InputFrom&) = delete;

 private:
  int before_;
};

int64_t peak_bytes(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;)
    if (int64_t kibibytes = 0; word == "VmHWM:" && status >> kibibytes) return kibibytes << 10;
  return 0;
}

class StandardInput : public JobTest {
 protected:
  /// A file of so many MiB that repeat the text.
  void put_input(const std::string& text) const {
    std::string piece;
    while (piece.size() < kMebibyte) piece += text;
    std::ofstream file(folder_ / "input");
    for (int i = 0; i < kInputMebibytes; ++i) file << piece;
    ASSERT_TRUE(file.flush());
  }
  CommandResult fed(const std::vector<std::string>& arguments) {
    const InputFrom input(folder_ / "input");
    peak_ = 0;
    return run_command(folder_.path(), arguments,
                       [&](pid_t process) { peak_ = std::max(peak_, peak_bytes(process)); });
  }
  void SetUp() override {
#ifdef __SANITIZE_ADDRESS__
    GTEST_SKIP() << "a sanitizer's own memory is resident too";
#endif
  }
  int64_t peak_ = 0;
};

TEST_F(StandardInput, IsReadPieceByPiece) {
  put_input("the sea is calm tonight, the tide is full, the moon lies fair.\n");
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"data", "stats", "-", "--tokenizer", "byte"},
           {"data", "tokenize", "-", "--tokenizer", "character", "--out", "a.tokens"},
           {"data", "train-tokenizer", "-", "--vocabulary", "300", "--out", "bpe"},
           {"train", "job.yaml", "data.path=-", "train.steps=1", "run.dir=run"},
       }) {
    SCOPED_TRACE(arguments[1]);
    const CommandResult result = fed(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_GT(peak_, 0);
    EXPECT_LT(peak_, kMostBytes);
  }
}

TEST_F(StandardInput, OfOneWordIsRefusedWhereItMustBeHeldWhole) {
  ASSERT_EQ(command({"data", "train-tokenizer", "text.txt", "--vocabulary", "270", "--out", "bpe"})
                .exit_code,
            0);
  put_input("a");
  const CommandResult result = fed({"data", "stats", "-", "--tokenizer", "bpe:bpe"});
  EXPECT_EQ(result.exit_code, 3) << result.out;
  EXPECT_THAT(result.err, HasSubstr("without white space between words"));
  EXPECT_LT(peak_, kMostBytes);
  const CommandResult learned =
      fed({"data", "train-tokenizer", "-", "--vocabulary", "270", "--out", "other"});
  EXPECT_EQ(learned.exit_code, 3) << learned.out;
  EXPECT_LT(peak_, kMostBytes);
}

}  // namespace
}  // namespace fullbore
