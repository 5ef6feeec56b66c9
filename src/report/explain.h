// Explains a partition: a report's kernels with the alternatives considered for them, in words.
// Works on any report that passed the schema (read_report.h), also without the model. (An
// alternative is another target or variant for the operators of a chosen kernel.)
//
// A margin is given in noise units: the difference of two costs over the square root of the sum of
// their variances, each taken from its 10th and 90th percentiles. Below one or two units either
// choice is as good.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace collage {

// Lists all kernels with their parts of the prediction, which add up to it, and their runners-up;
// and predictions for other flags in the report.
std::string explain_plan(const nlohmann::json& report);

// Returns the kernel of that name, else the one that holds that ONNX node or that node's index in
// the graph. kUsage: there is none.
Result<const nlohmann::json*> find_kernel(const nlohmann::json& report, const std::string& name);
// Describes one kernel in full: operators, tensors, conversions it causes, alternatives and
// refusals, and the candidates of other extents that hold its operators.
std::string explain_kernel(const nlohmann::json& report, const nlohmann::json& kernel);

// Explains why the node (an ONNX name, or an index) does not run on the target. kUsage: no such
// node.
Result<std::string> explain_why_not(const nlohmann::json& report, const std::string& target,
                                    const std::string& node);

// Returns (cost of b - cost of a) in noise units; infinity if neither varies.
double margin_in_noise(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace collage
