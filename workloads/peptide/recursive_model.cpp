#include "workloads/peptide/recursive_model.h"

#include <fmt/format.h>

#include <cmath>
#include <numbers>
#include <optional>

#include "fullbore/base/error.h"
#include "fullbore/nn/modules.h"
#include "workloads/peptide/layers.h"

namespace fullbore::peptide {
namespace {

constexpr int64_t kIntensityChannels = 32;
constexpr int64_t kChargeChannels = 16;
constexpr int64_t kCharges = 7;  // 0 to 6
constexpr double kHighestFrequency = 20000;

Layers::Options layer_options(const ModelSizes& sizes) {
  return {.width = sizes.width, .heads = sizes.heads, .dropout = sizes.dropout};
}

std::string layer(int64_t index) { return fmt::format("layers.{}", index); }

// log intensity through a small network: [B,P] -> [B,P,32].
Tensor intensity_embedding(Trace& trace, Tensor intensity) {
  const Scope scope(trace, "intensity");
  const Tensor logs = log(expand_dims(intensity, 2) + 1e-8);
  return dense(trace, "down", relu(dense(trace, "up", logs, kIntensityChannels)),
               kIntensityChannels);
}

// [B,H]: mass (or mass over charge) and charge, on top of a learned vector.
Tensor precursor_token(Trace& trace, const Spectra& spectra, const ModelSizes& sizes) {
  constexpr double kProton = 1.00727;  // Da
  const Tensor charge = cast(spectra.precursor_charge, DType::f32);
  const Tensor mass =
      sizes.precursor_mz ? spectra.precursor_mass / charge + kProton : spectra.precursor_mass;
  const Tensor parts[] = {mass_embedding(trace, "precursor_mass", mass,
                                         sizes.width - kChargeChannels, 1.5 * sizes.max_mass),
                          nn::embedding(trace, "charge_embedding", spectra.precursor_charge,
                                        kCharges, kChargeChannels, Initializer::normal(1))};
  const Tensor learned =
      trace.parameter("precursor_token", {sizes.width}, Initializer::normal(0.02));
  return concat(parts, 1) + learned;
}

/// The spectrum as the decoder sees it.
struct Encoded {
  Tensor hidden;   // [B,L,H]
  Tensor visible;  // bool [B,1,1,L]
};

Encoded encode(Trace& trace, const Spectra& spectra, const ModelSizes& sizes) {
  const Tensor token = precursor_token(trace, spectra, sizes);
  const Tensor peaks[] = {mass_embedding(trace, "peak_mass", spectra.mz,
                                         sizes.width - kIntensityChannels, sizes.max_mass),
                          intensity_embedding(trace, spectra.intensity)};
  const Tensor sequence[] = {expand_dims(token, 1), concat(peaks, 2)};
  const int64_t batch = spectra.mz.dim(0);
  const Tensor seen[] = {full(trace.builder(), {DType::boolean, {batch, 1}}, 1), spectra.peak_mask};
  const Tensor visible = expand_dims(expand_dims(concat(seen, 1), 1), 1);
  const Scope scope(trace, "encoder");
  const Layers layers(trace, layer_options(sizes));
  Tensor x = concat(sequence, 1);
  for (int64_t i = 0; i < sizes.encoder_layers; ++i) x = layers.encode(layer(i), x, visible);
  return {nn::layer_norm(trace, "final_norm", x), visible};
}

/// The recursion over one batch.
class Core {
 public:
  Core(Trace& trace, const ModelSizes& sizes, const Encoded& encoded)
      : trace_(trace),
        sizes_(sizes),
        layers_(trace, layer_options(sizes)),
        visible_(encoded.visible) {
    const Scope scope(trace_, "decoder");
    for (int64_t i = 0; i < sizes_.decoder_layers; ++i)
      spectrum_.push_back(layers_.look_at(layer(i), encoded.hidden));
  }

  Answers run() {
    const int64_t batch = visible_.dim(0);
    const Tensor z0 =
        trace_.parameter("latent_start", {sizes_.slots, sizes_.width}, Initializer::normal(0.02));
    const Tensor y0 =
        trace_.parameter("answer_start", {sizes_.slots, sizes_.symbols}, Initializer::zeros());
    std::vector<Tensor> sliced;
    if (sizes_.step_embedding)
      sliced.push_back(nn::embedding_table(trace_, "step_embedding", sizes_.supervision_steps,
                                           sizes_.width, Initializer::normal(0.02)));
    const LoopResult result =
        loop(visible_.builder(),
             {broadcast_to(y0, {batch, sizes_.slots, sizes_.symbols}),
              broadcast_to(z0, {batch, sizes_.slots, sizes_.width})},
             sliced, {.iterations = sizes_.supervision_steps}, [&](const LoopBody& body) {
               const IterationScope iteration(trace_, body.index, sizes_.supervision_steps);
               const Tensor step = body.slices.empty() ? Tensor() : body.slices[0];
               const Tensor base = answer_embedding(body.carried[0], step);
               const Tensor z = think(base, body.carried[1]);
               const Tensor y = answer(base + z, body.carried[0]);
               return IterationResults{.carried = {y, z}, .stacked = {y}};
             });
    return {result.stacked[0], result.carried[1]};
  }

