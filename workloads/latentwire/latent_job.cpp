#include "workloads/latentwire/latent_job.h"

#include <algorithm>
#include <string>

#include "fullbore/nn/language_model_loss.h"
#include "workloads/latentwire/answer_losses.h"
#include "workloads/latentwire/conditioning.h"
#include "workloads/latentwire/latent_keys.h"
#include "workloads/latentwire/receiver_weights.h"
#include "workloads/latentwire/schedules.h"
#include "workloads/latentwire/teacher_cache.h"
#include "workloads/latentwire/training_statistics.h"

namespace fullbore::latentwire {
namespace {

bool is_on(const std::string& mode) { return mode != "off"; }

bool wants_teacher(const Config& config) {
  const LatentKeys::Loss& keys = latent_keys(config).loss;
  return keys.distillation_weight > 0 || keys.state_weight > 0;
}

// What lies beside the matrices is all that a pass over the text trains.
bool trains_on_text(const Config& config) {
  const LatentKeys& keys = latent_keys(config);
  return has_text_steps(config) && keys.loss.text_step_weight > 0 && keys.conditioning.rank > 0;
}

ConditioningOptions conditioning(const LatentKeys::Conditioning& keys) {
  return {.deep_prefix = keys.deep_prefix,
          .attending_blocks = keys.attending_blocks,
          .attending_heads = keys.attending_heads,
          .coprocessor = keys.coprocessor,
          .rank = keys.rank,
          .rank_scale = keys.rank_scale,
          .adapted_blocks = keys.adapted_blocks};
}

Tensor number(Trace& trace, double value) { return full(trace.builder(), {DType::f32, {}}, value); }

/// A receiver's fields of a batch.
struct ReceiverBatch {
  Tensor answer;             ///< i32 [B,T]
  Tensor all, first, early;  ///< factors, f32 [B,T]
  Tensor prompt, prompt_lengths;
  Tensor teacher;  ///< from files: f32 [B,states,K,d]
};

/// Losses of one receiver, f32 [] each: sums over the rows of this part of a batch.
struct ReceiverLosses {
  Tensor of_rows;    ///< weighted sum of what is a sum over rows
  Tensor of_prefix;  ///< of what is a mean over them
  std::vector<Metric> metrics;
  std::vector<Carried> carried;
};

/// Writes one forward pass.
class Pass {
 public:
  Pass(Trace& trace, const Config& config, const std::vector<Receiver>& receivers,
       const TextEncoder* text)
      : trace_(trace),
        config_(config),
        keys_(latent_keys(config)),
        receivers_(receivers),
        text_(text) {}

  Loss loss(std::span<const Tensor> batch) {
    const size_t count = receivers_.size();
    const SlotSplit split = slot_split(config_, count);
    Tensor wire = encode_prompts(trace_, batch[PromptFields::kUnits], batch[PromptFields::kLengths],
                                 encoder_sizes(config_, count, text_));
    if (trace_.training() && std::min(keys_.wire.keep, keys_.wire.final_keep) < 1)
      wire = drop_slots(trace_, wire, split, batch[PromptFields::kKeep]);
    first_weight_ = batch[PromptFields::kFirstWeight];
    if (has_text_steps(config_) && trace_.training()) {
      text_step_ = batch[PromptFields::kText];
      latent_scale_ = batch[PromptFields::kLatentScale];
    }
    // Factors count in the whole batch, of which this may be a part: the mean over parts is what is wanted.
    parts_ = static_cast<double>(config_.train.batch_size) / static_cast<double>(wire.dim(0));
    Tensor sum;
    std::vector<Metric> metrics;
    std::vector<Carried> carried;
    for (size_t i = 0; i < count; ++i) {
      const ReceiverLosses each = of_receiver(i, batch, wire);
      const Tensor own = each.of_rows * (parts_ / static_cast<double>(count)) + each.of_prefix;
      sum = sum.valid() ? sum + own : own;
      metrics.insert(metrics.end(), each.metrics.begin(), each.metrics.end());
      carried.insert(carried.end(), each.carried.begin(), each.carried.end());
    }
    if (caches_teacher(config_)) metrics.push_back({"teacher_found", batch.back()});
    if (text_step_.valid()) {
      metrics.push_back({"text_step", text_step_});
      metrics.push_back({"latent_scale", latent_scale_});
    }
    Loss loss(sum);
    loss.metrics = std::move(metrics);
    loss.carried = std::move(carried);
    if (text_step_.valid() && keys_.loss.text_step_weight > 0 && !trains_on_text(config_))
      for (const Receiver& each : receivers_) loss.dead.push_back(each.name + "_text");
    return loss;
  }

