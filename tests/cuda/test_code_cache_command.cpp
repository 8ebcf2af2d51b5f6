// The command's starts on a card, one after another: with a cache, with a damaged one, and with one that is not to be used.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fullbore/base/files.h"
#include "tests/cuda/fake_card.h"
#include "tests/support/job.h"

namespace fullbore::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const bool kTiny = use_tiny_model();

class StartsOnCard : public JobTest {
 protected:
  /// Losses of two steps and an evaluation; none if the command fails.
  std::vector<nlohmann::json> losses(const std::string& name, CommandResult* told) const {
    *told = train({"engine.device=cuda", "run.name=" + name, "train.steps=2", "train.batch_size=2",
                   "train.eval_interval=2", "train.checkpoint_interval=2", "log.interval=1"});
    if (told->exit_code != 0) return {};
    std::vector<nlohmann::json> found;
    for (const nlohmann::json& record : metrics("runs/" + name + "-1"))
      for (const char* const key : {"loss", "validation_loss"})
        if (record.contains(key)) found.push_back({record["step"], key, record[key]});
    std::ranges::sort(found);  // an evaluation may be told before or after the steps beside it
    return found;
  }
  std::vector<fs::path> entries() const {
    std::vector<fs::path> found;
    for (const auto& each : fs::directory_iterator(folder_ / "cache/cards"))
      found.push_back(each.path());
    return found;
  }
  static int count(const std::string& text, const std::string& part) {
    int times = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
      ++times;
    return times;
  }

  static constexpr const char* kWithoutCompiler = "multiprocessors=1,compiler=0";

 private:
  Variable driver_{"FULLBORE_CUDA_DRIVER", fake_driver()};
  Variable card_{"FULLBORE_FAKE_CUDA", "multiprocessors=1"};
  Variable cache_{"FULLBORE_CACHE", folder_ / "cache"};
};

TEST_F(StartsOnCard, NeedTheDriversCompilerOnce) {
  ASSERT_TRUE(kTiny);
  CommandResult told;
  const auto first = losses("first", &told);
  ASSERT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.err, Not(HasSubstr("compiled anew")));
  EXPECT_GE(first.size(), 3U);
  const Variable without("FULLBORE_FAKE_CUDA", kWithoutCompiler);
  EXPECT_EQ(losses("second", &told), first) << told.err;
  EXPECT_THAT(told.err, Not(HasSubstr("compiled anew")));
  const Variable off("FULLBORE_COMPILE_CACHE", "off");
  losses("third", &told);
  EXPECT_NE(told.exit_code, 0) << "the cache is not to be used, and there is no compiler";
}

TEST_F(StartsOnCard, GoOnWithADamagedCache) {
  CommandResult told;
  const auto first = losses("first", &told);
  ASSERT_EQ(told.exit_code, 0) << told.err;
  ASSERT_GT(entries().size(), 1U);
  for (const fs::path& each : entries()) {
    std::string bytes = read_file(each.string()).take_or_throw();
    bytes.back() = static_cast<char>(bytes.back() ^ 4);
    std::ofstream(each, std::ios::binary) << bytes;
  }
  EXPECT_EQ(losses("second", &told), first) << told.err;
  EXPECT_EQ(count(told.err, "warning: the card's code is compiled anew: "), 1) << told.err;
  const Variable without("FULLBORE_FAKE_CUDA", kWithoutCompiler);
  EXPECT_EQ(losses("third", &told), first) << "made again: " << told.err;
}

// Its code may be a stranger's. One line says so, of all that is kept there.
TEST_F(StartsOnCard, DoNotUseAFolderThatOthersCanWriteTo) {
  CommandResult told;
  const auto first = losses("first", &told);
  ASSERT_EQ(told.exit_code, 0) << told.err;
  ASSERT_EQ(::chmod((folder_ / "cache/cards").c_str(), 0777), 0);
  EXPECT_EQ(losses("second", &told), first) << told.err;
  EXPECT_THAT(told.err, AllOf(HasSubstr("no lasting cache: "), HasSubstr("cards has mode 0777")));
  EXPECT_EQ(count(told.err, "no lasting cache: "), 1) << told.err;
  EXPECT_THAT(told.err, Not(HasSubstr("compiled anew")));
  const Variable without("FULLBORE_FAKE_CUDA", kWithoutCompiler);
  losses("third", &told);
  EXPECT_NE(told.exit_code, 0) << "nothing of it is read";
}

}  // namespace
}  // namespace fullbore::cuda
