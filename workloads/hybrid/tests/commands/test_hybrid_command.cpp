#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "fullbore/ir/print.h"
#include "fullbore/text/text_batches.h"
#include "tests/support/attribution_test.h"
#include "tests/support/detail_test.h"
#include "tests/support/job.h"
#include "tests/support/paths.h"
#include "workloads/hybrid/hybrid_keys.h"
#include "workloads/hybrid/hybrid_language.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHybrid = R"(run: {name: tiny, seed: 7}
data: {path: text.txt, validation_fraction: 0.2}
model: {name: hybrid, layers: 2, heads: 2, width: 16, context: 16, mix_rank: 4, decay_rank: 4, inner: 32,
  mamba_heads: 2, states: 8, hidden: 32, chunk: 16}
optim: {learning_rate: 0.01, warmup_steps: 3, warmup_from_zero: true}
train: {steps: 20, batch_size: 4, eval_interval: 10, eval_batches: 3, checkpoint_interval: 10, sample_characters: 0}
engine: {threads: 2}
log: {interval: 5}
)";

class HybridCommand : public JobTest {
 protected:
  HybridCommand() { folder_.put("hybrid.yaml", kHybrid); }
  CommandResult run(const std::string& command, std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {command, "hybrid.yaml"});
    return this->command(more);
  }
};