 private:
  ReceiverBatch fields_of(size_t receiver, std::span<const Tensor> batch) const {
    const bool text = reads_text(config_);
    const auto fields = batch.subspan(PromptFields::of_receiver(receiver, text));
    const Tensor factors = fields[PromptFields::kFactors];
    const auto kind = [&](int64_t which) {
      return squeeze(slice(factors, 1, which, which + 1), 1);
    };
    return {fields[PromptFields::kAnswer],
            kind(0),
            kind(1),
            kind(2),
            text ? fields[PromptFields::kPrompt] : Tensor(),
            text ? fields[PromptFields::kPromptLengths] : Tensor(),
            caches_teacher(config_)
                ? batch[PromptFields::of_teacher(receiver, receivers_.size(), text)]
                : Tensor()};
  }

  ReceiverLosses of_receiver(size_t number, std::span<const Tensor> batch, Tensor wire) {
    const Receiver& receiver = receivers_[number];
    const ReceiverBatch fields = fields_of(number, batch);
    const ReceiverPrefix prefix =
        receiver_prefix(trace_, config_, receiver, number, receivers_.size(), wire);
    const FrozenScope frozen = frozen_receiver(trace_, receiver);
    const Scope scope(trace_, receiver.scope());
    const std::vector<int64_t> layers =
        keys_.loss.state_weight > 0 ? keys_.loss.state_layers : std::vector<int64_t>();
    const AnswerBatch rows{
        .decoder = receiver.decoder,
        .layout = receiver.layout,
        .prefix = prefix.in_row(),
        .additions = prefix.additions,
        .answer = fields.answer,
        .all = fields.all,
        .first = fields.first,
        .early = fields.early,
        .most_early = std::max(keys_.loss.early_tokens, keys_.loss.final_early_tokens),
        .has_teacher = wants_teacher(config_),
        .layers = layers};
    const AnswerLosses losses = answer_losses(
        trace_, rows,
        {.first = first_weight_,
         .autoscale = keys_.loss.first_autoscale,
         .early = keys_.loss.early_weight},
        {.one_pass = is_on(keys_.switches.one_pass), .head_rows = is_on(keys_.switches.head_rows)});
    ReceiverLosses result;
    const auto tell = [&](const char* name, Tensor mean) {
      result.metrics.push_back({receiver.name + "_" + name, mean});
    };
    const auto tell_sum = [&](const char* name, Tensor sum) { tell(name, sum * parts_); };
    result.of_rows = losses.weighted;
    tell_sum("all", losses.all);
    tell_sum("first", losses.first);
    tell_sum("early", losses.early);
    tell("padding", reduce_mean(cast(less(fields.answer, 0.0), DType::f32), {0, 1}));
    if (wants_teacher(config_))
      add_teacher(receiver, fields, losses.states, losses.logits, layers, result);
    add_first_token(receiver, losses, result);
    if (keys_.loss.slot_weight > 0) add_slots(receiver, fields, prefix.vectors, result);
    if (text_step_.valid()) add_text_step(receiver, fields, prefix, result);
    result.of_prefix = penalties(receiver, prefix);
    if (prefix.gists.valid()) add_gists(receiver, fields, prefix.gists, result);
    tell("scale", prefix.scale);
    tell("rms", reduce_mean(row_rms(prefix.raw), {0}));
    tell("rms_calibrated", reduce_mean(row_rms(prefix.vectors), {0}));
    result.carried = prefix.carried;
    return result;
  }

  Tensor logits_of(const Receiver& receiver, Tensor hidden) {
    return language_model_logits(trace_, decoder_head(trace_, hidden, receiver.decoder));
  }

