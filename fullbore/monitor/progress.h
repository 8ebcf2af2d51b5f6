#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace fullbore {

/// What a run is doing now. NaN and negative numbers mean "not known yet" and are not shown.
struct Progress {
  std::string phase;  ///< "evaluating 3/20", "saving"; empty while training
  int64_t step = 0;
  int64_t total_steps = 0;
  double train_loss = std::numeric_limits<double>::quiet_NaN();
  double validation_loss = std::numeric_limits<double>::quiet_NaN();
  std::string figures = {};       ///< of the workload's own: "ppl 4.21/4.75  R/M 0.45 [OK]"
  double step_seconds = -1;       ///< waiting for batches included
  double tokens_per_second = -1;  ///< not shown where samples have a unit
  double samples_per_second = -1;
  std::string sample_unit =
      {};  ///< what a row of a batch is: "spectra"; empty: rates are of tokens
  std::vector<std::pair<std::string, double>> shares = {};  ///< such as "accuracy", in [0, 1]
  double utilisation = -1;      ///< share of the machine's measured peak, in [0, 1]
  int64_t resident_bytes = -1;  ///< of the process
  int64_t planned_bytes = -1;   ///< of the compiled programs
  double data_wait_share = -1;  ///< share of the time spent waiting for the next batch
  double seconds_left = -1;
};

/// How a terminal wants its text.
struct TextStyle {
  bool colour = false;   ///< ANSI escapes
  bool unicode = false;  ///< UTF-8 line drawing
};

/// One line of at most `width` columns: bar, step, losses, time of a step, rate, utilisation, memory, data wait,
/// time left. What does not fit goes, least important first; step and loss stay longest.
std::string progress_line(const Progress& progress, int width, TextStyle style = {});

/// The same as a plain log line: "step 840/2000  loss 2.1340  ...", every field that is known.
std::string progress_text(const Progress& progress);

/// Columns that UTF-8 text takes on a terminal: code points outside of ANSI escapes.
int display_width(const std::string& text);

}  // namespace fullbore
