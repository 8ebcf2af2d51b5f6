#include "workloads/chess/policy_batches.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "fullbore/app/job_options.h"
#include "fullbore/base/check.h"
#include "fullbore/base/philox.h"
#include "fullbore/data/permutation.h"

namespace fullbore::chess {
namespace {

constexpr const char* kControllerEntry = "policy.penalty";
// Rounds of other prompts in place of groups of equal rewards, the first one included.
constexpr uint64_t kMostRounds = 5;

/// The number behind the colon; none: `otherwise`. The name was checked.
int64_t depth_of(const std::string& truth, int64_t otherwise) {
  const size_t colon = truth.find(':');
  return colon == std::string::npos ? otherwise : std::stoll(truth.substr(colon + 1));
}

bool is_by(const std::string& truth, const std::string& name) {
  return truth == name || truth.starts_with(name + ":");
}

std::unique_ptr<MoveRanker> open_search(const ChessKeys& keys, int threads) {
  if (!is_by(keys.reward.truth, "search")) return nullptr;
  return open_ranker(keys.reward.truth, {}, threads);
}

std::unique_ptr<EnginePool> open_engines(const Config& config) {
  const ChessKeys& keys = chess_keys(config);
  if (!is_by(keys.reward.truth, "stockfish")) return nullptr;
  EngineOptions engine;
  engine.path = keys.chess.engine;
  engine.answer_seconds = keys.chess.engine_seconds;
  engine.depth = depth_of(keys.reward.truth, engine.depth);
  engine.cache_path = analysis_cache_file(config);
  return std::make_unique<EnginePool>(engine);
}

}  // namespace

PolicyBatches::PolicyBatches(const Config& config, std::shared_ptr<const ChessData> data,
                             PolicyModel model)
    : keys_(chess_keys(config)),
      sizes_(policy_rollout_sizes(config, data->tokens.vocabulary())),
      seed_(static_cast<uint64_t>(config.run.seed)),
      options_(policy_options(config)),
      data_(std::move(data)),
      model_(std::move(model)),
      layout_(policy_layout(config)),
      shapes_(policy_shapes(config)),
      reward_options_(reward_options(config)),
      search_(open_search(keys_, worker_count(config))),
      engines_(open_engines(config)),
      truths_(reward_options_, engines_.get(), short_format().eval_limit) {
  for (const BatchField& field : shapes_.back()) {
    buffers_.emplace_back();
    buffers_.back().lines.resize(static_cast<size_t>(field.type.bytes() + 63) / 64);
  }
  for (Field& field : buffers_) pointers_.push_back(field.lines.data());
}

Graph PolicyBatches::scoring_graph(size_t shape, bool reference) const {
  return policy_scoring(model_.hidden, shapes_[shape], data_->tokens.vocabulary(), reference);
}

std::vector<StateEntry> PolicyBatches::state_entries() const {
  std::vector<StateEntry> entries;
  for (const StateEntry& entry : fullbore::state_entries(Rollout::trace(model_.decode, sizes_)))
    if (entry.role == Role::recurrent) entries.push_back(entry);
  if (options_.has_reference)
    for (const StateEntry& entry : fullbore::state_entries(scoring_graph(0, true)))
      entries.push_back(entry);
  entries.push_back({kControllerEntry, Role::control, {DType::f64, {PenaltyController::kNumbers}}});
  return entries;
}

void PolicyBatches::begin(State& state) const {
  const std::string prefix = std::string(kReferenceScope) + ".";
  for (size_t i = 0; i < state.entries().size(); ++i) {
    const StateEntry& entry = state.entries()[i];
    if (entry.role != Role::frozen || !entry.name.starts_with(prefix)) continue;
    const int policy = state.find(entry.name.substr(prefix.size()));
    FB_CHECK(policy >= 0, "the reference has '{}', the policy has not", entry.name);
    state.copy(policy, static_cast<int>(i));
    state.was_written(static_cast<int>(i));
  }
  state.write(kControllerEntry, PenaltyController(options_.penalty).numbers());
}

void PolicyBatches::prepare(State& state, const CompileOptions& options,
                            std::shared_ptr<Arena> arena) {
  state_ = &state;
  rollout_.emplace(model_.decode, sizes_, state, options);
  for (size_t shape = 0; shape < shapes_.size(); ++shape) {
    if (options_.has_reference)
      reference_.push_back(
          Program::compile(scoring_graph(shape, true), state, options, nullptr, arena));
    if (keys_.grpo.recompute_old)
      scoring_.push_back(
          Program::compile(scoring_graph(shape, false), state, options, nullptr, arena));
  }
}

std::vector<const Plan*> PolicyBatches::plans() const {
  std::vector<const Plan*> plans;
  for (const auto* programs : {&reference_, &scoring_})
    for (const Program& program : *programs) plans.push_back(&program.plan());
  return plans;
}

bool PolicyBatches::resumes_at(uint64_t position) const {
  return position % static_cast<uint64_t>(keys_.grpo.inner_epochs) == 0;
}

// Each record once, in an order of its own, in every epoch.
uint32_t PolicyBatches::record_at(uint64_t index) const {
  const uint64_t count = data_->training.size();
  return static_cast<uint32_t>(Permutation(count, seed_, index / count)(index % count));
}

std::vector<PendingTruth> PolicyBatches::begin_truths(const std::vector<uint32_t>& records) {
  std::vector<ChessRecord> asked;
  std::vector<std::string> fens;
  for (const uint32_t record : records) {
    asked.push_back(data_->training.records[record]);
    fens.push_back(asked.back().fen);
    if (keys_.reward.truth == "rules") asked.back().top.clear();
  }
  if (search_) {
    const std::vector<EngineAnalysis> analyses = search_->rank(fens);
    for (size_t i = 0; i < asked.size(); ++i)
      if (asked[i].task == ChessTask::policy)
        asked[i].top = EngineAnalysis(analyses[i]).take_or_throw();
  }
  std::vector<PendingTruth> truths;
  for (const ChessRecord& record : asked) truths.push_back(truths_.begin(record));
  return truths;
}

PolicyBatches::Groups PolicyBatches::complete(uint64_t round, uint64_t first, size_t prompts) {
  clock_.enter("prompts");
  const auto samples = static_cast<size_t>(keys_.rollout.samples);
  Groups groups;
  std::vector<RolloutPrompt> asked;
  for (size_t i = 0; i < prompts; ++i) {
    const uint32_t record = record_at(first + i);
    groups.records.push_back(record);
    const bool policy = data_->training.records[record].task == ChessTask::policy;
    asked.push_back(
        {.tokens = data_->training.tokens[record].prompt,
         .samples = keys_.rollout.samples,
         .max_new_tokens = policy ? keys_.rollout.policy_tokens : keys_.rollout.arbiter_tokens,
         .index = static_cast<uint32_t>(first + i)});
  }
  groups.completions.resize(prompts * samples);
  rewards_.begin(groups.completions.size(), begin_truths(groups.records));
  const RolloutOptions options{.sampling = {.temperature = keys_.rollout.temperature,
                                            .top_k = keys_.rollout.top_k,
                                            .top_p = keys_.rollout.top_p},
                               .stop_tokens = {data_->tokens.end()},
                               .key = seed_,
                               .step = static_cast<uint32_t>(round)};
  clock_.enter("decode");
  const RolloutCounts counts = rollout_->run(asked, options, [&](RolloutRow&& row) {
    const size_t place = row.prompt * samples + row.sample;
    rewards_.add(place, row.prompt, data_->tokens.text(row.tokens));
    groups.completions[place].row = std::move(row);
  });
  generated_tokens_ += counts.generated_tokens;
  clock_.give("prefill", counts.prefill_seconds);
  clock_.enter("rewards");
  const std::vector<RecordScore> scores = rewards_.take();
  for (size_t i = 0; i < scores.size(); ++i) groups.completions[i].score = scores[i];
  reward(groups, round);
  return groups;
}

void PolicyBatches::reward(Groups& groups, uint64_t round) const {
  const auto samples = static_cast<size_t>(keys_.rollout.samples);
  for (StepCompletion& each : groups.completions) {
    const bool is_cut = each.row.reason == FinishReason::length;
    each.counts = !(options_.masks_overlong && is_cut);
    each.reward = keys_.reward.control == "length" ? static_cast<double>(each.row.tokens.size()) /
                                                         static_cast<double>(options_.loss.longest)
                                                   : each.score.reward();
  }
  if (keys_.reward.control != "shuffled") return;
  for (size_t group = 0; group < groups.records.size(); ++group) {
    const Permutation permutation(samples, seed_, round * 65536 + group);
    std::vector<double> before;
    for (size_t i = 0; i < samples; ++i)
      before.push_back(groups.completions[group * samples + i].reward);
    for (size_t i = 0; i < samples; ++i)
      groups.completions[group * samples + i].reward = before[permutation(i)];
  }
}

// In place of groups that say nothing, those of other prompts, as long as rounds last.
void PolicyBatches::add_varied(Groups& groups, uint64_t round) {
  const auto samples = static_cast<size_t>(keys_.rollout.samples);
  const auto prompts = static_cast<size_t>(keys_.rollout.prompts);
  for (uint64_t again = 1; again < kMostRounds; ++again) {
    std::vector<size_t> equal;
    for (size_t group = 0; group < prompts; ++group)
      if (is_equal_group(groups.completions, group, samples)) equal.push_back(group);
    if (equal.empty()) return;
    const Groups others = complete(round, (round * kMostRounds + again) * prompts, equal.size());
    for (size_t i = 0; i < equal.size(); ++i) {
      if (is_equal_group(others.completions, i, samples)) continue;
      groups.records[equal[i]] = others.records[i];
      std::copy_n(others.completions.begin() + static_cast<std::ptrdiff_t>(i * samples), samples,
                  groups.completions.begin() + static_cast<std::ptrdiff_t>(equal[i] * samples));
    }
  }
}

BatchMaker::Batch PolicyBatches::make(uint64_t position) {
  const auto inner = static_cast<uint64_t>(keys_.grpo.inner_epochs);
  if (position % inner != 0) {
    field<float>(PolicyField::penalty)[0] = static_cast<float>(penalty());
    clock_.clear();
    return {shape_, pointers_};
  }
  clock_.start("prompts");
  const uint64_t round = position / inner;
  const auto prompts = static_cast<uint64_t>(keys_.rollout.prompts);
  const uint64_t rounds = options_.resamples ? kMostRounds : 1;
  generated_tokens_ = 0;
  Groups groups = complete(round, round * rounds * prompts, prompts);
  if (options_.resamples) add_varied(groups, round);
  clock_.enter("batch");
  write_fields(groups);
  measure(groups);
  clock_.enter("reference");
  if (keys_.grpo.recompute_old) score(false, PolicyField::old);
  if (options_.has_reference) score(true, PolicyField::reference);
  clock_.stop();
  return {shape_, pointers_};
}

template <class T>
std::span<T> PolicyBatches::field(PolicyField name) {
  const auto at = static_cast<size_t>(policy_field(shapes_[shape_], name));
  return {buffers_[at].as<T>(), static_cast<size_t>(shapes_[shape_][at].type.shape.elements())};
}

void PolicyBatches::write_fields(const Groups& groups) {
  const auto samples = static_cast<size_t>(keys_.rollout.samples);
  const auto of_row = static_cast<size_t>(layout_.completions);
  std::vector<CompletionRow> rows;
  std::vector<double> rewards;
  for (size_t i = 0; i < groups.completions.size(); ++i) {
    if (i % of_row == 0)
      rows.emplace_back(data_->training.tokens[groups.records[i / samples]].prompt);
    const StepCompletion& each = groups.completions[i];
    rows.back().add(each.row.tokens, each.counts);
    rewards.push_back(each.reward);
  }
  int64_t longest = 1;
  for (const CompletionRow& row : rows) longest = std::max(longest, std::ssize(row.tokens()));
  const auto fits = std::ranges::lower_bound(layout_.lengths, longest);
  FB_CHECK(fits != layout_.lengths.end(), "{} tokens", longest);
  shape_ = static_cast<size_t>(fits - layout_.lengths.begin());

  const auto put = [&](PolicyField name, const auto& values, size_t at) {
    std::ranges::copy(
        values, field<std::ranges::range_value_t<decltype(values)>>(name).subspan(at).begin());
  };
  for (const PolicyField name : {PolicyField::tokens, PolicyField::before})
    std::ranges::fill(field<int32_t>(name), 0);
  std::ranges::fill(field<int32_t>(PolicyField::targets), -1);
  std::ranges::fill(field<float>(PolicyField::old), 0.0F);
  const auto length = static_cast<size_t>(*fits), most = static_cast<size_t>(layout_.longest);
  if (layout_.shares_prompts()) {
    // What is behind the last completion is of no text.
    std::ranges::fill(field<int32_t>(PolicyField::branches), static_cast<int32_t>(of_row) + 1);
    std::ranges::fill(field<int32_t>(PolicyField::positions), 0);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const CompletionRow& row = rows[i];
    put(PolicyField::tokens, row.tokens(), i * length);
    if (layout_.shares_prompts()) {
      put(PolicyField::branches, row.branches(), i * length);
      put(PolicyField::positions, row.positions(), i * length);
    }
    for (size_t j = 0; j < of_row; ++j) {
      const size_t place = i * of_row + j;
      const StepCompletion& each = groups.completions[place];
      if (!each.counts) continue;
      put(PolicyField::before, row.before(j), place * most);
      put(PolicyField::targets, each.row.tokens, place * most);
      put(PolicyField::old, each.row.raw, place * most);
    }
  }
  put(PolicyField::advantage, group_advantages(rewards, samples, options_.advantage), 0);
  field<float>(PolicyField::penalty)[0] = static_cast<float>(penalty());
}

// Of inputs that the training step reads too.
void PolicyBatches::score(bool reference, PolicyField into) {
  Program& program = (reference ? reference_ : scoring_)[shape_];
  std::vector<const void*> batch;
  for (const Graph::Input& input : program.plan().graph.inputs()) {
    if (is_kept(input.role)) continue;
    const auto found = std::ranges::find(shapes_[shape_], input.name, &BatchField::name);
    FB_CHECK(found != shapes_[shape_].end(), "no field '{}'", input.name);
    batch.push_back(pointers_[static_cast<size_t>(found - shapes_[shape_].begin())]);
  }
  program.run(batch);
  program.read_result(program.output("log_probability"),
                      std::as_writable_bytes(field<float>(into)));
}

double PolicyBatches::penalty() const {
  PenaltyController controller(options_.penalty);
  controller.restore(state_->read<double>(kControllerEntry));
  return controller.coefficient();
}

void PolicyBatches::step_made(uint64_t /*position*/, const StepResults& results) {
  const auto kl = std::ranges::find(results, "kl", [](const auto& each) { return each.first; });
  PenaltyController controller(options_.penalty);
  controller.restore(state_->read<double>(kControllerEntry));
  controller.observe(kl == results.end() ? 0 : kl->second);
  state_->write(kControllerEntry, controller.numbers());
}

void PolicyBatches::measure(const Groups& groups) {
  const auto samples = static_cast<size_t>(keys_.rollout.samples);
  figures_ = completion_figures(groups.completions, samples, data_->tokens);
  figures_.emplace_back("penalty", penalty());
  figures_.emplace_back("generated_tokens", static_cast<double>(generated_tokens_));
  if (!engines_) return;
  // Since the start or resume: what an engine's faults have cost.
  const EngineCounts counts = engines_->counts();
  const std::pair<const char*, int64_t> all[] = {
      {"cached", counts.cached},       {"retries", counts.retries}, {"starts", counts.starts},
      {"died", counts.died},           {"silent", counts.silent},   {"refused", counts.refused},
      {"unranked", truths_.unranked()}};
  for (const auto& [name, count] : all)
    figures_.emplace_back(fmt::format("engine/{}", name), static_cast<double>(count));
}

StepResults PolicyBatches::figures() const {
  StepResults all = figures_;
  for (auto& figure : clock_.figures()) all.push_back(std::move(figure));
  return all;
}

std::vector<std::string> PolicyBatches::take_notices() {
  if (!engines_) return {};
  std::vector<std::string> notices = engines_->take_notices();
  if (truths_.unranked() > 0 && !std::exchange(told_unranked_, true))
    notices.push_back(fmt::format(
        "prompts are judged by the rules alone, for no engine ranked their moves (engine/unranked "
        "counts them): {}",
        truths_.problem()));
  return notices;
}

std::vector<std::string> PolicyBatches::last_words() const {
  if (!engines_) return {};
  const EngineCounts counts = engines_->counts();
  return {fmt::format(
      "engine   {}: {} positions, {} of them known; asked {} times again: {} deaths, {} silences, "
      "{} answers refused; {} processes started; {} prompts judged by the rules alone",
      engines_->engine_name(), counts.positions, counts.cached, counts.retries, counts.died,
      counts.silent, counts.refused, counts.starts, truths_.unranked())};
}

}  // namespace fullbore::chess
