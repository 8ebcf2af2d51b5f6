#include "workloads/latentwire/answer_graphs.h"

#include <algorithm>

#include "fullbore/nn/language_model_loss.h"
#include "workloads/latentwire/latent_job.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/receiver_weights.h"

namespace fullbore::latentwire {
namespace {

using Reads = CachedStep::Reads;

constexpr int64_t kLeastPlaces = 16;

const Receiver& receiver_of(const AnswerSizes& sizes) { return sizes.receivers[sizes.number]; }

ReceiverPrefix prefix_of_wire(Trace& trace, const AnswerSizes& sizes, int64_t rows) {
  const SlotSplit split = slot_split(sizes.config, sizes.receivers.size());
  const Tensor wire = trace.batch(
      "wire", {DType::f32, {rows, split.wire_slots(), latent_keys(sizes.config).wire.width}});
  return receiver_prefix(trace, sizes.config, receiver_of(sizes), sizes.number,
                         sizes.receivers.size(), wire);
}

// logits [S,T,V], targets i32 [S,T], -1 where there is none.
void add_likelihoods(Trace& trace, Tensor logits, Tensor targets) {
  trace.result("losses", cross_entropy(logits, targets));
  const Tensor of_target = take_along_axis(logits, expand_dims(maximum(targets, 0.0), 2), 2);
  trace.result("ranks", reduce_sum(cast(greater(logits, of_target), DType::i32), {2}));
}

// [S,length,d] -> [S,1,d], each row's last token.
Tensor last_of(Tensor x, Tensor counts) {
  const int64_t rows = x.dim(0), length = x.dim(1);
  if (length == 1) return x;
  const Tensor first = iota(x.builder(), {DType::i64, {rows}}, 0) * static_cast<double>(length);
  const Tensor flat = reshape(x, {rows * length, x.dim(2)});
  return expand_dims(gather(flat, first + maximum(counts, 1.0) - 1.0), 1);
}

bool adds_to_rows(const Config& config) {
  const LatentKeys::Conditioning& keys = latent_keys(config).conditioning;
  return !keys.attending_blocks.empty() || keys.rank > 0;
}

}  // namespace

int64_t wire_numbers(const AnswerSizes& sizes) {
  return slot_split(sizes.config, sizes.receivers.size()).wire_slots() *
         latent_keys(sizes.config).wire.width;
}

int64_t places_before_row(const AnswerSizes& sizes) {
  const LatentKeys::Conditioning& keys = latent_keys(sizes.config).conditioning;
  const SlotSplit split = slot_split(sizes.config, sizes.receivers.size());
  return (keys.deep_prefix ? split.model_slots() : 0) + (keys.coprocessor > 0 ? 1 : 0);
}

int64_t wire_places(const AnswerSizes& sizes) {
  const SlotSplit split = slot_split(sizes.config, sizes.receivers.size());
  const bool in_row = !latent_keys(sizes.config).conditioning.deep_prefix;
  return places_before_row(sizes) + 1 +
         receiver_of(sizes).layout.place(in_row ? split.model_slots() : 0);
}

int64_t rounded_places(int64_t tokens) {
  int64_t step = kLeastPlaces;
  while (4 * step < tokens) step *= 2;
  return std::max(kLeastPlaces, (tokens + step - 1) / step * step);
}

int64_t row_pages(const AnswerSizes& sizes, int64_t places) {
  return (places + sizes.answer_tokens + nn::kPageTokens - 1) / nn::kPageTokens;
}

int64_t pool_pages(const AnswerSizes& sizes) {
  const int64_t of_texts = sizes.text_places > 0 ? rounded_places(sizes.text_places) : 0;
  const int64_t most = row_pages(sizes, std::max(wire_places(sizes), of_texts));
  return (sizes.rows + (sizes.rows > 1 && of_texts > 0 ? 1 : 0)) * most;
}

Graph trace_whole(const AnswerSizes& sizes, int64_t prompt_places) {
  Trace trace("answer", false);
  const Receiver& receiver = receiver_of(sizes);
  const int64_t length = sizes.answer_tokens;
  ReceiverPrefix prefix;
  Tensor prompt, lengths;
  if (prompt_places == 0) {
    prefix = prefix_of_wire(trace, sizes, sizes.rows);
  } else {
    prompt = trace.batch("prompt", {DType::i32, {sizes.rows, prompt_places}});
    lengths = trace.batch("lengths", {DType::i32, {sizes.rows}});
  }
  const Tensor answer = trace.batch("answer", {DType::i32, {sizes.rows, length}});
  const FrozenScope frozen = frozen_receiver(trace, receiver);
  const Scope scope(trace, receiver.scope());
  const nn::DecoderStates states =
      prompt_places == 0 ? prefix_states(trace, receiver.decoder, receiver.layout, prefix.in_row(),
                                         answer, {}, prefix.additions)
                         : prompt_states(trace, receiver.decoder, prompt, lengths, length);
  const Tensor logits = cast(
      language_model_logits(trace, decoder_head(trace, states.last, receiver.decoder)), DType::f32);
  trace.result("choices", argmax(logits, 2));
  add_likelihoods(trace, logits, answer);
  return trace.finish();
}

Graph trace_cached(const AnswerSizes& sizes, const CachedStep& step) {
  Trace trace("answer", false);
  const Receiver& receiver = receiver_of(sizes);
  const nn::DecoderConfig& decoder = receiver.decoder;
  const bool reads_wire = step.reads == Reads::wire;
  const int64_t rows = step.rows;
  nn::DecoderInputs inputs;
  inputs.cache = {.position = trace.batch("position", {DType::i64, {rows}}),
                  .capacity = step.pages * nn::kPageTokens,
                  .pages = trace.batch("pages", {DType::i32, {rows, step.pages}}),
                  .counts = trace.batch("counts", {DType::i64, {rows}}),
                  .pool_pages = pool_pages(sizes)};
  Tensor tokens, targets;
  ReceiverPrefix prefix;
  if (step.reads == Reads::tokens)
    tokens = trace.batch("tokens", {DType::i32, {rows, step.length}});
  if (step.reads == Reads::embeddings)
    inputs.embeddings = trace.batch("embeddings", {DType::f32, {rows, step.length, decoder.width}});
  if (step.judges) targets = trace.batch("targets", {DType::i32, {rows, step.length}});
  if (reads_wire || (step.is_behind_wire && adds_to_rows(sizes.config))) {
    prefix = prefix_of_wire(trace, sizes, rows);
    inputs.additions = prefix.additions;
  }
  // The cache has what stands before the rows, at places that tokens do not count.
  if (!reads_wire) inputs.additions.before = {};
  if (const int64_t before = places_before_row(sizes);
      !reads_wire && step.is_behind_wire && before > 0)
    inputs.positions = expand_dims(inputs.cache.position, 1) - static_cast<double>(before) +
                       iota(trace.builder(), {DType::i64, {step.length}}, 0);
  const FrozenScope frozen = frozen_receiver(trace, receiver);
  const Scope scope(trace, receiver.scope());
  if (reads_wire)
    inputs.embeddings = row_before_answer(trace, decoder, receiver.layout, prefix.in_row(), rows);
  if (tokens.valid()) inputs.embeddings = decoder_embeddings(trace, tokens, decoder);
  inputs.embeddings = cast(inputs.embeddings, DType::f32);
  Tensor last = decoder_states(trace, inputs, decoder).last;
  if (!step.judges) last = last_of(last, inputs.cache.counts);
  const Tensor logits =
      cast(language_model_logits(trace, decoder_head(trace, last, decoder)), DType::f32);
  if (step.judges) {
    add_likelihoods(trace, logits, targets);
  } else {
    const Tensor row = squeeze(logits, 1);
    trace.result("logits", row);
    trace.result("choices", argmax(row, 1));
  }
  return trace.finish();
}

Graph trace_embeddings(const AnswerSizes& sizes, int64_t length) {
  Trace trace("embed", false);
  const Receiver& receiver = receiver_of(sizes);
  const Tensor tokens = trace.batch("tokens", {DType::i32, {sizes.rows, length}});
  const FrozenScope frozen = frozen_receiver(trace, receiver);
  const Scope scope(trace, receiver.scope());
  trace.result("embeddings", cast(decoder_embeddings(trace, tokens, receiver.decoder), DType::f32));
  return trace.finish();
}

}  // namespace fullbore::latentwire