  // What files say of prompt_states().
  nn::DecoderStates recalled(Tensor teacher, int64_t places) const {
    const Tensor early = slice(teacher, 2, 0, places);
    std::vector<Tensor> each;
    for (int64_t i = 0; i < teacher.dim(1); ++i)
      each.push_back(squeeze(slice(early, 1, i, i + 1), 1));
    nn::DecoderStates states;
    const bool last = keys_.loss.distillation_weight > 0;
    if (last) states.last = each.front();
    states.chosen.assign(each.begin() + (last ? 1 : 0), each.end());
    return states;
  }

  // The same model on the text: its own teacher. K places at most.
  void add_teacher(const Receiver& receiver, const ReceiverBatch& fields,
                   const nn::DecoderStates& states, Tensor logits,
                   const std::vector<int64_t>& layers, ReceiverLosses& result) {
    const int64_t places = teacher_form(config_, fields.answer.dim(1)).places;
    const nn::DecoderStates teacher = fields.teacher.valid()
                                          ? recalled(fields.teacher, places)
                                          : prompt_states(trace_, receiver.decoder, fields.prompt,
                                                          fields.prompt_lengths, places, layers);
    const auto early = [&](Tensor x) { return slice(x, 1, 0, places); };
    const Tensor factors = early(fields.early);
    const auto add = [&](double weight, Tensor loss, const char* name) {
      const Tensor weighted = weight * loss;
      result.of_rows =
          result.of_rows + (text_step_.valid() ? (1.0 - text_step_) * weighted : weighted);
      result.metrics.push_back({receiver.name + name, loss * parts_});
    };
    if (keys_.loss.distillation_weight > 0) {
      const Tensor kd = distillation(logits_of(receiver, teacher.last), early(logits), factors,
                                     keys_.loss.temperature);
      add(keys_.loss.distillation_weight, kd, "_kd");
    }
    Tensor distance;
    for (size_t i = 0; i < layers.size(); ++i) {
      const Tensor each = state_distillation(teacher.chosen[i], early(states.chosen[i]), factors);
      distance = distance.valid() ? distance + each : each;
    }
    if (distance.valid()) add(keys_.loss.state_weight, distance, "_states");
  }

  void add_first_token(const Receiver& receiver, const AnswerLosses& losses,
                       ReceiverLosses& result) {
    const Tensor logits = losses.first_logits;
    const Tensor right = equal(argmax(logits, 1), losses.first_token);
    result.metrics.push_back({receiver.name + "_first_accuracy",
                              factored_sum(cast(right, DType::f32), losses.first_factor) * parts_});
    const Tensor log_p = log_softmax(cast(logits, DType::f32));
    const Tensor entropy = neg(reduce_sum(exp(log_p) * log_p, {1}));
    const Tensor first = factored_sum(entropy, losses.first_factor);
    result.metrics.push_back({receiver.name + "_first_entropy", first * parts_});
    if (keys_.loss.entropy_weight > 0)
      result.of_rows = result.of_rows - keys_.loss.entropy_weight * first;
  }

  void add_slots(const Receiver& receiver, const ReceiverBatch& fields, Tensor vectors,
                 ReceiverLosses& result) {
    const int64_t pairs = std::min(vectors.dim(1), fields.answer.dim(1));
    const auto first = [&](Tensor x) { return slice(x, 1, 0, pairs); };
    const Tensor answer = decoder_embeddings(trace_, first(fields.answer), receiver.decoder);
    const Distance distance = keys_.loss.slot_distance == "cosine"    ? Distance::cosine
                              : keys_.loss.slot_distance == "squared" ? Distance::squared
                                                                      : Distance::both;
    const Tensor sum = vector_distance(first(vectors), answer, first(fields.all), distance);
    result.of_rows = result.of_rows + keys_.loss.slot_weight * sum;
    result.metrics.push_back({receiver.name + "_slots", sum * parts_});
  }

