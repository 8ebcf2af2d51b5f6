#include "tests/support/job.h"

#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <sstream>
#include <utility>

#include "fullbore/base/files.h"
#include "fullbore/base/philox.h"
#include "tests/support/paths.h"

namespace fullbore {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = R"(run: {name: tiny, seed: 7}
data: {validation_fraction: 0.2}
model: {@layers: 1, heads: 2, width: 16, context: 8, dropout: 0.1}
optim: {learning_rate: 0.01, warmup_steps: 3}
train: {steps: 20, batch_size: 4, eval_interval: 5, eval_batches: 3, checkpoint_interval: 5, sample_characters: 0}
engine: {threads: 2}
log: {interval: 2}
)";

/// What job.yaml has before the sizes of its model: "name: mine, ", or nothing.
std::string& model_name() {
  static std::string name;
  return name;
}

/// Sentences of five words, so that there is something to learn.
std::string make_text() {
  static const char* const kWords[] = {"the", "sea", "is", "calm", "tonight"};
  PhiloxStream draws(3);
  std::string text;
  while (text.size() < 4000) {
    for (int i = 0; i < 5; ++i) text += std::string(kWords[draws.below(5)]) + (i < 4 ? " " : ".\n");
  }
  return text;
}

/// One cache for all tests of the process: kernels are compiled and peaks measured once.
class SharedCache : public ::testing::Environment {
 public:
  void SetUp() override {
    folder_ = fmt::format("{}fullbore_apps_cache.{}", ::testing::TempDir(), getpid());
    fs::create_directories(folder_);
    setenv("FULLBORE_CACHE", folder_.c_str(), 1);
    setenv("XDG_STATE_HOME", (folder_ + "/state").c_str(), 1);  // the key of the cache
    setenv("LC_ALL", "C", 1);
    run_command(folder_, {"doctor"});
  }
  void TearDown() override { fs::remove_all(folder_); }

 private:
  std::string folder_;
};
const auto* const cache = ::testing::AddGlobalTestEnvironment(new SharedCache);

}  // namespace

JobTest::JobTest() {
  std::string config = kConfig;
  config.replace(config.find('@'), 1, model_name());
  folder_.put("job.yaml", config);
  folder_.put("text.txt", make_text());
}

CommandResult JobTest::train(const std::vector<std::string>& more,
                             const std::function<void(pid_t)>& while_running) const {
  std::vector<std::string> arguments = {"train", "job.yaml", "data.path=text.txt"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_command(folder_.path(), arguments, while_running);
}

std::string JobTest::read(const std::string& name) const {
  return read_file(folder_ / name).value();
}

std::string JobTest::put_documents() const {
  static const char* const kWords[] = {"sea", "is", "calm"};
  PhiloxStream draws(5);
  std::string lines;
  for (int i = 0; i < 150; ++i) {
    std::string text;
    for (uint64_t n = 1 + draws.below(7); n > 0; --n)
      text += std::string(kWords[draws.below(3)]) + (n > 1 ? " " : "");
    lines += nlohmann::json({{"text", draws.below(10) == 0 ? "c" : text}}).dump() + "\n";
  }
  folder_.put("documents.jsonl", lines);
  return "documents.jsonl";
}

nlohmann::json JobTest::summary(const std::string& run) const {
  return nlohmann::json::parse(read(run + "/summary.json"));
}

std::vector<nlohmann::json> JobTest::metrics(const std::string& run) const {
  std::vector<nlohmann::json> records;
  std::istringstream lines(read(run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json record = nlohmann::json::parse(line);
    if (record["kind"] != "phases") records.push_back(std::move(record));  // written by the clock
  }
  return records;
}

bool use_tiny_model() {
  testing::use_command("fullbore_tiny");
  model_name() = "name: tiny, ";
  return true;
}

std::vector<nlohmann::json> without_times(std::vector<nlohmann::json> metrics) {
  for (nlohmann::json& record : metrics)
    for (const char* key : {"seconds", "tokens_per_second", "samples_per_second", "utilisation",
                            "data_wait_share", "xxhash64"})
      record.erase(key);
  return metrics;
}

}  // namespace fullbore
