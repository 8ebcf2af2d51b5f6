#include "workloads/latentwire/answer_losses.h"

#include <algorithm>

#include "fullbore/ops/linear_cross_entropy.h"

namespace fullbore::latentwire {
namespace {

// Logits of a tile of rows: 32 MiB, and enough rows for a matmul that reads the head's matrix once.
constexpr int64_t kTileBytes = 32 << 20, kFewestRows = 128;

Tensor places(Tensor x, int64_t begin, int64_t end) {
  return begin == 0 && end == x.dim(1) ? x : slice(x, 1, begin, end);
}

/// Computes losses of one batch of rows.
class Answers {
 public:
  Answers(Trace& trace, const AnswerBatch& rows, const AnswerWeights& weights,
          const AnswerPaths& paths)
      : trace_(trace),
        rows_(rows),
        weights_(weights),
        paths_(paths),
        length_(rows.answer.dim(1)),
        early_(std::min(length_, rows.most_early)) {}

  AnswerLosses run() {
    if (!paths_.one_pass)
      looped();
    else if (paths_.head_rows)
      tiled();
    else
      whole();
    return losses_;
  }

 private:
  LanguageModelHead head(Tensor hidden) { return decoder_head(trace_, hidden, rows_.decoder); }

  RowStates pass(int64_t tokens) {
    return row_states(trace_, rows_.decoder, rows_.layout, rows_.prefix,
                      places(rows_.answer, 0, tokens), rows_.layers, rows_.additions);
  }
  // Of the places that predict tokens begin to end of the answer: [B,end - begin,V].
  Tensor logits_at(const RowStates& row, int64_t begin, int64_t end) {
    const int64_t first = row.place + begin, last = row.place + end;
    if (paths_.head_rows)
      return language_model_logits(trace_, head(slice(row.states.last, 1, first, last)));
    return slice(language_model_logits(trace_, head(row.states.last)), 1, first, last);
  }
  Tensor losses_at(Tensor logits, int64_t begin, int64_t end) {
    return cross_entropy(logits, places(rows_.answer, begin, end));
  }

  // all + weight first + early_weight early, of losses of their own.
  void weigh() {
    const Tensor weight = weights_.autoscale
                              ? autoscaled(weights_.first, losses_.first, losses_.all)
                              : weights_.first;
    losses_.weighted = losses_.all + weight * losses_.first + weights_.early * losses_.early;
  }

  // One row of each answer: of x [B,T,...] -> [B,...].
  Tensor first_of(Tensor x) {
    GraphBuilder& builder = trace_.builder();
    const int64_t batch = x.dim(0);
    const Tensor row = iota(builder, {DType::i32, {batch}}, 0) * static_cast<double>(length_) +
                       argmax(rows_.first, 1);
    return gather(reshape(x, x.shape().without(0).with(0, batch * length_)), row);
  }
  void take_first(Tensor logits) {
    losses_.first_logits = logits;
    losses_.first_token = first_of(rows_.answer);
    losses_.first_factor = reduce_sum(rows_.first, {1});
  }

  // One pass; all logits of every place exist.
  void whole() {
    const RowStates row = pass(length_);
    const Tensor logits = logits_at(row, 0, length_);
    const Tensor each = losses_at(logits, 0, length_);
    losses_.all = factored_sum(each, rows_.all);
    losses_.first = factored_sum(each, rows_.first);
    losses_.early = factored_sum(each, rows_.early);
    weigh();
    take_first(first_of(logits));
    if (!rows_.has_teacher) return;
    take_states(row, 0, early_);
    losses_.logits = places(logits, 0, early_);
  }

  void take_states(const RowStates& row, int64_t begin, int64_t end) {
    const auto taken = [&](Tensor x) { return slice(x, 1, row.place + begin, row.place + end); };
    losses_.states.last = taken(row.states.last);
    for (const Tensor& each : row.states.chosen) losses_.states.chosen.push_back(taken(each));
  }