  // Scales what there is by now, and adds what the text says.
  void add_text_step(const Receiver& receiver, const ReceiverBatch& fields,
                     const ReceiverPrefix& prefix, ReceiverLosses& result) {
    const int64_t pairs =
        std::min({prefix.vectors.dim(1), fields.answer.dim(1), keys_.loss.align_tokens});
    const auto first = [&](Tensor x) { return slice(x, 1, 0, pairs); };
    const Tensor answer = decoder_embeddings(trace_, first(fields.answer), receiver.decoder);
    const Tensor there = cast(greater_equal(first(fields.answer), 0.0), DType::f32);
    const Tensor factors =
        there / (reduce_sum(there, {1}, true) * static_cast<double>(config_.train.batch_size));
    Tensor added = vector_distance(first(prefix.vectors), answer, factors, Distance::squared);
    result.metrics.push_back({receiver.name + "_align", added * parts_});
    added = keys_.loss.align_weight * added;
    if (trains_on_text(config_)) {
      const nn::DecoderStates states =
          prompt_states(trace_, receiver.decoder, fields.prompt, fields.prompt_lengths,
                        fields.answer.dim(1), {}, {.beside = prefix.additions.beside});
      const Tensor text =
          factored_sum(cross_entropy(logits_of(receiver, states.last), fields.answer), fields.all);
      result.metrics.push_back({receiver.name + "_text", text * parts_});
      added = added + keys_.loss.text_step_weight * text;
    }
    result.of_rows = latent_scale_ * result.of_rows + text_step_ * added;
  }

  // The first tokens of the text; each row's share is the same, whatever part of a batch it is in.
  void add_gists(const Receiver& receiver, const ReceiverBatch& fields, Tensor gists,
                 ReceiverLosses& result) {
    const int64_t tokens = std::min(gists.dim(1), fields.prompt.dim(1));
    const Tensor text =
        decoder_embeddings(trace_, slice(fields.prompt, 1, 0, tokens), receiver.decoder);
    const Tensor factors =
        gist_factors(trace_, fields.prompt_lengths, tokens, keys_.conditioning.gist_dropped);
    const Tensor distance =
        vector_distance(slice(gists, 1, 0, tokens), text, factors, Distance::squared);
    result.of_prefix = result.of_prefix + keys_.loss.gist_weight * distance;
    result.metrics.push_back({receiver.name + "_gists", distance});
  }

  // Of an adapter, whatever the rows; those of statistics are of this part of a batch.
  Tensor penalties(const Receiver& receiver, const ReceiverPrefix& prefix) {
    Tensor sum = keys_.loss.scale_weight * squared_distance(prefix.scale, number(trace_, 1));
    const bool wants_rms = keys_.loss.rms_weight > 0, wants = keys_.loss.statistics_weight > 0;
    if (!wants_rms && !wants) return sum;
    const TableStatistics table = receiver_statistics(receiver);
    if (wants_rms)
      sum = sum + keys_.loss.rms_weight * squared_distance(row_rms(prefix.raw), table.rms);
    if (wants)
      sum = sum + keys_.loss.statistics_weight *
                      statistics_distance(prefix.vectors, table.mean, table.deviation);
    return sum;
  }

  TableStatistics receiver_statistics(const Receiver& receiver) {
    return table_statistics(trace_, receiver);
  }

