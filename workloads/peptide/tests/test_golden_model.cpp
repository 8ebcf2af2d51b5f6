#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "fullbore/autodiff/backward.h"
#include "fullbore/base/files.h"
#include "tests/support/interpret_by_name.h"
#include "tests/support/paths.h"
#include "workloads/peptide/objective.h"
#include "workloads/peptide/residues.h"

namespace fullbore::peptide {
namespace {

using Json = nlohmann::ordered_json;  // parameters are numbered in the file's order

// Steele, Lea, Flood 2014; the same formulas as workloads/peptide/tests/golden/peptide.py.
double uniform(uint64_t state) {
  uint64_t z = state + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return 2 * static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53 - 1;
}

const Json& golden() {
  static const Json json = Json::parse(
      read_file(fullbore::testing::source_folder() + "/workloads/peptide/tests/golden/model.json")
          .value());
  return json;
}

void append(const Json& json, std::vector<double>& values) {
  if (json.is_array())
    for (const Json& item : json) append(item, values);
  else
    values.push_back(json.is_boolean() ? (json.get<bool>() ? 1 : 0) : json.get<double>());
}

std::vector<double> flat(const Json& json) {
  std::vector<double> values;
  append(json, values);
  return values;
}

LossMasses reference_masses() {
  const ResidueAlphabet alphabet;
  const MassConstants& constants = alphabet.constants();
  return {{alphabet.masses().begin(), alphabet.masses().end()},
          constants.water,
          constants.proton,
          constants.carbon_monoxide};
}

/// One case of the golden file, traced: every term and every gradient is a result.
class GoldenCase {
 public:
  explicit GoldenCase(const std::string& name)
      : json_(golden()["cases"][name]), trace_(name, false) {
    const Json& config = json_["config"];
    sizes_ = {.width = config["width"],
              .symbols = config["vocabulary"],
              .slots = config["slots"],
              .heads = config["heads"],
              .encoder_layers = config["encoder_layers"],
              .decoder_layers = config["decoder_layers"],
              .supervision_steps = config["supervision_steps"],
              .latent_steps = config["latent_steps"],
              .step_embedding = config["step_embedding"],
              .gated_answer = config["gated_answer"],
              .precursor_mz = config["precursor_mz"]};
    const Json& inputs = json_["inputs"];
    const auto batch = static_cast<int64_t>(inputs["mz"].size());
    const auto peaks = static_cast<int64_t>(inputs["mz"][0].size());
    const auto field = [&](const char* key, DType dtype, Shape shape) {
      return trace_.batch(key, {dtype, std::move(shape)});
    };
    spectra_ = {field("mz", DType::f32, {batch, peaks}),
                field("intensity", DType::f32, {batch, peaks}),
                field("peak_mask", DType::boolean, {batch, peaks}),
                field("precursor_mass", DType::f32, {batch}),
                field("precursor_charge", DType::i32, {batch})};
    targets_ = {field("targets", DType::i32, {batch, sizes_.slots}),
                field("target_mask", DType::boolean, {batch, sizes_.slots}),
                config["has_ends"].get<bool>()};
  }

  std::map<std::string, Literal> run() {
    const Answers answers = recursive_model(trace_, spectra_, sizes_);
    trace_.result("logits", answers.logits);
    trace_.result("latent", answers.latent);
    tell_terms(answers);
    const Json& total = json_["total"]["terms"];
    Tensor loss;
    for (const auto& [name, factor] : total.items()) {
      const Tensor term = terms_.at(name) * factor.get<double>();
      loss = loss.valid() ? loss + term : term;
    }
    trace_.result("total", loss);
    std::vector<Tensor> parameters;
    for (const Trace::Parameter& parameter : trace_.parameters())
      parameters.push_back(parameter.tensor);
    const std::vector<Tensor> gradients = gradient(loss, parameters);
    for (size_t i = 0; i < gradients.size(); ++i)
      trace_.result("gradient of " + trace_.parameters()[i].name, gradients[i]);
    const Graph graph = trace_.finish();
    return interpret_by_name(graph, inputs(graph));
  }

  const Json& json() const { return json_; }

 private:
  void tell(const std::string& name, Tensor value) {
    terms_[name] = value;
    trace_.result(name, value);
  }