TEST_F(HybridCommand, TrainsAndIsEvaluated) {
  const CommandResult trained = run("train", {"run.dir=run", "log.diagnostics=true"});
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  double first = 0, last = 0;
  bool compared = false, examined = false;
  for (const nlohmann::json& record : metrics("run")) {
    if (record.contains("loss")) (first == 0 ? first : last) = record["loss"];
    for (const auto& [key, value] : record.items()) {
      compared = compared || key == "rwkv_to_mamba_gradient";
      examined = examined || key.find("variance/rwkv") != std::string::npos;
    }
  }
  EXPECT_TRUE(compared);
  EXPECT_TRUE(examined);
  EXPECT_LT(last, first);
  const CommandResult evaluated = command({"eval", "run/checkpoints/last", "--json"});
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  const double loss = nlohmann::json::parse(evaluated.out)["loss"];
  EXPECT_TRUE(std::isfinite(loss));
  const CommandResult again =
      run("train", {"run.dir=again", "train.eval_interval=0", "log.interval=1"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(
      nlohmann::json::parse(command({"eval", "again/checkpoints/last", "--json"}).out)["loss"],
      loss)
      << "how often one looks, and at what, changes what is learned";
}

TEST_F(HybridCommand, ResumesToTheSameBits) {
  ASSERT_EQ(run("train", {"run.dir=whole"}).exit_code, 0);
  ASSERT_EQ(run("train", {"run.dir=parts", "train.steps=10", "optim.schedule=constant"}).exit_code,
            0);
  ASSERT_EQ(run("train", {"run.dir=whole2", "optim.schedule=constant"}).exit_code, 0);
  ASSERT_EQ(run("train", {"run.dir=parts", "optim.schedule=constant", "--resume"}).exit_code, 0);
  const auto loss = [&](const char* folder) {
    return nlohmann::json::parse(
        command({"eval", std::string(folder) + "/checkpoints/last", "--json"}).out)["loss"];
  };
  EXPECT_EQ(loss("parts"), loss("whole2"));
  EXPECT_NE(loss("parts"), loss("whole"));
}

TEST_F(HybridCommand, IsExaminedOnHeldOutText) {
  std::string text = read("text.txt");
  for (int i = 0; i < 4; ++i) text += text;  // 512 characters ten times over are held out
  folder_.put("text.txt", text);
  ASSERT_EQ(run("train", {"run.dir=run"}).exit_code, 0);
  const CommandResult result =
      command({"eval", "run", "--diagnostics", "--batches", "20", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json found = nlohmann::json::parse(result.out)["diagnostics"];
  EXPECT_EQ(found["state/rwkv/finite"]["band"], "OK");
  EXPECT_EQ(found["state/mamba/same_for_same_text"]["band"], "OK");
  for (const char* name :
       {"layers.1.variance/mamba", "layers.0.gain/rwkv", "channel_entropy", "deviation/rwkv",
        "gradient_norm/rwkv_by_mamba", "contribution/rwkv", "contribution/mamba_state",
        "perplexity/512_by_64", "state/rwkv/growth", "state/mamba/norm_at_512",
        "state/mamba/top_5_singular", "state/rwkv/low_by_high_frequencies", "information_flow"}) {
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_TRUE(found[name]["value"].is_number()) << name;
  }
  EXPECT_GT(found["contribution/rwkv"]["value"], 0);
  // One branch left out by its name is the one that the table tells of.
  for (const std::string branch : {"rwkv", "mamba"}) {
    const CommandResult without =
        command({"eval", "run", "--ablate", branch, "--batches", "20", "--json"});
    const nlohmann::json ablated = nlohmann::json::parse(without.out)["without_" + branch];
    EXPECT_DOUBLE_EQ(ablated["loss_difference"], found["contribution/" + branch]["value"])
        << branch;
  }
  const CommandResult table = command({"eval", "run", "--diagnostics", "--batches", "20"});
  EXPECT_THAT(table.out, HasSubstr("information_flow"));
}

TEST_F(HybridCommand, ShortTextsAndOtherModelsAreNotExamined) {
  ASSERT_EQ(run("train", {"run.dir=run", "train.steps=1"}).exit_code, 0);
  const CommandResult refused = command({"eval", "run", "--diagnostics"});
  EXPECT_EQ(refused.exit_code, 3);
  EXPECT_THAT(refused.err, HasSubstr("of 513 tokens; 10 are needed to examine states"));
  testing::use_command("fullbore_tiny");  // it has another model, whichever workloads there are
  ASSERT_EQ(train({"run.dir=other", "train.steps=1", "model.name=tiny"}).exit_code, 0);
  const CommandResult other = command({"eval", "other", "--diagnostics"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("--diagnostics examine a hybrid language model"));
}

TEST_F(HybridCommand, IsPlannedBenchedProfiledAndDiagnosed) {
  const CommandResult plan = run("plan", {"--vocabulary", "97"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("hybrid: "));
  const CommandResult parameters = run("plan", {"--vocabulary", "97", "--parameters"});
  ASSERT_EQ(parameters.exit_code, 0) << parameters.err;
  EXPECT_THAT(parameters.out, HasSubstr("layers.1.mamba_gain"));
  const CommandResult bench = run("bench", {"--vocabulary", "20", "--steps", "3", "--rounds", "3"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  const CommandResult profile =
      run("profile", {"--vocabulary", "20", "--active", "1", "--repeat", "1"});
  EXPECT_EQ(profile.exit_code, 0) << profile.err;
  testing::expect_all_time_attributed(folder_, {"hybrid.yaml"});
  testing::expect_detail_is_not_computed(folder_, {"hybrid.yaml", "log.diagnostics=true"});
}

TEST_F(HybridCommand, IsNotExportedAsWhatItIsNot) {
  ASSERT_EQ(run("train", {"run.dir=run", "train.steps=1"}).exit_code, 0);
  const CommandResult result = command({"export", "run", "-o", "exported"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("transformers has no class; its weights are in "));
}

TEST_F(HybridCommand, LearnsDocumentsApart) {
  const std::string documents = put_documents();
  for (const char* batching : {"packed", "buckets"}) {
    const CommandResult result =
        run("train", {"data.path=" + documents, std::string("data.batching=") + batching,
                      std::string("run.dir=") + batching});
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
}

TEST_F(HybridCommand, SizesThatDoNotFitAreNamed) {
  const auto refusal = [&](const char* setting) {
    const CommandResult result = run("train", {setting});
    EXPECT_EQ(result.exit_code, 2);
    return result.err;
  };
  EXPECT_THAT(refusal("model.inner=33"),
              HasSubstr("model.inner 33 (command line) is not a multiple of model.mamba_heads"));
  EXPECT_THAT(refusal("model.width=17"), HasSubstr("is not a multiple of model.heads"));
  EXPECT_THAT(refusal("model.fusion=gain"), HasSubstr("Did you mean 'gains'?"));
  EXPECT_THAT(refusal("model.gate_start=1"), HasSubstr("model.gate_start"));
}

int64_t parameters_of(const Config& config, int64_t tokens, const std::string& part = "") {
  int64_t count = 0;
  const TracedStep step = trace_training_step(model_loss(config, tokens), batch_fields(config),
                                              optimizer_options(config));
  for (const StateEntry& entry : state_entries(step.graph))
    if (entry.role == Role::parameter && entry.name.find(part) != std::string::npos)
      count += entry.type.elements();
  return count;
}

TEST(HybridConfigs, LookingAtBranchesCostsTrainingNothing) {
  const auto graphs = [](bool diagnostics) {
    Config config = load_config(testing::source_folder() + "/configs/hybrid-p2.yaml");
    hybrid_keys(config).diagnostics = diagnostics;
    const LossFunction loss = model_loss(config, 97);
    const std::vector<BatchField> fields = batch_fields(config);
    return std::pair(print(trace_training_step(loss, fields, optimizer_options(config)).graph),
                     print(trace_evaluation(loss, fields).graph));
  };
  const auto off = graphs(false), on = graphs(true);
  EXPECT_EQ(on.first, off.first);
  EXPECT_GT(on.second.size(), off.second.size());
}

TEST(HybridConfigs, AreTheRecordedModels) {
  const auto config = [](const char* name) {
    return load_config(testing::source_folder() + "/configs/" + name);
  };
  EXPECT_EQ(parameters_of(config("hybrid-p2.yaml"), 97), 3130720);
  EXPECT_EQ(parameters_of(config("hybrid-p1.yaml"), 97), 3585376);
  EXPECT_EQ(parameters_of(config("hybrid-8m.yaml"), 97), 7931416);
  EXPECT_EQ(parameters_of(config("hybrid-p1.yaml"), 97, ".rwkv"), 1581056);
  EXPECT_EQ(parameters_of(config("hybrid-p1.yaml"), 97, ".mamba"), 941152);
}

}  // namespace
}  // namespace fullbore
