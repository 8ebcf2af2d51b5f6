#pragma once
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "fullbore/data/text_lines.h"
#include "workloads/peptide/spectrum.h"

namespace fullbore::peptide {

/// Appends a peak, unless it is none: then one clause that says why.
std::optional<std::string> add_peak(double mz, double intensity, Spectrum& spectrum);
/// Appends the peak of "mz intensity ..."; what follows the two numbers is left alone.
std::optional<std::string> add_peak_line(std::string_view line, Spectrum& spectrum);

}  // namespace fullbore::peptide
