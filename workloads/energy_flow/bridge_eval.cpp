#include "workloads/energy_flow/bridge_eval.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "fullbore/app/json_text.h"
#include "fullbore/app/mean_intervals.h"
#include "fullbore/app/output.h"
#include "fullbore/base/error.h"
#include "fullbore/monitor/console.h"
#include "workloads/energy_flow/bridge_measure.h"

namespace fullbore::energy_flow {
namespace {

struct Row {
  const char* name;
  const char* key;
};
constexpr std::array<Row, 4> kRows = {{{"encoder's cosine", "encoder_cosine"},
                                       {"words right", "words_right"},
                                       {"texts right", "texts_right"},
                                       {"words right, both ways", "round_trip_words_right"}}};

}  // namespace

ExitCode eval_bridge(const EvalRequest& request, int64_t pairs) {
  TrainedBridge bridge(request.subject, {.batch = 64, .beams = 1, .length = 0, .cached = 0});
  Console console;
  int64_t most = pairs;
  if (request.batches > 0) {
    const int64_t rows = request.batches * bridge.config().train.batch_size / 2;
    most = std::max<int64_t>(1, most > 0 ? std::min(most, rows) : rows);
  }
  const HeldOutPairs data = held_out_pairs(
      bridge.config(), {.path = request.data, .most = most, .training = false}, console);
  const int64_t texts = 2 * data.examples.count;
  BridgeScores scores = measure_bridge(
      bridge, data.examples, {.temperature = 1, .correction_steps = 0}, [&](int64_t done) {
        if (console.live_due())
          console.live(fmt::format("evaluating {}/{} texts", 2 * done, texts));
      });
  console.clear();
  const std::vector<std::vector<double>> columns = {
      std::move(scores.encoder_cosine), std::move(scores.words), std::move(scores.texts),
      std::move(scores.round_trip)};
  const BootstrapOptions bootstrap;
  const std::vector<MeanInterval> intervals = mean_intervals(columns, bootstrap);
  if (request.json) {
    nlohmann::ordered_json json = {
        {"checkpoint", bridge.path()}, {"data", data.name}, {"texts", texts}};
    for (size_t i = 0; i < kRows.size(); ++i)
      json[kRows[i].key] = {{"mean", intervals[i].mean},
                            {"low", intervals[i].low},
                            {"high", intervals[i].high},
                            {"least", *std::ranges::min_element(columns[i])}};
    write_output(json_text(json));
  } else {
    print_output("{:<24}{}\n{:<24}{}: {} texts\n\n", "checkpoint", bridge.path(), "pairs",
                 data.about, texts);
    print_output("{:<24}{:>9}  {:<20}  {}\n", "", "mean",
                 fmt::format("{:.0f} % interval", 100 * bootstrap.confidence), "least");
    for (size_t i = 0; i < kRows.size(); ++i)
      print_output("{:<24}{:>9.5f}  [{:.5f}, {:.5f}]    {:.5f}\n", kRows[i].name, intervals[i].mean,
                   intervals[i].low, intervals[i].high, *std::ranges::min_element(columns[i]));
  }
  if (!std::isfinite(intervals[0].mean))
    throw NumericalError(fmt::format("eval: the cosine is {}", intervals[0].mean));
  return ExitCode::kOk;
}

}  // namespace fullbore::energy_flow
