#include "workloads/latentwire/teacher_pass.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "fullbore/app/job_options.h"
#include "fullbore/base/check.h"
#include "fullbore/base/error.h"
#include "fullbore/base/tensor_memory.h"
#include "fullbore/nn/language_model_loss.h"
#include "fullbore/train/step_function.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/receiver_weights.h"

namespace fullbore::latentwire {
namespace {

constexpr int64_t kWidthStep = 32;  // rows are padded to multiples of it: few programs

}  // namespace

/// A program for rows of one width, and the memory of its inputs.
struct TeacherPass::Compiled {
  Compiled(const Graph& graph, State& state, const CompileOptions& options)
      : program(Program::compile(graph, state, options)) {
    for (const Graph::Input& input : graph.inputs()) {
      if (input.role != Role::batch) continue;
      memory.push_back(allocate_tensor_memory(graph.type(input.value).bytes()));
      if (!memory.back()) throw std::bad_alloc();
    }
  }
  Program program;
  std::vector<TensorMemory> memory;
};

TeacherForm teacher_form(const Config& config, int64_t answer_tokens) {
  const LatentKeys::Loss& keys = latent_keys(config).loss;
  TeacherForm form{
      .last = keys.distillation_weight > 0,
      .places = std::min(answer_tokens, std::max(keys.early_tokens, keys.final_early_tokens))};
  if (keys.state_weight > 0) form.layers = keys.state_layers;
  return form;
}

TeacherPass::TeacherPass(const Config& config, const Receiver& receiver, TeacherForm form)
    : config_(config), receiver_(receiver), form_(std::move(form)) {
  Trace declared("teacher", false);
  {
    const FrozenScope frozen = frozen_receiver(declared, receiver_);
    const Scope scope(declared, receiver_.scope());
    const Tensor ids = declared.batch("ids", {DType::i32, {1, 1}});
    const nn::DecoderStates states = decoder_states(
        declared, {.embeddings = decoder_embeddings(declared, ids, receiver_.decoder)},
        receiver_.decoder);
    // With its head, which no pass reads: what a run has is all a receiver's.
    declared.result("logits", language_model_logits(declared, decoder_head(declared, states.last,
                                                                           receiver_.decoder)));
  }
  std::map<std::string, Initializer> initializers = declared.initializers();
  const TracedStep step{.graph = declared.finish(), .initializers = std::move(initializers)};
  std::vector<LentEntry> lent;
  if (const auto mapped = weights_in_place({receiver_}))
    lent = mapped->lend(state_entries(step.graph));
  state_ = std::make_unique<State>(
      initial_state(step, static_cast<uint64_t>(config_.run.seed), open_job_device(config_), lent));
  fill_receivers({receiver_}, *state_);
}

Graph TeacherPass::trace(int64_t width) {
  Trace trace("teacher", false);
  const auto rows = static_cast<int64_t>(kRows);
  const Tensor ids = trace.batch("ids", {DType::i32, {rows, width}});
  const Tensor prompts = trace.batch("prompts", {DType::i32, {rows}});
  const FrozenScope frozen = frozen_receiver(trace, receiver_);
  const Scope scope(trace, receiver_.scope());
  const nn::DecoderStates states =
      prompt_states(trace, receiver_.decoder, ids, prompts, form_.places, form_.layers);
  std::vector<Tensor> all;
  const auto add = [&](Tensor x) { all.push_back(expand_dims(cast(x, DType::f32), 1)); };
  if (form_.last) add(states.last);
  for (const Tensor& each : states.chosen) add(each);
  trace.result("states", all.size() == 1 ? all.front() : concat(all, 1));
  return trace.finish();
}

TeacherPass::Compiled& TeacherPass::compiled(int64_t width) {
  std::shared_ptr<Compiled>& made = programs_[width];
  if (!made) made = std::make_shared<Compiled>(trace(width), *state_, trained_options(config_));
  return *made;
}

std::vector<float> TeacherPass::run(std::span<const Row> rows) {
  FB_CHECK(rows.size() <= kRows, "{} rows", rows.size());
  int64_t longest = 0;
  for (const Row& each : rows)
    longest = std::max({longest, std::ssize(each.ids), each.prompt + form_.places - 1});
  if (longest > receiver_.decoder.context)
    throw DataError(
        fmt::format("a prompt and its answer take {} tokens; receiver {} reads {} "
                    "(loss.distillation_weight and loss.state_weight have it read the text)",
                    longest, receiver_.name, receiver_.decoder.context));
  const int64_t width =
      std::min((longest + kWidthStep - 1) / kWidthStep * kWidthStep, receiver_.decoder.context);
  Compiled& step = compiled(width);
  auto* const ids = reinterpret_cast<int32_t*>(step.memory[0].get());
  auto* const prompts = reinterpret_cast<int32_t*>(step.memory[1].get());
  std::fill_n(ids, kRows * static_cast<size_t>(width), 0);
  std::fill_n(prompts, kRows, 1);
  for (size_t row = 0; row < rows.size(); ++row) {
    std::ranges::copy(rows[row].ids, ids + row * static_cast<size_t>(width));
    prompts[row] = static_cast<int32_t>(rows[row].prompt);
  }
  const std::vector<const void*> inputs = {ids, prompts};
  step.program.run(inputs);
  std::vector<float> states = step.program.read_result<float>(step.program.output("states"));
  states.resize(states.size() / kRows * rows.size());
  return states;
}

}  // namespace fullbore::latentwire
