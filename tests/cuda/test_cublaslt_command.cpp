// engine.cublaslt by the command: a run with the library and without, and what `doctor` says of it.
#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cuda/fake_card.h"
#include "tests/support/job.h"

namespace fullbore::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const bool kTiny = use_tiny_model();
constexpr const char* kNowhere = "/nowhere/libcublasLt.so.13";

int occurrences(const std::string& text, const std::string& of) {
  int count = 0;
  for (size_t at = text.find(of); at != std::string::npos; at = text.find(of, at + 1)) ++count;
  return count;
}

class CublasLtCommand : public JobTest {
 protected:
  /// Those of training, and of evaluations.
  std::vector<double> losses_of(const std::string& name, std::vector<std::string> settings) {
    settings.insert(settings.end(), {"train.steps=4", "train.batch_size=2", "train.eval_interval=2",
                                     "log.interval=1", "run.name=" + name});
    const CommandResult done = train(settings);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    told_ = done.out + done.err;
    std::vector<double> losses;
    for (const nlohmann::json& record : metrics("runs/" + name + "-1"))
      for (const char* const key : {"loss", "validation_loss"})
        if (record.contains(key)) losses.push_back(record[key].get<double>());
    return losses;
  }
  std::string told_;

 private:
  Variable driver_{"FULLBORE_CUDA_DRIVER", fake_driver()};
  Variable cublaslt_{"FULLBORE_CUBLASLT", fake_driver()};
  Variable card_{"FULLBORE_FAKE_CUDA", "multiprocessors=1,seed=3"};
};

TEST_F(CublasLtCommand, TrainsWithTheLibraryAndWithout) {
  ASSERT_TRUE(kTiny);
  const std::vector<double> own = losses_of("own", {"engine.device=cuda"});
  const std::vector<double> library =
      losses_of("library", {"engine.device=cuda", "engine.cublaslt=true"});
  EXPECT_THAT(told_, Not(HasSubstr("engine.cublaslt")));
  ASSERT_EQ(library.size(), own.size());
  ASSERT_GE(own.size(), 7U);
  EXPECT_NE(library, own);
  for (size_t i = 0; i < own.size(); ++i)
    EXPECT_NEAR(library[i], own[i], 1e-5 * std::abs(own[i])) << i;
  const Variable nowhere("FULLBORE_CUBLASLT", kNowhere);
  EXPECT_EQ(losses_of("without", {"engine.device=cuda", "engine.cublaslt=true"}), own);
  EXPECT_EQ(occurrences(told_, "engine.cublaslt: the card's own kernels make all matmuls: " +
                                   std::string(kNowhere)),
            1)
      << told_;
}

TEST_F(CublasLtCommand, SaysOnAProcessorThatItIsForCards) {
  losses_of("processor", {"engine.device=cpu", "engine.cublaslt=true"});
  EXPECT_EQ(occurrences(told_, "engine.cublaslt: it is for NVIDIA's cards"), 1) << told_;
  const CommandResult evaluated = command({"eval", "runs/processor-1"});
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(occurrences(evaluated.err, "fullbore: warning: engine.cublaslt"), 1) << evaluated.err;
}

TEST_F(CublasLtCommand, IsToldByTheDoctor) {
  const CommandResult told = command({"doctor"});
  EXPECT_THAT(told.out, HasSubstr("cuBLASLt     13.0.2  matmuls of a card"));
  const CommandResult json = command({"doctor", "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)["libraries"]["cuBLASLt"], "13.0.2");
  const Variable old("FULLBORE_FAKE_CUDA", "multiprocessors=1,lt_version=111103");
  EXPECT_THAT(command({"doctor"}).out,
              AllOf(HasSubstr("cuBLASLt     none for matmuls of a card"),
                    HasSubstr("is cuBLASLt 11.11.3; 12 and 13 are known")));
  const nlohmann::json unusable = nlohmann::json::parse(command({"doctor", "--json"}).out);
  EXPECT_FALSE(unusable["libraries"].contains("cuBLASLt"));
  EXPECT_THAT(unusable["unusable_libraries"]["cuBLASLt"].get<std::string>(), HasSubstr("11.11.3"));
}

}  // namespace
}  // namespace fullbore::cuda
