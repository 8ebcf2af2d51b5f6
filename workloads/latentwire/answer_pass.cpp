#include "workloads/latentwire/answer_pass.h"

#include "fullbore/base/check.h"

namespace fullbore::latentwire {
namespace {

// Tokens that are the same in each row: [n] -> [B,n,d]
Tensor embedded(Trace& trace, const nn::DecoderConfig& decoder, const std::vector<int32_t>& tokens,
                int64_t batch) {
  const auto count = std::ssize(tokens);
  const Tensor ids = constant(trace.builder(), {DType::i32, {count}},
                              std::vector<double>(tokens.begin(), tokens.end()));
  const Tensor rows = decoder_embeddings(trace, ids, decoder);
  return broadcast_to(expand_dims(rows, 0), {batch, count, decoder.width});
}

}  // namespace

Tensor row_before_answer(Trace& trace, const nn::DecoderConfig& decoder, const RowLayout& layout,
                         Tensor prefix, int64_t batch) {
  std::vector<Tensor> parts;
  const auto begin = [&](RowLayout::Begin where) {
    if (layout.begin == where)
      parts.push_back(embedded(trace, decoder, {layout.begin_token}, batch));
  };
  begin(RowLayout::Begin::front);
  if (prefix.valid()) parts.push_back(prefix);
  begin(RowLayout::Begin::before_anchor);
  if (!layout.anchor.empty()) parts.push_back(embedded(trace, decoder, layout.anchor, batch));
  FB_CHECK(!parts.empty(), "an answer with nothing before it");
  const DType dtype = prefix.valid() ? prefix.dtype() : parts.front().dtype();
  for (Tensor& part : parts) part = cast(part, dtype);
  return parts.size() == 1 ? parts.front() : concat(parts, 1);
}

RowStates row_states(Trace& trace, const nn::DecoderConfig& decoder, const RowLayout& layout,
                     Tensor prefix, Tensor answer, std::span<const int64_t> layers,
                     const nn::DecoderAdditions& additions) {
  const int64_t batch = answer.dim(0), length = answer.dim(1);
  Tensor row = row_before_answer(trace, decoder, layout, prefix, batch);
  const int64_t place = row.dim(1) - 1;
  FB_CHECK(place == layout.place(prefix.valid() ? prefix.dim(1) : 0), "logits from place {}",
           place);
  if (length > 1) {
    const Tensor tokens = decoder_embeddings(trace, slice(answer, 1, 0, length - 1), decoder);
    const Tensor parts[] = {row, cast(tokens, row.dtype())};
    row = concat(parts, 1);
  }
  return {decoder_states(trace, {.embeddings = row, .additions = additions}, decoder, layers),
          place};
}

nn::DecoderStates prefix_states(Trace& trace, const nn::DecoderConfig& decoder,
                                const RowLayout& layout, Tensor prefix, Tensor answer,
                                std::span<const int64_t> layers,
                                const nn::DecoderAdditions& additions) {
  auto [states, place] = row_states(trace, decoder, layout, prefix, answer, layers, additions);
  const int64_t begin = place, end = place + answer.dim(1);
  const auto of_answer = [&](Tensor x) { return slice(x, 1, begin, end); };
  states.last = of_answer(states.last);
  for (Tensor& each : states.chosen) each = of_answer(each);
  return states;
}

nn::DecoderStates prompt_states(Trace& trace, const nn::DecoderConfig& decoder, Tensor tokens,
                                Tensor lengths, int64_t early, std::span<const int64_t> layers,
                                const nn::DecoderAdditions& additions) {
  const int64_t batch = tokens.dim(0), places = tokens.dim(1);
  nn::DecoderStates states = decoder_states(
      trace, {.embeddings = decoder_embeddings(trace, tokens, decoder), .additions = additions},
      decoder, layers);
  GraphBuilder& builder = trace.builder();
  const TensorType type{DType::i32, {batch, early}};
  const Tensor first = reshape(cast(lengths, DType::i32), {batch, 1}) - 1.0;
  const Tensor rows =
      iota(builder, type, 0) * static_cast<double>(places) + first + iota(builder, type, 1);
  const auto of_answer = [&](Tensor x) {
    return gather(reshape(x, {batch * places, x.dim(2)}), rows);
  };
  states.last = of_answer(states.last);
  for (Tensor& each : states.chosen) each = of_answer(each);
  return states;
}

}  // namespace fullbore::latentwire
