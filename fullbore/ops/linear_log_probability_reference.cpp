#include <algorithm>
#include <cmath>

#include "fullbore/ops/linear_log_probability.h"

namespace fullbore {
namespace {

size_t at(int64_t index) { return static_cast<size_t>(index); }

/// One row after the other, with all of its logits.
class Definition {
 public:
  explicit Definition(ReferenceCall& call)
      : call_(call),
        classes_(call.attributes.get<int64_t>("classes")),
        rows_(call.inputs[0]->shape()[0]),
        width_(call.inputs[0]->shape()[1]),
        logs_(at(classes_)) {}

  void scores() {
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t target = call_.inputs[2]->integers()[at(row)];
      if (!counts(target)) continue;
      call_.outputs[1].reals()[at(row)] = entropy(row);
      call_.outputs[0].reals()[at(row)] = logs_[at(target)];
    }
  }

  void gradient() {
    for (int64_t row = 0; row < rows_; ++row) {
      const int64_t target = call_.inputs[2]->integers()[at(row)];
      if (!counts(target)) continue;
      const double all = entropy(row);
      for (int64_t v = 0; v < classes_; ++v) {
        const double p = std::exp(logs_[at(v)]);
        const double slope =
            call_.inputs[3]->reals()[at(row)] * ((v == target ? 1 : 0) - p) -
            (p > 0 ? call_.inputs[4]->reals()[at(row)] * p * (logs_[at(v)] + all) : 0);
        for (int64_t i = 0; i < width_; ++i) {
          call_.outputs[0].reals()[at(row * width_ + i)] += slope * weight(v, i);
          call_.outputs[1].reals()[at(v * width_ + i)] += slope * hidden(row, i);
        }
      }
    }
  }

 private:
  double hidden(int64_t row, int64_t i) const {
    return call_.inputs[0]->reals()[at(row * width_ + i)];
  }
  double weight(int64_t v, int64_t i) const { return call_.inputs[1]->reals()[at(v * width_ + i)]; }
  bool counts(int64_t target) const { return target >= 0 && target < classes_; }

  // Of the row; its log-probabilities are in logs_ then.
  double entropy(int64_t row) {
    double largest = -HUGE_VAL, sum = 0, entropy = 0;
    for (int64_t v = 0; v < classes_; ++v) {
      double logit = 0;
      for (int64_t i = 0; i < width_; ++i) logit += hidden(row, i) * weight(v, i);
      logs_[at(v)] = logit;
      largest = std::max(largest, logit);
    }
    for (const double logit : logs_) sum += std::exp(logit - largest);
    for (double& each : logs_) {
      each -= largest + std::log(sum);
      if (each > -HUGE_VAL) entropy -= std::exp(each) * each;
    }
    return entropy;
  }

  ReferenceCall& call_;
  int64_t classes_, rows_, width_;
  std::vector<double> logs_;
};

Sample sample(const char* why, int64_t rows, int64_t width, int64_t extent, int64_t classes,
              int64_t at_once, DType targets) {
  return {.why = why,
          .inputs = {SampleInput::normal({DType::f32, {rows, width}}),
                     SampleInput::normal({DType::f32, {extent, width}}),
                     SampleInput::integers({targets, {rows}}, 0, static_cast<double>(classes))},
          .attributes = linear_log_probability_attributes(classes, at_once)};
}

}  // namespace

void linear_log_probability_reference(ReferenceCall& call) { Definition(call).scores(); }
void linear_log_probability_gradient_reference(ReferenceCall& call) { Definition(call).gradient(); }

std::vector<Sample> linear_log_probability_samples() {
  std::vector<Sample> samples = {
      sample("all rows at once", 3, 4, 5, 5, 8, DType::i32),
      sample("one row at a time", 3, 2, 4, 4, 1, DType::i64),
      sample("blocks that divide the rows, padding behind the classes", 6, 3, 8, 7, 2, DType::i32),
      sample("a last block that is not full, bytes", 7, 3, 5, 5, 3, DType::u8),
      sample("one class: no entropy", 4, 2, 3, 1, 2, DType::i32),
      sample("no rows", 0, 3, 5, 5, 2, DType::i32),
  };
  Sample ignored =
      sample("targets that are ignored, in some blocks all", 6, 2, 5, 4, 2, DType::i64);
  ignored.inputs[2] = SampleInput::given({DType::i64, {6}}, {0, -1, 4, -100, 2, 3}).constant();
  samples.push_back(std::move(ignored));
  return samples;
}

std::vector<Sample> linear_log_probability_gradient_samples() {
  std::vector<Sample> samples = linear_log_probability_samples();
  for (Sample& each : samples)
    for (int i = 0; i < 2; ++i)
      each.inputs.push_back(SampleInput::normal({DType::f32, {each.inputs[0].type.shape[0]}}));
  return samples;
}

std::vector<ErrorSample> linear_log_probability_error_samples() {
  const TensorType hidden{DType::f32, {3, 4}};
  const TensorType weight{DType::f32, {5, 4}};
  const TensorType targets{DType::i32, {3}};
  const Attributes plain = linear_log_probability_attributes(5, 2);
  std::vector<ErrorSample> samples =
      linear_rows_error_samples(plain, linear_log_probability_attributes(5, 0));
  const std::vector<ErrorSample> own = {
      {"more classes than rows of the weight",
       {hidden, weight, targets},
       linear_log_probability_attributes(6, 2),
       "weight f32[5,4] has not 6 classes"},
      {"no classes",
       {hidden, weight, targets},
       linear_log_probability_attributes(0, 2),
       "weight f32[5,4] has not 0 classes"},
  };
  samples.insert(samples.end(), own.begin(), own.end());
  return samples;
}

std::vector<ErrorSample> linear_log_probability_gradient_error_samples() {
  const TensorType rows{DType::f32, {3}};
  std::vector<ErrorSample> samples = linear_log_probability_error_samples();
  for (ErrorSample& each : samples) each.inputs.insert(each.inputs.end(), {rows, rows});
  samples.push_back(
      {"a cotangent too few",
       {{DType::f32, {3, 4}}, {DType::f32, {5, 4}}, {DType::i32, {3}}, rows, {DType::f32, {2}}},
       linear_log_probability_attributes(5, 2),
       "needs cotangents f32[3], got f32[2]"});
  return samples;
}

}  // namespace fullbore
