#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fullbore/base/result.h"
#include "fullbore/monitor/chart_picture.h"

namespace fullbore {

/// Every number of a run's metrics.jsonl by its name there, as it went.
struct RunCurves {
  struct Point {
    double step = 0;
    double seconds = 0;  ///< of the run until then, earlier parts of a resumed one included
    double value = 0;
  };
  std::map<std::string, std::vector<Point>> curves;
  std::vector<std::string> problems;  ///< of lines that are damaged or missing

  std::vector<std::string> names() const;
};

/// Failure: the file cannot be read.
Result<RunCurves> read_run_curves(const std::string& run);

enum class CurveAxis { step, time };

/// The curve `metric` for a chart, called `name`; empty where there is none of it. `smooth`: each value is the mean of all
/// before it with weights that halve every so many points; 0: as they are. What is not finite stays so.
ChartCurve chart_curve(const RunCurves& run, const std::string& metric, const std::string& name,
                       CurveAxis axis = CurveAxis::step, double smooth = 0);

}  // namespace fullbore
