#include "fullbore/ops/linear_cross_entropy.h"

namespace fullbore {
namespace {

size_t at(int64_t index) { return static_cast<size_t>(index); }

/// One row after the other, with all of its logits.
class Definition {
 public:
  explicit Definition(ReferenceCall& call)
      : call_(call),
        options_(cross_entropy_options(call.attributes)),
        rows_(call.inputs[0]->shape()[0]),
        width_(call.inputs[0]->shape()[1]),
        classes_(call.inputs[1]->shape()[0]) {}

  void run(bool gradient) {
    std::vector<double> logits(at(classes_)), slopes(at(classes_));
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t v = 0; v < classes_; ++v) logits[at(v)] = product(row, v);
      const double loss =
          cross_entropy_of_row(logits.data(), classes_, call_.inputs[2]->integers()[at(row)],
                               options_, gradient ? slopes.data() : nullptr);
      const double weight = call_.inputs.size() > 3 ? call_.inputs[3]->reals()[at(row)] : 1;
      call_.outputs[0].reals()[0] += weight * loss;
      if (!gradient) continue;
      call_.outputs[1].reals()[at(row)] = loss;
      for (int64_t v = 0; v < classes_; ++v) add_cotangents(row, v, weight * slopes[at(v)]);
    }
  }

 private:
  double hidden(int64_t row, int64_t i) const {
    return call_.inputs[0]->reals()[at(row * width_ + i)];
  }
  double weight(int64_t v, int64_t i) const { return call_.inputs[1]->reals()[at(v * width_ + i)]; }
  double product(int64_t row, int64_t v) const {
    double sum = 0;
    for (int64_t i = 0; i < width_; ++i) sum += hidden(row, i) * weight(v, i);
    return sum;
  }
  void add_cotangents(int64_t row, int64_t v, double slope) {
    for (int64_t i = 0; i < width_; ++i) {
      call_.outputs[2].reals()[at(row * width_ + i)] += slope * weight(v, i);
      call_.outputs[3].reals()[at(v * width_ + i)] += slope * hidden(row, i);
    }
  }

  ReferenceCall& call_;
  CrossEntropyOptions options_;
  int64_t rows_, width_, classes_;
};

}  // namespace

void linear_cross_entropy_reference(ReferenceCall& call) { Definition(call).run(false); }
void linear_cross_entropy_gradient_reference(ReferenceCall& call) { Definition(call).run(true); }

std::vector<Sample> linear_cross_entropy_samples() {
  const auto sample = [](const char* why, int64_t rows, int64_t width, int64_t classes,
                         int64_t at_once, DType targets, const CrossEntropyOptions& options = {},
                         bool weighted = false) {
    Sample made{
        .why = why,
        .inputs = {SampleInput::normal({DType::f32, {rows, width}}),
                   SampleInput::normal({DType::f32, {classes, width}}),
                   SampleInput::integers({targets, {rows}}, 0, static_cast<double>(classes))},
        .attributes = linear_cross_entropy_attributes(options, weighted, at_once)};
    if (weighted) made.inputs.push_back(SampleInput::uniform({DType::f32, {rows}}, -1, 2));
    return made;
  };
  std::vector<Sample> samples = {
      sample("all rows at once", 3, 4, 5, 8, DType::i32),
      sample("one row at a time", 3, 2, 4, 1, DType::i64),
      sample("blocks that divide the rows", 6, 3, 7, 2, DType::i32),
      sample("more blocks than asked for, because they divide the rows", 9, 3, 5, 5, DType::i32),
      sample("a last block that is not full, bytes", 7, 3, 5, 3, DType::u8),
      sample("one class: no loss", 4, 2, 1, 2, DType::i32),
      sample("no rows", 0, 3, 5, 2, DType::i32),
      sample("weights, smoothed, z-loss", 5, 3, 4, 2, DType::i32,
             {.label_smoothing = 0.125, .z_loss = 0.25}, true),
      sample("weights, at once", 3, 2, 4, 3, DType::i32, {.z_loss = 0.25}, true),
  };
  Sample ignored = sample("targets that are ignored, in some blocks all", 6, 2, 4, 2, DType::i64,
                          {.ignore_index = 2});
  ignored.inputs[2] = SampleInput::given({DType::i64, {6}}, {0, -1, 4, -100, 2, 3}).constant();
  samples.push_back(std::move(ignored));
  return samples;
}

std::vector<ErrorSample> linear_cross_entropy_error_samples() {
  const TensorType hidden{DType::f32, {3, 4}};
  const TensorType weight{DType::f32, {5, 4}};
  const TensorType targets{DType::i32, {3}};
  const Attributes plain = linear_cross_entropy_attributes({}, false, 2);
  const Attributes weighted = linear_cross_entropy_attributes({}, true, 2);
  std::vector<ErrorSample> samples =
      linear_rows_error_samples(plain, linear_cross_entropy_attributes({}, false, 0));
  const std::vector<ErrorSample> own = {
      {"no classes", {hidden, {DType::f32, {0, 4}}, targets}, plain, "has no classes"},
      {"no weights", {hidden, weight, targets}, weighted, "needs 4 operands, got 3"},
      {"a weight too few",
       {hidden, weight, targets, {DType::f32, {2}}},
       weighted,
       "needs weights f32[3], got f32[2]"},
      {"all of the target spread",
       {hidden, weight, targets},
       linear_cross_entropy_attributes({.label_smoothing = 1.5}, false, 2),
       "label_smoothing must be in [0, 1), not 1.5"},
  };
  samples.insert(samples.end(), own.begin(), own.end());
  return samples;
}

}  // namespace fullbore
