#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fullbore/app/app.h"
#include "fullbore/app/own_batches.h"
#include "fullbore/lab/quality/quality_metric.h"
#include "fullbore/train/config_schema.h"
#include "fullbore/train/step_function.h"
#include "fullbore/train/step_outputs.h"

namespace fullbore {

/// Writes into the trace how the loss follows from a batch: LossFunction, with fields by name and keys.
using OwnLoss = std::function<Loss(Trace& trace, const BatchTensors& batch)>;

/// A model of one's own, and all of it that the commands need. A program is a loss, a function that fills batches, and
///
///     int main(int argc, char** argv) {
///       return fullbore::app(argc, argv, {
///           .loss = loss,
///           .data = batches({{"images", f32, {64, 32, 32, 3}}, {"labels", i32, {64}}}, fill),
///           .batch_axis = 0, .unit = "images"});
///     }
///
/// It has every command, beside those of `fullbore` `export`, which writes the weights. Where a command takes a
/// configuration file, the program's own job is meant without one: `train`, or `train train.steps=500`.
struct OwnModel {
  OwnLoss loss;
  OwnBatches data;  ///< batch p belongs to step p
  /// The axis of the fields that is the batch: its extent is train.batch_size, where that is not set the one written
  /// in the fields, and microbatches are cut along it. A field of fewer axes has it first; one that has it elsewhere
  /// says so itself (BatchField). -1: fields have none and are used as they are.
  int batch_axis = 0;
  std::string unit = "rows";       ///< what a row of a batch is, for people
  OwnBatches evaluation = {};      ///< held out; without, nothing is evaluated
  int64_t evaluation_batches = 8;  ///< of those; train.eval_batches makes them fewer
  std::vector<ShownMetric> metrics =
      {};                              ///< of the loss (Loss::metrics), told as shares in log lines
  std::vector<ConfigField> keys = {};  ///< key() makes one
  std::vector<std::string> settings = {};  ///< of the program's own job: "train.steps=500"
  QualityMetrics quality = {};             ///< what `lab gate` judges by
  std::string name = {};                   ///< value of model.name; empty: the program's
};

/// A key of one's own: a member of a struct that batch.keys<Struct>() gives to the loss and to what fills batches. The
/// struct compares by `bool operator==(const Struct&) const = default`.
///
///     struct Sizes { int64_t width = 64; bool operator==(const Sizes&) const = default; };
///     .keys = {key<&Sizes::width>("model.width", {1, 4096}, "channels of the hidden layer")}
template <auto Member>
ConfigField key(std::string name, ConfigRange range, std::string meaning) {
  const auto place = [](Config& config) -> ConfigPlace {
    const auto of = []<class Keys, class Value>(Value Keys::*member, Config& from) {
      return &(from.get<Keys>().*member);
    };
    return of(Member, config);
  };
  return {std::move(name), place, range, {}, std::move(meaning)};
}

/// The commands with this model; see app.h. What is missing from it is a UsageError before anything else.
int app(int argc, const char* const* argv, OwnModel model);

/// The same as what a program with other workloads registers. UsageError.
Workload own_workload(const OwnModel& model);

}  // namespace fullbore
