#pragma once
#include <map>
#include <string>

#include "fullbore/ir/literal.h"
#include "workloads/hybrid/hybrid_model.h"

namespace fullbore {

/// The sizes of the golden models, whose results were computed once outside of this project, in double.
HybridConfig golden_hybrid(HybridBranch branch = HybridBranch::finch);

/// Number of elements of the parameters whose names have the part.
int64_t parameter_count(const Trace& trace, const std::string& part = "");

/// The parameters in the record's order, each theta_i = centre + size sin(0.7 i + 1.3 number + 0.5).
std::map<std::string, Literal> golden_parameters(const Trace& trace, const HybridConfig& model);

/// First values of the parameters with noise added, so that none is zero or like another.
std::map<std::string, Literal> drawn_parameters(const Trace& trace);

}  // namespace fullbore
