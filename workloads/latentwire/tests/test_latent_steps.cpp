// Training steps through frozen models, as the device runs them.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "fullbore/app/job_options.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/runtime/program.h"
#include "fullbore/train/step_function.h"
#include "tests/support/device.h"
#include "tests/support/scratch_folder.h"
#include "workloads/latentwire/corpus_tokenizer.h"
#include "workloads/latentwire/latent_job.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/prompt_batches.h"
#include "workloads/latentwire/teacher_cache.h"

namespace fullbore::latentwire {
namespace {

using testing_support::cpu_device;

constexpr const char* kBoth =
    R"({"receivers": [{"name": "bpe", "kind": "bpe"}, {"name": "bytes", "kind": "bytes"}]})";
constexpr const char* kOne = R"({"receivers": [{"name": "bpe", "kind": "bpe"}]})";

Config config_of(const std::string& rest) {
  return parse_config(
      "{model: {name: latentwire}, wire: {slots: 2, own_slots: 1, width: 16, layers: 1, heads: 2}, "
      "optim: {schedule: constant, warmup_steps: 0, learning_rate: 1e-3}, train: {batch_size: 4}" +
          rest + "}",
      "x");
}

/// Steps with nothing of a run around them; receivers have random weights.
class Steps {
 public:
  explicit Steps(const Config& config, const char* receivers = kOne, int threads = 1,
                 int64_t padding = 0)
      : receivers_(
            std::make_shared<const std::vector<Receiver>>(recorded_receivers(receivers, config))),
        source_(attribute_prompts(123, 0, caches_teacher(config) ? 20 : 1000)),
        extents_(extents(config, padding)),
        traced_(trace_training_step(
            latent_loss(config, receivers_),
            PromptBatches::fields_of(*receivers_, config.train.batch_size, extents_),
            training_options(config).optimizer, microbatches(config))),
        state_(initial_state(traced_, 1, cpu_device(threads))),
        program_(Program::compile(traced_.graph, state_, compile_options(config))),
        batches_(
            source_, receivers_,
            {.batch = config.train.batch_size,
             .extents = extents_,
             .step = [config](
                         uint64_t step) { return prompt_step(config, static_cast<int64_t>(step)); },
             .teacher = teacher(config)}) {
    for (const BatchField& field : batches_.fields())
      buffers_.push_back(allocate_tensor_memory(field.type.bytes()));
    for (const TensorMemory& buffer : buffers_) pointers_.push_back(buffer.get());
  }

  double run() {
    batches_.fill(step_++, pointers_);
    const std::vector<const void*> batch(pointers_.begin(), pointers_.end());
    program_.run(batch);
    return scalar("loss");
  }
  double scalar(const std::string& name) const { return program_.scalar(name); }
  const State& state() const { return state_; }
  std::map<std::string, std::vector<std::byte>> entries(Role role) const {
    std::map<std::string, std::vector<std::byte>> all;
    for (const StateEntry& entry : state_.entries())
      if (entry.role == role) all[entry.name] = state_.read<std::byte>(entry.name);
    return all;
  }

 private:
  // As large as any prompt needs, with so many more places for an answer.
  PromptExtents extents(const Config& config, int64_t padding) const {
    PromptExtents extents = prompt_extents(*source_, *receivers_, 512, 12, reads_text(config));
    for (int64_t& each : extents.answers) each += padding;
    for (int64_t& each : extents.prompts) each += padding;
    if (!caches_teacher(config)) return extents;
    for (const int64_t answer : extents.answers)
      extents.teacher.push_back(
          {teacher_form(config, answer).states(), teacher_form(config, answer).places});
    return extents;
  }
  std::shared_ptr<const TeacherCache> teacher(const Config& config) const {
    if (!caches_teacher(config)) return nullptr;
    return std::make_shared<TeacherCache>(config, source_, receivers_, extents_.answers);
  }