  void tell_terms(const Answers& answers) {
    const LossMasses masses = reference_masses();
    const std::pair<const char*, AnswerWeights> kinds[] = {
        {"linear", AnswerWeights::linear},
        {"uniform", AnswerWeights::uniform},
        {"exponential", AnswerWeights::exponential}};
    for (const double smoothing : {0.0, 0.1}) {
      const Tensor each = answer_cross_entropy(answers.logits, targets_, smoothing);
      for (const auto& [kind, weights] : kinds) {
        const Tensor factors = constant(trace_.builder(), each.type(),
                                        answer_weights(weights, sizes_.supervision_steps));
        tell(std::string("cross_entropy_") + kind + (smoothing > 0 ? "_smoothed" : ""),
             reduce_sum(each * factors, {0}));
      }
    }
    const int64_t last = sizes_.supervision_steps - 1;
    const Tensor probabilities = softmax(squeeze(slice(answers.logits, 0, last, last + 1), 0));
    const Observed observed{spectra_.mz, spectra_.intensity, spectra_.peak_mask,
                            spectra_.precursor_mass};
    for (const bool masked : {true, false}) {
      const Tensor expected = expected_masses(probabilities, targets_, masses, masked);
      const std::string suffix = masked ? "_masked" : "_unmasked";
      tell("spectrum_l1" + suffix,
           window_loss(expected, observed, targets_, masses, WindowPenalty::absolute).mean);
      tell("spectrum_huber" + suffix,
           window_loss(expected, observed, targets_, masses, WindowPenalty::huber).mean);
    }
    const Tensor expected = expected_masses(probabilities, targets_, masses, true);
    tell("coverage", coverage_loss(expected, observed, targets_, masses, 0.2).mean);
    tell("cosine", rendered_loss(expected, observed, targets_, masses, 0.2).mean);
    tell("precursor_smooth_l1",
         precursor_loss(expected, observed, masses, PrecursorPenalty::smooth_l1).mean);
    tell("precursor_log_ppm",
         precursor_loss(expected, observed, masses, PrecursorPenalty::log_ppm).mean);
  }

  std::map<std::string, Literal> inputs(const Graph& graph) const {
    std::map<std::string, uint64_t> ordinals;
    for (const auto& [name, shape] : json_["parameters"].items())
      ordinals.emplace(name, ordinals.size());
    std::map<std::string, Literal> values;
    for (const Graph::Input& input : graph.inputs()) {
      const TensorType type = graph.type(input.value);
      if (input.role == Role::batch) {
        Literal literal(type);
        const std::vector<double> given = flat(json_["inputs"][input.name]);
        for (size_t i = 0; i < given.size(); ++i) literal.put(static_cast<int64_t>(i), given[i]);
        values[input.name] = literal;
        continue;
      }
      if (!is_floating(type.dtype)) continue;
      Literal literal(type);
      const bool gain = input.name.ends_with(".scale") || input.name.ends_with("norm.weight");
      const uint64_t ordinal = ordinals.at(input.name);
      for (int64_t i = 0; i < literal.elements(); ++i) {
        const double u = uniform((ordinal << 32) + static_cast<uint64_t>(i));
        literal.put(i, gain ? 1 + 0.1 * u : 0.3 * u);
      }
      values[input.name] = literal;
    }
    return values;
  }

  const Json& json_;
  Trace trace_;
  ModelSizes sizes_;
  Spectra spectra_;
  Targets targets_;
  std::map<std::string, Tensor> terms_;
};

class GoldenModel : public ::testing::TestWithParam<const char*> {};

// Both are evaluated in double; what is left is that our constants are f32.
constexpr double kLogits = 1e-6;
constexpr double kTerms = 1e-5;
constexpr double kGradients = 1e-3;

TEST_P(GoldenModel, EqualsPyTorchInDoublePrecision) {
  GoldenCase model(GetParam());
  const Json& json = model.json();
  const std::map<std::string, Literal> results = model.run();
  const std::vector<double> logits = flat(json["logits"]);
  for (size_t i = 0; i < logits.size(); ++i)
    ASSERT_NEAR(results.at("logits").at(static_cast<int64_t>(i)), logits[i], kLogits) << i;
  for (const auto& [name, value] : json["terms"].items()) {
    if (name == "cosine_on_grid") continue;  // what `cosine` is the limit of
    EXPECT_NEAR(results.at(name).at(0), value.get<double>(), kTerms) << name;
  }
  EXPECT_NEAR(results.at("total").at(0), json["total"]["value"].get<double>(), kTerms);
  for (const auto& [name, value] : json["gradients"].items()) {
    if (value.is_null()) continue;  // of the table that nothing reads
    const Literal& gradient = results.at("gradient of " + name);
    double sum = 0, squares = 0, waves = 0;
    for (int64_t i = 0; i < gradient.elements(); ++i) {
      const double g = gradient.at(i);
      sum += g;
      squares += g * g;
      waves += g * std::sin(static_cast<double>(i + 1));
    }
    // Sums of the errors of as many elements, which are independent.
    const double scale = kGradients * std::sqrt(value[1].get<double>()) + 1e-9;
    EXPECT_NEAR(sum, value[0].get<double>(), scale) << name;
    EXPECT_NEAR(squares, value[1].get<double>(), 2 * kGradients * value[1].get<double>() + 1e-12)
        << name;
    EXPECT_NEAR(waves, value[2].get<double>(), scale) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenModel,
                         ::testing::Values("reference", "gated", "precursor_mz", "bare_targets"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace fullbore::peptide