  // One pass; logits exist where a teacher is compared with them, of the first tokens, and elsewhere a tile at a time.
  void tiled() {
    const RowStates row = pass(length_);
    const Tensor hidden = slice(row.states.last, 1, row.place, row.place + length_);
    const int64_t known = rows_.has_teacher ? early_ : 0;
    take_first(language_model_logits(trace_, head(first_of(hidden))));
    const Tensor first = cross_entropy(losses_.first_logits, losses_.first_token);
    Tensor factors = rows_.all + weights_.early * rows_.early;
    if (!weights_.autoscale) factors = factors + weights_.first * rows_.first;
    Tensor weighted, values;
    if (known > 0) {
      losses_.logits = language_model_logits(trace_, head(places(hidden, 0, known)));
      take_states(row, 0, known);
      values = losses_at(losses_.logits, 0, known);
      weighted = factored_sum(values, places(factors, 0, known));
    }
    if (known < length_) {
      const LanguageModelHead tile = head(places(hidden, known, length_));
      const Tensor weight = cast(tile.weight, tile.hidden.dtype());
      const Tensor targets = places(rows_.answer, known, length_);
      const LinearCrossEntropyOptions options{
          .weights = places(factors, known, length_),
          .rows = std::max(kFewestRows, kTileBytes / (4 * rows_.decoder.vocabulary))};
      const Tensor sum = linear_cross_entropy(tile.hidden, weight, targets, options);
      const Tensor rest = linear_cross_entropy_losses(tile.hidden, weight, targets, options);
      weighted = weighted.valid() ? weighted + sum : sum;
      values = values.valid() ? concat(std::vector<Tensor>{values, rest}, 1) : rest;
    }
    values = stop_gradient(values);
    losses_.all = factored_sum(values, rows_.all);
    losses_.early = factored_sum(values, rows_.early);
    losses_.first = factored_sum(first, losses_.first_factor);
    losses_.weighted = weighted;
    if (weights_.autoscale)
      losses_.weighted =
          weighted + autoscaled(weights_.first, losses_.first, losses_.all) * losses_.first;
  }

  // A pass for all tokens, one for the first, and one for each of the first K.
  void looped() {
    const RowStates row = pass(length_);
    const Tensor logits = logits_at(row, 0, length_);
    const Tensor each = losses_at(logits, 0, length_);
    losses_.all = factored_sum(each, rows_.all);
    take_first(first_of(logits));
    // The first content token is one of the first two, but for answers that begin with white space of their own.
    const int64_t near = std::min<int64_t>(length_, 2);
    losses_.first = factored_sum(losses_at(logits_at(pass(near), 0, near), 0, near),
                                 places(rows_.first, 0, near));
    if (near < length_)
      losses_.first = losses_.first +
                      factored_sum(places(each, near, length_), places(rows_.first, near, length_));
    losses_.early = Tensor();
    for (int64_t t = 0; t < early_; ++t) {
      const Tensor one = factored_sum(losses_at(logits_at(pass(t + 1), t, t + 1), t, t + 1),
                                      places(rows_.early, t, t + 1));
      losses_.early = losses_.early.valid() ? losses_.early + one : one;
    }
    weigh();
    if (rows_.has_teacher) looped_states();
  }

  void looped_states() {
    std::vector<Tensor> last, logits;
    std::vector<std::vector<Tensor>> chosen(rows_.layers.size());
    for (int64_t t = 0; t < early_; ++t) {
      const RowStates row = pass(t + 1);
      logits.push_back(logits_at(row, t, t + 1));
      const auto taken = [&](Tensor x) { return slice(x, 1, row.place + t, row.place + t + 1); };
      last.push_back(taken(row.states.last));
      for (size_t i = 0; i < chosen.size(); ++i) chosen[i].push_back(taken(row.states.chosen[i]));
    }
    const auto together = [](const std::vector<Tensor>& parts) {
      return parts.size() == 1 ? parts.front() : concat(parts, 1);
    };
    losses_.logits = together(logits);
    losses_.states.last = together(last);
    for (const std::vector<Tensor>& each : chosen) losses_.states.chosen.push_back(together(each));
  }

  Trace& trace_;
  const AnswerBatch& rows_;
  const AnswerWeights& weights_;
  const AnswerPaths& paths_;
  const int64_t length_, early_;
  AnswerLosses losses_;
};

}  // namespace

AnswerLosses answer_losses(Trace& trace, const AnswerBatch& rows, const AnswerWeights& weights,
                           const AnswerPaths& paths) {
  return Answers(trace, rows, weights, paths).run();
}

}  // namespace fullbore::latentwire