  Trace& trace_;
  const Config& config_;
  const LatentKeys& keys_;
  const std::vector<Receiver>& receivers_;
  const TextEncoder* text_;
  Tensor first_weight_;
  Tensor text_step_, latent_scale_;  ///< f32 []; none without text steps
  double parts_ = 1;
};

}  // namespace

SlotSplit slot_split(const Config& config, size_t receivers) {
  const LatentKeys::Wire& keys = latent_keys(config).wire;
  return {keys.slots, keys.own_slots, static_cast<int64_t>(receivers)};
}

EncoderSizes encoder_sizes(const Config& config, size_t receivers, const TextEncoder* text) {
  const LatentKeys::Wire& keys = latent_keys(config).wire;
  return {.reads = keys.encoder == "tokens"     ? EncoderSizes::Reads::tokens
                   : keys.encoder == "sentence" ? EncoderSizes::Reads::sentence
                                                : EncoderSizes::Reads::bytes,
          .text = text,
          .width = keys.width,
          .layers = keys.layers,
          .heads = keys.heads,
          .slots = slot_split(config, receivers).wire_slots(),
          .pre_norm = keys.pre_norm,
          .dropout = config.model.dropout};
}

PromptStep prompt_step(const Config& config, int64_t step) {
  const LatentKeys& keys = latent_keys(config);
  const int64_t steps = config.train.steps;
  const FirstWeight::Kind kind = keys.loss.first_schedule == "none"     ? FirstWeight::Kind::none
                                 : keys.loss.first_schedule == "warmup" ? FirstWeight::Kind::warmup
                                                                        : FirstWeight::Kind::cosine;
  const FirstWeight first{kind, keys.loss.first_weight, keys.loss.first_peak, keys.loss.first_hold};
  const Curriculum keep{keys.wire.keep, keys.wire.final_keep, keys.wire.keep_power};
  const Curriculum early{static_cast<double>(keys.loss.early_tokens),
                         static_cast<double>(keys.loss.final_early_tokens), keys.loss.early_power};
  const TextSteps text{keys.loss.text_warmup, keys.loss.text_tail,
                       static_cast<uint64_t>(config.run.seed)};
  const bool is_text = text.is_text(step);
  return {first.at(step, steps), keep.at(step, steps), early.whole_at(step, steps), is_text,
          is_text ? text.latent_scale(step) : 1};
}

PromptStep validation_step(const Config& config) {
  PromptStep step = prompt_step(config, config.train.steps);
  step.text = false;
  step.latent_scale = 1;
  return step;
}

bool has_text_steps(const Config& config) {
  const LatentKeys::Loss& keys = latent_keys(config).loss;
  return keys.text_warmup > 0 || keys.text_tail > 0;
}

bool reads_text(const Config& config) {
  return (wants_teacher(config) && !caches_teacher(config)) || trains_on_text(config) ||
         latent_keys(config).conditioning.gist_tokens > 0;
}

ReceiverPrefix receiver_prefix(Trace& trace, const Config& config, const Receiver& receiver,
                               size_t number_of, size_t receivers, Tensor wire) {
  const LatentKeys& keys = latent_keys(config);
  const TableStatistics table = table_statistics(trace, receiver);
  const Tensor slots =
      slots_of_model(wire, slot_split(config, receivers), static_cast<int64_t>(number_of));
  const AdapterOutput output = adapt_slots(trace, "adapters." + receiver.name, slots,
                                           {.width = receiver.decoder.width,
                                            .refiner = keys.wire.refiner_layers,
                                            .colour = keys.receivers.colour},
                                           {.mean = table.mean, .deviation = table.deviation});
  ReceiverPrefix prefix{output.prefix, output.prefix, output.scale};
  if (keys.receivers.calibration == "embed_rms")
    prefix.vectors = calibrate(output.prefix, table.rms * keys.receivers.gain);
  if (keys.receivers.calibration == "fixed")
    prefix.vectors =
        calibrate(output.prefix, number(trace, keys.receivers.fixed_rms * keys.receivers.gain));
  if (keys.receivers.calibration == "train_stats") {
    const TrainingStatistics seen = training_statistics(trace, receiver);
    const Tensor by_row = calibrate(output.prefix, table.rms * keys.receivers.gain);
    prefix.vectors = trace.training() ? by_row : calibrate_as_trained(seen, output.prefix, by_row);
    if (trace.training()) prefix.carried = updated_statistics(seen, output.prefix, by_row, table);
  }
  const std::string scope = "adapters." + receiver.name;
  prefix.is_in_row = !keys.conditioning.deep_prefix;
  if (const ConditioningOptions options = conditioning(keys.conditioning); options.any())
    prefix.additions = condition(trace, scope, options, receiver.decoder, prefix.vectors, slots);
  if (keys.conditioning.gist_tokens > 0)
    prefix.gists = gist_embeddings(trace, scope + ".gist", slots, keys.conditioning.gist_tokens,
                                   keys.wire.heads, receiver.decoder.width);
  return prefix;
}

LossFunction latent_loss(const Config& config,
                         std::shared_ptr<const std::vector<Receiver>> receivers,
                         std::shared_ptr<const TextEncoder> text) {
  return [config, receivers = std::move(receivers), text = std::move(text)](
             Trace& trace, std::span<const Tensor> batch) {
    return Pass(trace, config, *receivers, text.get()).loss(batch);
  };
}

}  // namespace fullbore::latentwire
