#include "workloads/hybrid/hybrid_diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fullbore/autodiff/backward.h"
#include "fullbore/optim/gradient_statistics.h"
#include "fullbore/text/text_keys.h"
#include "workloads/hybrid/hybrid_keys.h"
#include "workloads/hybrid/hybrid_language.h"
#include "workloads/hybrid/hybrid_state_probe.h"
#include "workloads/hybrid/state_statistics.h"

namespace fullbore {
namespace {

constexpr int64_t kLong = 512, kShort = 64, kFlow = 256;
constexpr size_t kTexts = 10;
constexpr uint64_t kGradientBatches = 5;

/// The loss with the norms of its gradients for metrics.
LossFunction with_gradients(const LossFunction& loss) {
  return [loss](Trace& trace, std::span<const Tensor> batch) {
    Loss made = loss(trace, batch);
    std::vector<Tensor> wanted;
    for (const Trace::Parameter& each : trace.parameters()) wanted.push_back(each.tensor);
    const std::vector<Tensor> all = gradient(made.mean, wanted);
    std::vector<Tensor> rwkv, mamba;
    for (size_t i = 0; i < all.size(); ++i) {
      const std::string& name = trace.parameters()[i].name;
      if (name.find(".rwkv") != std::string::npos) rwkv.push_back(all[i]);
      if (name.find(".mamba") != std::string::npos) mamba.push_back(all[i]);
    }
    made.metrics = {
        {"all", global_norm(all)}, {"rwkv", global_norm(rwkv)}, {"mamba", global_norm(mamba)}};
    return made;
  };
}

class Examination {
 public:
  Examination(TrainedModel& model, const HeldOut& held_out, int64_t most_batches, Console& console)
      : model_(model),
        held_out_(held_out),
        most_batches_(most_batches > 0 ? static_cast<uint64_t>(most_batches) : UINT64_MAX),
        console_(console),
        sizes_(hybrid_config(model.config, model.tokenizer->vocabulary_size())) {}

  std::vector<Diagnostic> run() {
    branches();
    gradients();
    contributions();
    long_stretches();
    states();
    return found_;
  }

 private:
  void report(std::string name, double value, std::optional<Band> band = {}) {
    found_.push_back({std::move(name), value, band});
  }

  Evaluation evaluate(const char* what, const LossFunction& loss, ValidationSet set) {
    set.batches = std::min(set.batches, most_batches_);
    Evaluator evaluator(loss, set, model_.state, trained_options(model_.config));
    return *evaluator.evaluate([&](uint64_t done) {
      Progress progress;
      progress.phase = fmt::format("{}, {}/{}", what, done, set.batches);
      console_.live(progress);
      return true;
    });
  }
  LossFunction loss(const HybridConfig& sizes, bool figures = false) const {
    Config config = model_.config;
    hybrid_keys(config).diagnostics = figures;
    return hybrid_loss_function(config, sizes);
  }

  void branches() {
    const Evaluation whole = evaluate("branches", loss(sizes_, true), held_out_(model_.config));
    whole_loss_ = whole.loss;
    report("loss", whole.loss);
    double rwkv = 0, mamba = 0;
    const auto layers = static_cast<double>(sizes_.layers);
    for (const auto& [name, value] : whole.metrics) {
      if (name.ends_with("variance/rwkv")) rwkv += value / layers;
      if (name.ends_with("variance/mamba")) mamba += value / layers;
      if (name == "channel_entropy") {
        report(name, value, channel_entropy_band(value));
        report("channel_entropy/share_of_most",
               value / std::log(static_cast<double>(sizes_.width)));
      } else {
        report(name, value);
      }
    }
    report("deviation/rwkv", std::sqrt(rwkv), branch_deviation_band(std::sqrt(rwkv)));
    report("deviation/mamba", std::sqrt(mamba), branch_deviation_band(std::sqrt(mamba)));
    report("variance/rwkv_by_mamba", rwkv / mamba, variance_ratio_band(rwkv / mamba));
  }

  void gradients() {
    ValidationSet set = held_out_(model_.config);
    set.batches = std::min(set.batches, kGradientBatches);
    const StepResults norms = evaluate("gradients", with_gradients(loss(sizes_)), set).metrics;
    report("gradient_norm", norms[0].second, gradient_norm_band(norms[0].second));
    const double ratio = norms[1].second / norms[2].second;
    report("gradient_norm/rwkv_by_mamba", ratio, gradient_ratio_band(ratio));
  }

  // What the loss rises by.
  double without(HybridAblation ablation, const char* what) {
    HybridConfig sizes = sizes_;
    sizes.ablation = ablation;
    return evaluate(what, loss(sizes), held_out_(model_.config)).loss - whole_loss_;
  }
  void contributions() {
    const double rwkv = without(HybridAblation::rwkv, "without RWKV");
    const double mamba = without(HybridAblation::mamba, "without Mamba");
    report("contribution/rwkv", rwkv);
    report("contribution/mamba", mamba, contribution_band(rwkv, mamba));
    report("contribution/rwkv_state", without(HybridAblation::rwkv_state, "RWKV without state"));
    report("contribution/mamba_state", without(HybridAblation::mamba_state, "Mamba without state"));
  }