 private:
  // An answer's probabilities, its slots' places, and which answer is to come: [B,S,H].
  Tensor answer_embedding(Tensor y, Tensor step) {
    Tensor base = dense(trace_, "soft_embedding", softmax(y), sizes_.width);
    base = base + nn::embedding_table(trace_, "position_embedding", sizes_.slots, sizes_.width,
                                      Initializer::normal(1));
    return step.valid() ? base + step : base;
  }

  Tensor final_norm(Tensor h) {
    const Scope scope(trace_, "decoder");
    return nn::layer_norm(trace_, "final_norm", h);
  }

  Tensor think(Tensor base, Tensor latent) {
    if (sizes_.latent_steps == 0) return latent;
    const LoopResult result = loop(
        latent.builder(), {latent}, {}, {.iterations = sizes_.latent_steps},
        [&](const LoopBody& body) {
          const IterationScope iteration(trace_, body.index, sizes_.latent_steps);
          const Tensor z = body.carried[0];
          return IterationResults{.carried = {final_norm(decode(base + z, /*itself=*/false)) + z}};
        });
    return result.carried[0];
  }

  Tensor decode(Tensor h, bool itself) {
    const Scope scope(trace_, "decoder");
    for (int64_t i = 0; i < sizes_.decoder_layers; ++i)
      h = itself ? layers_.decode(layer(i), h, layers_.look_at(layer(i), h), {})
                 : layers_.decode(layer(i), h, spectrum_[static_cast<size_t>(i)], visible_);
    return h;
  }

  // To act, each layer looks at its own input instead of the spectrum.
  Tensor answer(Tensor h, Tensor before) {
    const Tensor hidden = final_norm(decode(h, /*itself=*/true));
    const Tensor candidate = dense(trace_, "head", hidden, sizes_.symbols);
    if (!sizes_.gated_answer) return candidate;
    const Scope scope(trace_, "gate");
    const Tensor gate = sigmoid(linear(
        hidden, trace_.parameter("weight", {sizes_.symbols, sizes_.width}, Initializer::zeros()),
        trace_.parameter(
            "bias", {sizes_.symbols},
            Initializer::given(std::vector<double>(static_cast<size_t>(sizes_.symbols), -2.0)))));
    return (1.0 - gate) * before + gate * candidate;
  }

  Trace& trace_;
  const ModelSizes& sizes_;
  Layers layers_;
  Tensor visible_;
  std::vector<Layers::Context> spectrum_;
};

void require_sizes(const ModelSizes& sizes) {
  if (sizes.heads <= 0 || sizes.width % sizes.heads != 0)
    throw UsageError(fmt::format("peptide: {} channels are not a multiple of {} heads", sizes.width,
                                 sizes.heads));
  if (sizes.width % 2 != 0 || sizes.width < kIntensityChannels + 4)
    throw UsageError(fmt::format(
        "peptide: {} channels; an even number of at least {} was expected: sines and cosines of "
        "masses beside {} of intensities",
        sizes.width, kIntensityChannels + 4, kIntensityChannels));
}

}  // namespace

Tensor mass_embedding(Trace& trace, const char* name, Tensor mass, int64_t channels,
                      double longest) {
  const Scope scope(trace, name);
  const int64_t count = channels / 2;
  std::vector<double> per_dalton;
  for (int64_t k = 0; k < count; ++k)
    per_dalton.push_back(
        std::pow(kHighestFrequency, static_cast<double>(k) / static_cast<double>(count - 1)) /
        longest);
  const Tensor frequencies =
      constant(trace.builder(), {mass.dtype(), {count}}, std::move(per_dalton));
  const Tensor turns = expand_dims(mass, mass.rank()) * frequencies;
  const Tensor phase = (turns - round(turns)) * (2 * std::numbers::pi);
  const Tensor parts[] = {sin(phase), cos(phase)};
  const Tensor scale = trace.parameter("scale", {channels}, Initializer::ones());
  return concat(parts, mass.rank()) * scale;
}

Answers recursive_model(Trace& trace, const Spectra& spectra, const ModelSizes& sizes) {
  require_sizes(sizes);
  // No answer is embedded by its symbols: the table is there so that checkpoints have what the reference has, and
  // frozen, for it has no gradient and is not to decay.
  const std::string table = "token_embedding.weight";
  trace.state(table, Role::frozen, {DType::f32, {sizes.symbols, sizes.width}},
              Initializer::normal(1));
  return Core(trace, sizes, encode(trace, spectra, sizes)).run();
}

}  // namespace fullbore::peptide