  std::shared_ptr<const std::vector<Receiver>> receivers_;
  std::shared_ptr<const PromptSource> source_;
  PromptExtents extents_;
  TracedStep traced_;
  State state_;
  Program program_;
  PromptBatches batches_;
  std::vector<TensorMemory> buffers_;
  std::vector<void*> pointers_;
  uint64_t step_ = 0;
};

// Check 15 of the specification.
TEST(LatentSteps, LeaveFrozenModelsAsTheyAre) {
  Steps steps(config_of(""));
  const auto frozen = steps.entries(Role::frozen);
  const auto trained = steps.entries(Role::parameter);
  EXPECT_TRUE(frozen.contains("receivers.bpe.token_embedding.weight"));
  steps.run();
  steps.run();
  EXPECT_TRUE(steps.entries(Role::frozen) == frozen);
  for (const auto& [name, bytes] : steps.entries(Role::parameter)) {
    EXPECT_TRUE(bytes != trained.at(name)) << name;
    EXPECT_FALSE(name.starts_with("receivers."));
  }
  for (const StateEntry& entry : steps.state().entries())
    if (entry.role == Role::moment) {
      EXPECT_EQ(entry.name.find("receivers."), std::string::npos) << entry.name;
    }
}

// Check 13: any division of a batch gives the same loss and gradient. Every loss that is a sum over rows is on.
TEST(LatentSteps, DivideABatchAsTheyLike) {
  const std::string losses =
      ", loss: {distillation_weight: 1, state_weight: 0.1, slot_weight: 0.1, rms_weight: 0.1, "
      "entropy_weight: 0.1}";
  Steps whole(config_of(losses)), parts(config_of(losses + ", engine: {accumulate: 2}"));
  for (int step = 0; step < 2; ++step) {
    const double loss = whole.run();
    EXPECT_GT(loss, 0.1);
    EXPECT_NEAR(parts.run(), loss, 1e-5 * loss);
    EXPECT_NEAR(parts.scalar("gradient_norm"), whole.scalar("gradient_norm"),
                1e-4 * whole.scalar("gradient_norm"));
    for (const char* name : {"bpe_all", "bpe_early", "bpe_kd", "bpe_states"})
      EXPECT_NEAR(parts.scalar(name), whole.scalar(name), 1e-4 * whole.scalar(name)) << name;
  }
}

// The teacher's states from files: the losses of one that is run in each step. bf16 costs what its rounding does.
TEST(LatentSteps, HaveTheTeacherFromFiles) {
  const testing::ScratchFolder folder;
  const auto config = [&](const char* cache, const char* more = "") {
    return config_of(std::string(", run: {seed: 1}, data: {cache_dir: '") + folder.path() +
                     "'}, loss: {distillation_weight: 1, state_weight: 0.1, teacher_cache: " +
                     cache + "}" + more);
  };
  Steps run(config("off")), whole(config("f32")),
      narrow(config("bf16", ", engine: {accumulate: 2}"));
  for (int step = 0; step < 3; ++step) {
    const double loss = run.run();
    EXPECT_NEAR(whole.run(), loss, 1e-6 * loss);
    narrow.run();
    for (const char* name : {"bpe_kd", "bpe_states"}) {
      EXPECT_GT(run.scalar(name), 1e-4) << name;
      EXPECT_NEAR(whole.scalar(name), run.scalar(name), 1e-6) << name;
      EXPECT_NEAR(narrow.scalar(name), run.scalar(name), 0x1p-8 * run.scalar(name)) << name;
    }
    EXPECT_EQ(whole.scalar("teacher_found"), 0);  // written by this process
  }
  EXPECT_NEAR(whole.scalar("gradient_norm"), run.scalar("gradient_norm"),
              1e-5 * run.scalar("gradient_norm"));
}

// Even steps at first: the latents' losses are scaled, the teacher is silent, the vectors' distance is added. What a pass over
// the text would train is in terms beside the matrices alone.
TEST(LatentSteps, ReadTheTextInTextSteps) {
  const auto config = [](const std::string& more) {
    return config_of(
        ", loss: {distillation_weight: 1, text_warmup: 4, align_tokens: 2, align_weight: 3, "
        "text_step_weight: 0.5}" +
        more);
  };
  const Config frozen = config("");
  const auto receivers =
      std::make_shared<const std::vector<Receiver>>(recorded_receivers(kOne, frozen));
  const PromptExtents extents{64, {4}, {64}};
  EXPECT_EQ(trace_training_step(latent_loss(frozen, receivers),
                                PromptBatches::fields_of(*receivers, 4, extents), {})
                .dead_losses,
            std::vector<std::string>{"bpe_text"});

  Steps steps(config(", conditioning: {rank: 2}, receivers: {calibration: train_stats, gain: 2}"));
  double raw = 0;
  const auto before = steps.entries(Role::parameter);
  const double scales[] = {0.2, 1, 0.6, 1, 1};
  for (int i = 0; i < 5; ++i) {
    const double loss = steps.run(), text = i == 0 || i == 2 ? 1 : 0;
    const auto of = [&](const char* name) { return steps.scalar(std::string("bpe_") + name); };
    raw += of("rms") / 5;
    EXPECT_EQ(steps.scalar("text_step"), text);
    EXPECT_NEAR(steps.scalar("latent_scale"), scales[i], 1e-6);
    EXPECT_GT(of("align"), 1e-5);
    EXPECT_GT(of("kd"), 1e-4);
    const double latent = of("all") + 0.5 * of("first") + 0.5 * of("early") + (1 - text) * of("kd");
    EXPECT_NEAR(loss,
                scales[i] * latent + text * (3 * of("align") + 0.5 * of("text")) +
                    0.05 * std::pow(of("scale") - 1, 2),
                1e-5 * loss)
        << i;
  }
  for (const auto& [name, bytes] : steps.entries(Role::parameter)) {
    EXPECT_TRUE(bytes != before.at(name)) << name;
  }
  // And what calibration=train_stats has counted meanwhile.
  const auto seen = [&](const char* name) {
    return steps.state().read<float>(std::string("training_statistics.bpe.") + name)[0];
  };
  EXPECT_EQ(seen("steps"), 5);
  EXPECT_NEAR(seen("raw"), raw, 1e-5 * raw);
  EXPECT_NEAR(seen("calibrated"), 2 * seen("embeddings"), 1e-5);
  EXPECT_GT(seen("embeddings"), 0.01);
}

// Keys before a row, layers behind a block, terms beside matrices, gists: all of them at once, in both styles of models. Only
// what is drawn for a gist depends on how a batch is divided.
TEST(LatentSteps, TrainWhatTellsModelsMore) {
  const std::string more =
      ", conditioning: {deep_prefix: true, attending_blocks: [1], attending_heads: 2, coprocessor: "
      "4, "
      "rank: 2, adapted_blocks: 1, gist_tokens: 8, gist_dropped: 0}";
  Steps whole(config_of(more), kBoth), parts(config_of(more + ", engine: {accumulate: 2}"), kBoth);
  const auto frozen = whole.entries(Role::frozen), before = whole.entries(Role::parameter);
  for (const char* name :
       {"adapters.bytes.deep_prefix.2.keys.weight", "adapters.bpe.attending.1.gate",
        "adapters.bpe.coprocessor.1.values.weight", "adapters.bytes.low_rank.0.qkv.up",
        "adapters.bpe.gist.queries"})
    EXPECT_TRUE(before.contains(name)) << name;
  double first = 0;
  for (int step = 0; step < 3; ++step) {
    const double loss = whole.run();
    if (step == 0) first = whole.scalar("bpe_gists");
    EXPECT_NEAR(parts.run(), loss, 1e-5 * loss);
    EXPECT_NEAR(parts.scalar("gradient_norm"), whole.scalar("gradient_norm"),
                1e-4 * whole.scalar("gradient_norm"));
  }
  EXPECT_LT(whole.scalar("bpe_gists"), first);
  EXPECT_TRUE(whole.entries(Role::frozen) == frozen);
  for (const auto& [name, bytes] : whole.entries(Role::parameter))
    EXPECT_TRUE(bytes != before.at(name)) << name;
}

// Check 2 in the step: a pass for each of the first K tokens, logits of every place, tiles of the head.
TEST(LatentSteps, AreTheSameOnEveryPath) {
  const std::string losses =
      ", loss: {distillation_weight: 1, state_weight: 0.1, entropy_weight: 0.1, early_tokens: 3, "
      "final_early_tokens: 3, first_autoscale: true}";
  Steps usual(config_of(losses));
  Steps whole(config_of(losses + ", switches: {head_rows: off}"));
  Steps loop(config_of(losses + ", switches: {one_pass: off}"));
  const double loss = usual.run();
  for (Steps* each : {&whole, &loop}) {
    EXPECT_NEAR(each->run(), loss, 1e-6 * loss);
    EXPECT_NEAR(each->scalar("gradient_norm"), usual.scalar("gradient_norm"),
                1e-5 * usual.scalar("gradient_norm"));
    for (const char* name : {"bpe_all", "bpe_first", "bpe_early", "bpe_kd", "bpe_states",
                             "bpe_first_entropy", "bpe_first_accuracy"})
      EXPECT_NEAR(each->scalar(name), usual.scalar(name), 2e-6 * (1 + usual.scalar(name))) << name;
  }
}

// Without a teacher all logits but those of first tokens are made a tile at a time. The first content of some of the answers
// that the model of bytes reads is behind white space.
TEST(LatentSteps, NeedNoLogits) {
  Steps usual(config_of(""), kBoth);
  Steps whole(config_of(", switches: {head_rows: off}"), kBoth);
  const double loss = usual.run();
  EXPECT_NEAR(whole.run(), loss, 1e-6 * loss);
  EXPECT_NEAR(whole.scalar("gradient_norm"), usual.scalar("gradient_norm"),
              1e-5 * usual.scalar("gradient_norm"));
  for (const char* name : {"bpe_all", "bpe_first", "bytes_early", "bytes_first"})
    EXPECT_NEAR(whole.scalar(name), usual.scalar(name), 1e-6 * usual.scalar(name)) << name;
}

// Answers that are padded further: factors behind them are 0.
TEST(LatentSteps, DoNotDependOnPadding) {
  const Config config =
      config_of(", loss: {distillation_weight: 1, state_weight: 0.1, slot_weight: 0.1}");
  Steps usual(config), padded(config, kOne, 1, 5);
  const double loss = usual.run();
  EXPECT_NEAR(padded.run(), loss, 1e-6 * loss);
  EXPECT_NEAR(padded.scalar("gradient_norm"), usual.scalar("gradient_norm"),
              1e-5 * usual.scalar("gradient_norm"));
  EXPECT_GT(padded.scalar("bpe_padding"), usual.scalar("bpe_padding"));
}

// Check 16.
TEST(LatentSteps, HaveTheSameBitsOnAnyNumberOfThreads) {
  const Config config = config_of("");
  Steps one(config, kOne, 1), four(config, kOne, 4);
  for (int step = 0; step < 2; ++step) EXPECT_EQ(one.run(), four.run());
  EXPECT_TRUE(one.entries(Role::parameter) == four.entries(Role::parameter));
}

TEST(LatentSteps, TrainOneWireThroughTwoModels) {
  Steps steps(config_of(""), kBoth, 2);
  steps.run();
  // The mean over receivers and the penalties of both adapters, whose scales are 1.
  EXPECT_NEAR(steps.scalar("loss"),
              (steps.scalar("bpe_all") + 0.5 * steps.scalar("bpe_first") +
               0.5 * steps.scalar("bpe_early") + steps.scalar("bytes_all") +
               0.5 * steps.scalar("bytes_first") + 0.5 * steps.scalar("bytes_early")) /
                  2,
              1e-5);
  EXPECT_NEAR(steps.scalar("bpe_all"), std::log(512), 1);
  EXPECT_NEAR(steps.scalar("bytes_all"), std::log(259), 1);
}

// What a batch holds: rows of one prompt in every tokenizer, and factors of the whole batch.
TEST(PromptBatches, HoldPromptsAsEncoderAndModelsReadThem) {
  const Config config = config_of("");
  const auto receivers =
      std::make_shared<const std::vector<Receiver>>(recorded_receivers(kBoth, config));
  const auto source = attribute_prompts(42, 0, 8);
  const PromptExtents extents = prompt_extents(*source, *receivers, 512, 12, true);
  const PromptBatches batches(source, receivers, {.batch = 2, .extents = extents});
  std::vector<std::vector<int32_t>> memory;
  std::vector<void*> pointers;
  for (const BatchField& field : batches.fields())
    memory.emplace_back(static_cast<size_t>((field.type.bytes() + 3) / 4));
  for (auto& each : memory) pointers.push_back(each.data());
  batches.fill(0, pointers);
  const auto bytes = [&](size_t begin, size_t count) {
    std::string text;
    for (size_t i = begin; i < begin + count; ++i) text += static_cast<char>(memory[0][i]);
    return text;
  };
  const Prompt first = source->prompt(0);
  EXPECT_EQ(bytes(0, static_cast<size_t>(memory[1][0])), first.question + first.context);
  for (size_t r = 0; r < 2; ++r) {
    const Receiver& receiver = (*receivers)[r];
    const size_t at = PromptFields::of_receiver(r, true);
    const auto places = static_cast<size_t>(extents.prompts[r]);
    const auto length = static_cast<size_t>(memory[at + PromptFields::kPromptLengths][0]);
    const std::vector<int32_t>& row = memory[at + PromptFields::kPrompt];
    // BOS has no text.
    EXPECT_EQ(row[0], CorpusTokenizer::kBegin);
    std::string text;
    for (size_t i = 0; i < length; ++i) receiver.tokenizer->append_bytes(row[i], text);
    EXPECT_EQ(text, first.source() + "Answer:");
    ASSERT_LT(length, places);
    std::vector<int32_t> answer = receiver.answer_ids("42", "row");
    EXPECT_EQ(memory[at][0], answer[0]);
    EXPECT_EQ(row[length], answer[0]);
    EXPECT_EQ(memory[at][answer.size()], -1);
    EXPECT_EQ(receiver.answer_text(answer), "42");
  }
}

// A batch has the shape of the smallest bucket that holds its answers, and says the same in it.
TEST(PromptBatches, AreAsLongAsTheirAnswers) {
  const Config config = config_of("");
  const auto receivers =
      std::make_shared<const std::vector<Receiver>>(recorded_receivers(kBoth, config));
  const auto source = attribute_prompts(42, 0, 40);
  const PromptExtents extents = prompt_extents(*source, *receivers, 512, 12, true);
  const std::vector<PromptExtents> buckets = answer_buckets(extents);
  ASSERT_EQ(buckets.size(), 4U);
  EXPECT_EQ(buckets.back().answers, extents.answers);
  const PromptBatches whole(source, receivers, {.batch = 2, .extents = extents, .seed = 1});
  const PromptBatches cut(
      source, receivers,
      {.batch = 2, .extents = extents, .seed = 1, .buckets = buckets, .cache_bytes = 1 << 20});
  const auto filled = [](const PromptBatches& batches, uint64_t position) {
    std::vector<std::vector<int32_t>> memory;
    std::vector<void*> pointers;
    const std::vector<BatchField> fields = batches.shapes()[batches.shape_at(position)];
    for (const BatchField& field : fields)
      memory.emplace_back(static_cast<size_t>((field.type.bytes() + 3) / 4));
    for (auto& each : memory) pointers.push_back(each.data());
    batches.fill(position, pointers);
    return memory;
  };
  std::set<size_t> met;
  for (uint64_t position = 0; position < 40; ++position) {
    met.insert(cut.shape_at(position));
    const auto a = filled(whole, position), b = filled(cut, position);
    EXPECT_EQ(a[PromptFields::kUnits], b[PromptFields::kUnits]);
    for (size_t r = 0; r < 2; ++r) {
      const size_t at = PromptFields::of_receiver(r, true);
      const auto all = static_cast<size_t>(extents.answers[r]);
      const auto kept = static_cast<size_t>(buckets[cut.shape_at(position)].answers[r]);
      for (size_t row = 0; row < 2; ++row)
        for (size_t t = 0; t < all; ++t) {
          const int32_t token = a[at][row * all + t];
          EXPECT_EQ(t < kept ? b[at][row * kept + t] : -1, token);
          for (size_t kind = 0; kind < 3 && t < kept; ++kind)
            EXPECT_EQ(b[at + PromptFields::kFactors][(3 * row + kind) * kept + t],
                      a[at + PromptFields::kFactors][(3 * row + kind) * all + t]);
        }
      EXPECT_EQ(a[at + PromptFields::kPromptLengths], b[at + PromptFields::kPromptLengths]);
    }
  }
  EXPECT_GT(met.size(), 1U);
  // In groups each prompt comes as often, and batches are shorter.
  const PromptBatches grouped(
      source, receivers,
      {.batch = 2, .extents = extents, .seed = 1, .buckets = buckets, .grouped = 5});
  std::map<std::vector<int32_t>, int> seen, seen_in_groups;
  size_t lengths = 0, lengths_in_groups = 0;
  for (uint64_t position = 0; position < 20; ++position) {
    lengths += cut.shape_at(position);
    lengths_in_groups += grouped.shape_at(position);
    const auto a = filled(cut, position), b = filled(grouped, position);
    const auto bytes = static_cast<std::ptrdiff_t>(extents.units);
    for (const std::ptrdiff_t row : {0, 1}) {
      const auto of = [&](const std::vector<int32_t>& all) {
        return std::vector<int32_t>(all.begin() + row * bytes, all.begin() + (row + 1) * bytes);
      };
      ++seen[of(a[PromptFields::kUnits])];
      ++seen_in_groups[of(b[PromptFields::kUnits])];
    }
  }
  EXPECT_TRUE(seen == seen_in_groups);
  EXPECT_LT(lengths_in_groups, lengths);
  // Two epochs: each prompt's answers and texts are tokenized in the first alone.
  EXPECT_EQ(cut.cache_figures().made, 40 * 4);
  EXPECT_GT(cut.cache_figures().found, 40 * 4);
}

TEST(PromptSource, CutsTheMiddleOfAContextAndKeepsTheQuestion) {
  const Prompt prompt{"id", "Context: abcdefghij\n", "Question: why?\n", {"x"}};
  const EncoderText whole = encoder_text(prompt, true, 64);
  EXPECT_EQ(whole.bytes, prompt.question + prompt.context);
  EXPECT_FALSE(whole.cut);
  const EncoderText cut = encoder_text(prompt, true, 27);
  EXPECT_EQ(cut.bytes, "Question: why?\nContexfghij\n");
  EXPECT_TRUE(cut.cut);
  EXPECT_EQ(encoder_text(prompt, false, 27).bytes, "Contexfghij\nQuestion: why?\n");
  EXPECT_EQ(encoder_text(prompt, false, 4).bytes, "Ques");
}

// The bounds by which batches are shaped: no prompt needs more.
TEST(PromptSource, KnowsItsLongestPrompt) {
  const auto source = attribute_prompts(999, 0, 3000);
  const auto bytes = [](const std::string& text) { return std::ssize(text); };
  const int64_t most = source->most_in_source(bytes), answer = source->most_in_answer(bytes);
  int64_t longest = 0, longest_answer = 0;
  for (int64_t i = 0; i < source->size(); ++i) {
    const Prompt prompt = source->prompt(i);
    longest = std::max(longest, bytes(prompt.source()));
    longest_answer = std::max(longest_answer, bytes(" " + prompt.answers[0]));
  }
  EXPECT_LE(longest, most);
  EXPECT_GE(longest, most - 16);
  EXPECT_EQ(longest_answer, answer);
}

}  // namespace
}  // namespace fullbore::latentwire
