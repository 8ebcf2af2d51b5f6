#include "workloads/latentwire/trained_latent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "fullbore/app/job_options.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "workloads/latentwire/answer_graphs.h"
#include "workloads/latentwire/latent_job.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/receiver_rows.h"
#include "workloads/latentwire/receiver_weights.h"

namespace fullbore::latentwire {
namespace {

Graph trace_encode(const Config& config, size_t receivers, const TextEncoder* text, int64_t batch,
                   int64_t places) {
  Trace trace("encode", false);
  const Tensor units = trace.batch("units", {DType::i32, {batch, places}});
  const Tensor lengths = trace.batch("lengths", {DType::i32, {batch}});
  const Tensor wire = encode_prompts(trace, units, lengths, encoder_sizes(config, receivers, text));
  trace.result("result", cast(wire, DType::f32));
  return trace.finish();
}

Tensor wire_input(Trace& trace, const Config& config, size_t receivers, int64_t batch) {
  return trace.batch("wire", {DType::f32,
                              {batch, slot_split(config, receivers).wire_slots(),
                               latent_keys(config).wire.width}});
}

Graph trace_prefix(const Config& config, const std::vector<Receiver>& receivers, size_t number,
                   int64_t batch) {
  Trace trace("prefix", false);
  const Tensor wire = wire_input(trace, config, receivers.size(), batch);
  const ReceiverPrefix prefix =
      receiver_prefix(trace, config, receivers[number], number, receivers.size(), wire);
  trace.result("result", cast(prefix.vectors, DType::f32));
  return trace.finish();
}

uint64_t fingerprint_of(const State& state, const Config& config) {
  uint64_t hash = hash_text(
      fmt::format("question first {}, {} bytes, norms {}", latent_keys(config).wire.question_first,
                  latent_keys(config).wire.max_bytes, latent_keys(config).wire.pre_norm));
  if (latent_keys(config).wire.encoder != "bytes")
    hash = hash_text(fmt::format("{} of {} tokens", latent_keys(config).wire.encoder,
                                 latent_keys(config).wire.max_tokens),
                     hash);
  for (const StateEntry& entry : state.entries()) {
    if (!entry.name.starts_with("encoder.") && !entry.name.starts_with("pooler.") &&
        !entry.name.starts_with(std::string(TextEncoder::kScope) + "."))
      continue;
    std::vector<std::byte> bytes(static_cast<size_t>(entry.type.bytes()));
    state.read(state.find(entry.name), bytes);
    hash = hash_bytes(bytes.data(), bytes.size(), hash_text(entry.name, hash));
  }
  return hash;
}

bool wants_whole(TrainedLatentOptions::Cache cache) {
  return cache != TrainedLatentOptions::Cache::on;
}
bool wants_cache(TrainedLatentOptions::Cache cache) {
  return cache != TrainedLatentOptions::Cache::off;
}

}  // namespace

TrainedLatent::TrainedLatent(const std::string& run_or_checkpoint,
                             const TrainedLatentOptions& options)
    : cache_(options.cache) {
  const OpenedCheckpoint checkpoint = open_checkpoint(run_or_checkpoint);
  path_ = checkpoint.folder.path();
  config_ = stored_config(checkpoint);
  if (config_.model.name != kLatentModel)
    throw UsageError(fmt::format("{} is of a {} model, not of model.name={}", path_,
                                 config_.model.name, kLatentModel));
  choose_processor(config_);
  choose_caches(config_);
  step_ = checkpoint.record.step;
  receivers_ = recorded_receivers(checkpoint.record.tokenizer, config_);
  text_ = recorded_text_encoder(checkpoint.record.tokenizer, config_);
  const auto rows = checkpoint.record.identity.find("rows");
  check_rows(rows == checkpoint.record.identity.end() ? "" : rows->second, config_, receivers_,
             path_);
  const SlotSplit split = slot_split(config_, receivers_.size());
  slots_ = split.wire_slots();
  prefix_ = split.model_slots();
  width_ = latent_keys(config_).wire.width;
  answer_ = latent_keys(config_).receivers.max_answer_tokens;
  written_ = options.answer_tokens > 0 ? options.answer_tokens : answer_;
  if (options.opened) options.opened(config_);
  set_rows(options);
  std::vector<StateEntry> entries;
  const auto add = [&](const Graph& graph) {
    for (StateEntry& entry : trained_entries(checkpoint, graph))
      if (std::ranges::find(entries, entry.name, &StateEntry::name) == entries.end())
        entries.push_back(std::move(entry));
  };
  add(trace_encode(config_, receivers_.size(), text_.get(), rows_, most_units()));
  for (size_t i = 0; i < receivers_.size(); ++i)
    add(wants_cache(cache_) ? cached_answer_graph(sizes_of(i)) : whole_answer_graph(sizes_of(i)));
  name_folders(receivers_, text_, options.frozen_from);
  const std::shared_ptr<const FrozenWeights> frozen = weights_in_place(receivers_, text_.get());
  state_ = std::make_unique<State>(
      trained_state(checkpoint, config_, entries, open_job_device(config_), frozen.get()));
  fingerprint_ = fingerprint_of(*state_, config_);
}

TrainedLatent::~TrainedLatent() = default;

AnswerSizes TrainedLatent::sizes_of(size_t receiver) const {
  return {
      config_, receivers_, receiver, rows_, std::max(written_, answer_), text_places_[receiver]};
}

// As many as are asked for, and as the caches have room for.
void TrainedLatent::set_rows(const TrainedLatentOptions& options) {
  rows_ = std::max<int64_t>(1, options.rows);
  for (const Receiver& each : receivers_)
    text_places_.push_back(options.longest_text ? options.longest_text(each) : 0);
  if (!wants_cache(cache_)) return;
  int64_t most = rows_;
  for (size_t i = 0; i < receivers_.size(); ++i)
    most = std::min(most, kCacheBytes / cached_row_bytes(sizes_of(i)));
  rows_ = std::max<int64_t>(1, most);
}

BoundProgram& TrainedLatent::encoder(int64_t places) {
  auto found = encoders_.find(places);
  if (found == encoders_.end())
    found = encoders_
                .try_emplace(places,
                             trace_encode(config_, receivers_.size(), text_.get(), rows_, places),
                             *state_, trained_options(config_))
                .first;
  return found->second;
}

int64_t TrainedLatent::most_units() const {
  const LatentKeys::Wire& keys = latent_keys(config_).wire;
  return text_ ? keys.max_tokens : keys.max_bytes;
}

bool TrainedLatent::reads_whole(const std::string& text) const {
  return std::ssize(prompt_units(text_.get(), text, std::ssize(text) + 2)) <= most_units();
}

std::vector<float> TrainedLatent::encode(std::span<const std::string> texts) {
  const int64_t most = most_units();
  const auto numbers = static_cast<size_t>(slots_ * width_), batch = static_cast<size_t>(rows_);
  std::vector<float> wires;
  for (size_t begin = 0; begin < texts.size(); begin += batch) {
    std::vector<std::vector<int32_t>> chosen;
    int64_t longest = 1;
    for (const std::string& text : texts.subspan(begin, std::min(batch, texts.size() - begin))) {
      chosen.push_back(prompt_units(text_.get(), text, most));
      longest = std::max(longest, std::ssize(chosen.back()));
    }
    FB_CHECK(longest <= most, "a prompt of {} bytes", longest);
    // Places that no prompt of a batch has are not read at all.
    const int64_t places = std::min(most, rounded_places(longest));
    BoundProgram& program = encoder(places);
    const Seconds seconds(encode_seconds_);
    for (size_t row = 0; row < chosen.size(); ++row) {
      std::ranges::copy(
          chosen[row],
          program.input<int32_t>("units").subspan(row * static_cast<size_t>(places)).begin());
      program.input<int32_t>("lengths")[row] = static_cast<int32_t>(chosen[row].size());
    }
    program.run();
    const std::vector<float> made = program.result<float>("result");
    wires.insert(wires.end(), made.begin(),
                 made.begin() + static_cast<std::ptrdiff_t>(chosen.size() * numbers));
  }
  return wires;
}

std::vector<float> TrainedLatent::prefixes(std::span<const float> wires, size_t receiver) {
  auto found = adapters_.find(receiver);
  if (found == adapters_.end())
    found = adapters_
                .try_emplace(receiver, trace_prefix(config_, receivers_, receiver, rows_), *state_,
                             trained_options(config_))
                .first;
  BoundProgram& adapter = found->second;
  const auto numbers = static_cast<size_t>(slots_ * width_), batch = static_cast<size_t>(rows_);
  const auto made = static_cast<size_t>(prefix_ * receivers_[receiver].decoder.width);
  std::vector<float> result;
  for (size_t begin = 0; begin < wires.size() / numbers; begin += batch) {
    const size_t count = std::min(batch, wires.size() / numbers - begin);
    std::ranges::copy(wires.subspan(begin * numbers, count * numbers),
                      adapter.input<float>("wire").begin());
    adapter.run();
    const std::vector<float> rows = adapter.result<float>("result");
    result.insert(result.end(), rows.begin(),
                  rows.begin() + static_cast<std::ptrdiff_t>(count * made));
  }
  return result;
}

AnswerRows& TrainedLatent::rows_of(size_t receiver, bool is_cached) {
  std::unique_ptr<AnswerRows>& rows = answering_[{receiver, is_cached}];
  if (!rows)
    rows = is_cached ? cached_answer_rows(sizes_of(receiver), *state_)
                     : whole_answer_rows(sizes_of(receiver), *state_);
  return *rows;
}

void TrainedLatent::check_texts(const Given& given, size_t receiver) const {
  const Receiver& reader = receivers_[receiver];
  for (size_t row = 0; row < given.prompts.size(); ++row) {
    const int64_t tokens = std::ssize(given.prompts[row]);
    FB_CHECK(tokens <= text_places_[receiver], "a text of {} tokens", tokens);
    if (const int64_t all = tokens + sizes_of(receiver).answer_tokens; all > reader.decoder.context)
      throw UsageError(
          fmt::format("prompt {} of {} and its answer take {} tokens; receiver {} reads {}; "
                      "--systems latent leaves texts out",
                      row + 1, given.prompts.size(), all, reader.name, reader.decoder.context));
  }
}

void TrainedLatent::answer_rows(AnswerRows& rows, const Given& given,
                                std::span<const size_t> chosen, const Wanted& wanted,
                                Answered& result) const {
  rows.begin(given, chosen);
  if (wanted.writes) {
    Answers written = rows.write(wanted.writing);
    for (size_t i = 0; i < chosen.size(); ++i) result.written[chosen[i]] = std::move(written[i]);
  }
  for (size_t set = 0; set < wanted.judged.size(); ++set) {
    Answers judged;
    for (const size_t row : chosen) judged.push_back(wanted.judged[set][row]);
    std::vector<Likelihood> found = rows.judge(judged);
    for (size_t i = 0; i < chosen.size(); ++i) result.read[set][chosen[i]] = std::move(found[i]);
  }
}

TrainedLatent::Answered TrainedLatent::answer(const Given& given, size_t receiver,
                                              const Wanted& wanted) {
  check_texts(given, receiver);
  const size_t count = given.rows(slots_ * width_), batch = static_cast<size_t>(rows_);
  // Texts of about the same length together: the longest decides what all of a batch take.
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  if (given.is_text())
    std::ranges::stable_sort(order, {}, [&](size_t row) { return given.prompts[row].size(); });
  const auto answered = [&](bool is_cached) {
    Answered result{Answers(wanted.writes ? count : 0),
                    std::vector(wanted.judged.size(), std::vector<Likelihood>(count)),
                    {}};
    AnswerRows& rows = rows_of(receiver, is_cached);
    const AnswerTimes before = rows.times();
    for (size_t begin = 0; begin < count; begin += batch)
      answer_rows(rows, given, std::span(order).subspan(begin, std::min(batch, count - begin)),
                  wanted, result);
    result.times = rows.times() - before;
    return result;
  };
  if (!wants_whole(cache_)) return answered(true);
  Answered whole = answered(false);
  if (wants_cache(cache_)) compare(whole, answered(true));
  return whole;
}

void TrainedLatent::compare(const Answered& whole, const Answered& cached) {
  check_.rows += std::ssize(whole.written);
  for (size_t row = 0; row < whole.written.size(); ++row)
    check_.other_answers += whole.written[row] == cached.written[row] ? 0 : 1;
  for (size_t set = 0; set < whole.read.size(); ++set)
    for (size_t row = 0; row < whole.read[set].size(); ++row)
      for (size_t t = 0; t < whole.read[set][row].losses.size(); ++t)
        check_.largest_loss = std::max(
            check_.largest_loss, std::abs(static_cast<double>(whole.read[set][row].losses[t]) -
                                          static_cast<double>(cached.read[set][row].losses[t])));
}

}  // namespace fullbore::latentwire
