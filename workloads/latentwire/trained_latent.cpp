#include "workloads/latentwire/trained_latent.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "fullbore/app/job_options.h"
#include "fullbore/app/trained_state.h"
#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/hash.h"
#include "workloads/latentwire/latent_job.h"
#include "workloads/latentwire/latent_keys.h"

namespace fullbore::latentwire {
namespace {

constexpr int64_t kPromptStep = 32;  // prompts are padded to multiples of it: few programs

Graph trace_encode(const Config& config, size_t receivers, int64_t batch) {
  Trace trace("encode", false);
  const Tensor bytes =
      trace.batch("bytes", {DType::i32, {batch, latent_keys(config).wire.max_bytes}});
  const Tensor lengths = trace.batch("lengths", {DType::i32, {batch}});
  const Tensor wire = encode_prompts(trace, bytes, lengths, encoder_sizes(config, receivers));
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

// prompt_places 0: behind a wire.
Graph trace_answer(const Config& config, const std::vector<Receiver>& receivers, size_t number,
                   int64_t batch, int64_t length, int64_t prompt_places) {
  Trace trace("answer", false);
  const Receiver& receiver = receivers[number];
  ReceiverPrefix prefix;
  Tensor prompt, lengths;
  if (prompt_places == 0) {
    const Tensor wire = wire_input(trace, config, receivers.size(), batch);
    prefix = receiver_prefix(trace, config, receiver, number, receivers.size(), wire);
  } else {
    prompt = trace.batch("prompt", {DType::i32, {batch, prompt_places}});
    lengths = trace.batch("lengths", {DType::i32, {batch}});
  }
  const Tensor answer = trace.batch("answer", {DType::i32, {batch, length}});
  const FrozenScope frozen(trace);
  const Scope scope(trace, receiver.scope());
  const nn::DecoderStates states =
      prompt_places == 0 ? prefix_states(trace, receiver.decoder, receiver.layout, prefix.in_row(),
                                         answer, {}, prefix.additions)
                         : prompt_states(trace, receiver.decoder, prompt, lengths, length);
  const Tensor logits = cast(
      language_model_logits(trace, decoder_head(trace, states.last, receiver.decoder)), DType::f32);
  trace.result("choices", argmax(logits, 2));
  trace.result("losses", cross_entropy(logits, answer));
  return trace.finish();
}

uint64_t fingerprint_of(const State& state, const Config& config) {
  uint64_t hash = hash_text(
      fmt::format("question first {}, {} bytes, norms {}", latent_keys(config).wire.question_first,
                  latent_keys(config).wire.max_bytes, latent_keys(config).wire.pre_norm));
  for (const StateEntry& entry : state.entries()) {
    if (!entry.name.starts_with("encoder.") && !entry.name.starts_with("pooler.")) continue;
    std::vector<std::byte> bytes(static_cast<size_t>(entry.type.bytes()));
    state.read(state.find(entry.name), bytes);
    hash = hash_bytes(bytes.data(), bytes.size(), hash_text(entry.name, hash));
  }
  return hash;
}

}  // namespace

/// A graph's program, and the memory of its batch inputs.
struct TrainedLatent::Part {
  explicit Part(Program made) : program(std::move(made)) {}
  Program program;
  std::vector<TensorMemory> memory;
  std::vector<const void*> inputs;
  int64_t prompt_places = 0;