  ValidationSet rows_of(int64_t length) const {
    Config config = model_.config;
    text_keys(config).model.context = length;
    if (text_keys(config).data.batching != "sequences") text_keys(config).data.batching = "windows";
    text_keys(config).data.buckets = {};
    text_keys(config).data.tokens_per_batch = 0;
    return held_out_(config);
  }
  void long_stretches() {
    const double at_once = evaluate("long stretches", loss(sizes_), rows_of(kLong)).loss;
    const double in_parts = evaluate("short stretches", loss(sizes_), rows_of(kShort)).loss;
    const double ratio = std::exp(at_once - in_parts);
    report("perplexity/512_by_64", ratio, longer_segments_band(ratio));
  }

  // Whole rows of held-out text.
  ProbeTexts texts() const {
    const ValidationSet set = rows_of(kLong);
    ProbeTexts texts;
    std::vector<TensorMemory> memory;
    std::vector<void*> buffers;
    for (const BatchField& field : set.source->fields()) {
      memory.push_back(allocate_tensor_memory(field.type.bytes()));
      buffers.push_back(memory.back().get());
    }
    const Shape& shape = set.source->fields()[0].type.shape;
    const int64_t rows = shape[0], length = shape[1];  // at least kLong
    for (uint64_t batch = 0; batch < set.batches && texts.size() < kTexts; ++batch) {
      set.source->fill(batch, buffers);
      const auto* const tokens = static_cast<const int32_t*>(buffers[0]);
      const auto* const targets = static_cast<const int32_t*>(buffers[1]);
      for (int64_t row = 0; row < rows && texts.size() < kTexts; ++row)
        if (std::all_of(targets + row * length, targets + row * length + kLong,
                        [](int32_t target) { return target >= 0; }))
          texts.emplace_back(tokens + row * length, tokens + row * length + kLong);
    }
    if (texts.size() < kTexts)
      throw DataError(fmt::format(
          "the held-out text has {} stretches of {} tokens; {} are needed to examine states",
          texts.size(), kLong + 1, kTexts));
    return texts;
  }
  void states() {
    const ProbeTexts read = texts();
    console_.live("states");
    const StateProbe probe = probe_states(sizes_, model_, read);
    add(probe.rwkv, "rwkv");
    add(probe.mamba, "mamba");
    ProbeTexts shorter = read;
    for (std::vector<int32_t>& text : shorter) text.resize(kFlow);
    const double flow = information_flow(sizes_, model_, shorter);
    report("information_flow", flow, information_flow_band(flow));
  }
  void add(const BranchMemory& memory, const std::string& branch) {
    const auto verdict = [](bool holds) { return holds ? Band::ok : Band::fail; };
    const std::string name = "state/" + branch + "/";
    report(name + "finite", memory.finite, verdict(memory.finite));
    report(name + "same_for_same_text", memory.repeatable, verdict(memory.repeatable));
    for (const size_t at : {64, 128, 256, 512})
      report(fmt::format("{}norm_at_{}", name, at), memory.norms[at - 1]);
    const double growth = memory.norms.back() / memory.norms[63];
    report(name + "growth", growth, state_growth_band(growth));
    report(name + "variance", memory.variance, state_variance_band(memory.variance));
    report(name + "cosine", memory.cosine, state_cosine_band(memory.cosine));
    report(name + "top_5_singular", memory.top_singular, singular_share_band(memory.top_singular));
    report(name + "beyond_5", memory.saturated, saturation_band(memory.saturated));
    report(name + "low_by_high_frequencies", low_by_high_frequencies(memory.norms));
  }

  TrainedModel& model_;
  const HeldOut& held_out_;
  uint64_t most_batches_;
  Console& console_;
  HybridConfig sizes_;
  double whole_loss_ = 0;
  std::vector<Diagnostic> found_;
};

}  // namespace

std::vector<Diagnostic> diagnose_hybrid(TrainedModel& model, const HeldOut& held_out,
                                        int64_t most_batches, Console& console) {
  if (model.config.model.name != "hybrid" ||
      hybrid_keys(model.config).model.branch == "channel_softmax")
    throw UsageError(
        "eval: --diagnostics examine a hybrid model with two recurrent branches; model.name is " +
        model.config.model.name);
  std::vector<Diagnostic> found = Examination(model, held_out, most_batches, console).run();
  console.clear();
  return found;
}

std::string diagnostics_text(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& each : diagnostics)
    text += fmt::format("{:<38}{:>14.6g}{}\n", each.name, each.value,
                        each.band ? fmt::format("  {}", band_name(*each.band)) : "");
  return text;
}

}  // namespace fullbore