  template <class T>
  T* input(size_t which) {
    return reinterpret_cast<T*>(memory[which].get());
  }
  template <class T>
  std::vector<T> result(const char* name) {
    return program.read_result<T>(program.output(name));
  }
};

TrainedLatent::TrainedLatent(const std::string& run_or_checkpoint, int64_t batch) : batch_(batch) {
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
  const SlotSplit split = slot_split(config_, receivers_.size());
  slots_ = split.wire_slots();
  prefix_ = split.model_slots();
  width_ = latent_keys(config_).wire.width;
  answer_ = latent_keys(config_).receivers.max_answer_tokens;
  std::vector<StateEntry> entries;
  const auto add = [&](const Graph& graph) {
    for (StateEntry& entry : trained_entries(checkpoint, graph))
      if (std::ranges::find(entries, entry.name, &StateEntry::name) == entries.end())
        entries.push_back(std::move(entry));
  };
  add(trace_encode(config_, receivers_.size(), batch_));
  for (size_t i = 0; i < receivers_.size(); ++i)
    add(trace_answer(config_, receivers_, i, batch_, answer_, 0));
  state_ = std::make_unique<State>(
      trained_state(checkpoint, config_, entries, open_job_device(config_)));
  fingerprint_ = fingerprint_of(*state_, config_);
}

TrainedLatent::~TrainedLatent() = default;

TrainedLatent::Part& TrainedLatent::part(const std::string& name, const Graph& graph) {
  auto made = std::make_unique<Part>(Program::compile(graph, *state_, trained_options(config_)));
  for (const Graph::Input& input : graph.inputs()) {
    if (input.role != Role::batch) continue;
    const auto bytes = static_cast<size_t>(graph.type(input.value).bytes());
    made->memory.push_back(allocate_tensor_memory(static_cast<int64_t>(bytes)));
    if (!made->memory.back()) throw std::bad_alloc();
    std::memset(made->memory.back().get(), 0, bytes);
    made->inputs.push_back(made->memory.back().get());
  }
  return *(parts_[name] = std::move(made));
}

std::vector<float> TrainedLatent::encode(std::span<const std::string> texts) {
  const auto found = parts_.find("encode");
  Part& encoder = found != parts_.end()
                      ? *found->second
                      : part("encode", trace_encode(config_, receivers_.size(), batch_));
  const auto most = static_cast<size_t>(latent_keys(config_).wire.max_bytes);
  const auto numbers = static_cast<size_t>(slots_ * width_);
  std::vector<float> wires;
  for (size_t begin = 0; begin < texts.size(); begin += static_cast<size_t>(batch_)) {
    const size_t count = std::min(static_cast<size_t>(batch_), texts.size() - begin);
    for (size_t row = 0; row < count; ++row) {
      const std::string& text = texts[begin + row];
      FB_CHECK(text.size() <= most, "a prompt of {} bytes", text.size());
      std::ranges::transform(text, encoder.input<int32_t>(0) + row * most,
                             [](char c) { return static_cast<unsigned char>(c); });
      encoder.input<int32_t>(1)[row] = static_cast<int32_t>(text.size());
    }
    encoder.program.run(encoder.inputs);
    const std::vector<float> made = encoder.result<float>("result");
    wires.insert(wires.end(), made.begin(),
                 made.begin() + static_cast<std::ptrdiff_t>(count * numbers));
  }
  return wires;
}

std::vector<float> TrainedLatent::prefixes(std::span<const float> wires, size_t receiver) {
  const std::string name = "prefix " + receivers_[receiver].name;
  const auto found = parts_.find(name);
  Part& adapter = found != parts_.end()
                      ? *found->second
                      : part(name, trace_prefix(config_, receivers_, receiver, batch_));
  const auto numbers = static_cast<size_t>(slots_ * width_);
  const auto made = static_cast<size_t>(prefix_ * receivers_[receiver].decoder.width);
  std::vector<float> result;
  for (size_t begin = 0; begin < wires.size() / numbers; begin += static_cast<size_t>(batch_)) {
    const size_t count = std::min(static_cast<size_t>(batch_), wires.size() / numbers - begin);
    std::copy_n(wires.begin() + static_cast<std::ptrdiff_t>(begin * numbers), count * numbers,
                adapter.input<float>(0));
    adapter.program.run(adapter.inputs);
    const std::vector<float> rows = adapter.result<float>("result");
    result.insert(result.end(), rows.begin(),
                  rows.begin() + static_cast<std::ptrdiff_t>(count * made));
  }
  return result;
}

TrainedLatent::Part& TrainedLatent::answering(size_t receiver, int64_t prompt_places) {
  const std::string name = fmt::format("answer {} {}", receivers_[receiver].name, prompt_places);
  if (const auto found = parts_.find(name); found != parts_.end()) return *found->second;
  Part& made =
      part(name, trace_answer(config_, receivers_, receiver, batch_, answer_, prompt_places));
  made.prompt_places = prompt_places;
  return made;
}

TrainedLatent::Places TrainedLatent::run(Part& part, const Given& given, size_t begin, size_t count,
                                         std::span<const std::vector<int32_t>> answers) {
  const bool text = !given.prompts.empty();
  auto* const known = part.input<int32_t>(text ? 2 : 1);
  std::fill_n(known, batch_ * answer_, -1);
  for (size_t row = 0; row < count; ++row)
    std::ranges::copy(answers[row], known + row * static_cast<size_t>(answer_));
  if (!text) {
    const auto numbers = static_cast<size_t>(slots_ * width_);
    std::copy_n(given.wires.begin() + static_cast<std::ptrdiff_t>(begin * numbers), count * numbers,
                part.input<float>(0));
  } else {
    const auto places = static_cast<size_t>(part.prompt_places);
    for (size_t row = 0; row < count; ++row) {
      std::vector<int32_t> ids = given.prompts[begin + row];
      part.input<int32_t>(1)[row] = static_cast<int32_t>(ids.size());
      ids.insert(ids.end(), answers[row].begin(), answers[row].end());
      ids.resize(places);
      std::ranges::copy(ids, part.input<int32_t>(0) + row * places);
    }
  }
  part.program.run(part.inputs);
  return {part.result<int32_t>("choices"), part.result<float>("losses")};
}

namespace {

int64_t places_for(std::span<const std::vector<int32_t>> prompts, int64_t answer) {
  size_t longest = 0;
  for (const std::vector<int32_t>& each : prompts) longest = std::max(longest, each.size());
  if (prompts.empty()) return 0;
  const int64_t places = static_cast<int64_t>(longest) + answer;
  return (places + kPromptStep - 1) / kPromptStep * kPromptStep;
}

}  // namespace

std::vector<std::vector<int32_t>> TrainedLatent::write(const Given& given, size_t receiver) {
  const Receiver& reader = receivers_[receiver];
  Part& step = answering(receiver, places_for(given.prompts, answer_));
  const size_t rows = given.rows(slots_ * width_);
  std::vector<std::vector<int32_t>> written;
  for (size_t begin = 0; begin < rows; begin += static_cast<size_t>(batch_)) {
    const size_t count = std::min(static_cast<size_t>(batch_), rows - begin);
    std::vector<std::vector<int32_t>> answers(count);
    std::vector<bool> done(count);
    for (int64_t t = 0; t < answer_ && std::ranges::find(done, false) != done.end(); ++t) {
      const Places places = run(step, given, begin, count, answers);
      for (size_t row = 0; row < count; ++row) {
        if (done[row]) continue;
        answers[row].push_back(
            places.choices[row * static_cast<size_t>(answer_) + static_cast<size_t>(t)]);
        done[row] = reader.ends(answers[row]);
      }
    }
    std::ranges::move(answers, std::back_inserter(written));
  }
  return written;
}

std::vector<TrainedLatent::Likelihood> TrainedLatent::read(
    const Given& given, std::span<const std::vector<int32_t>> answers, size_t receiver) {
  Part& step = answering(receiver, places_for(given.prompts, answer_));
  std::vector<Likelihood> result;
  for (size_t begin = 0; begin < answers.size(); begin += static_cast<size_t>(batch_)) {
    const size_t count = std::min(static_cast<size_t>(batch_), answers.size() - begin);
    const Places places = run(step, given, begin, count, answers.subspan(begin, count));
    for (size_t row = 0; row < count; ++row) {
      const size_t at = row * static_cast<size_t>(answer_);
      const std::vector<int32_t>& answer = answers[begin + row];
      Likelihood each;
      for (size_t t = 0; t < answer.size(); ++t) each.nats += places.losses[at + t];
      each.first_right = !answer.empty() && places.choices[at] == answer[0];
      result.push_back(each);
    }
  }
  return result;
}

}  // namespace fullbore::latentwire
