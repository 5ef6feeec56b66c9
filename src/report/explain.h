// Why this partition: a report's kernels with what else was considered for them, in words. Works on
// any report that passed the schema (read_report.h), so a file says as much as a model.
//
// A margin is given in noise units: the difference of two costs over the square root of the sum of
// their variances, each taken from its 10th and 90th percentiles. Below one or two units the choice
// could as well be the other one.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"

namespace collage {

// All kernels with their parts of the prediction, which add up to it, and their runners-up; what
// the report knows of other flags.
std::string explain_plan(const nlohmann::json& report);

// The kernel of that name or, where no kernel is called so, the one that holds that ONNX node or
// that node's index in the graph. kUsage: none.
Result<const nlohmann::json*> find_kernel(const nlohmann::json& report, const std::string& name);
// One kernel in full: operators, tensors, conversions it causes, alternatives and refusals, and the
// candidates of other extents that hold its operators.
std::string explain_kernel(const nlohmann::json& report, const nlohmann::json& kernel);

// Why the node (an ONNX name, or an index) does not run on the target. kUsage: no such node.
Result<std::string> explain_why_not(const nlohmann::json& report, const std::string& target,
                                    const std::string& node);

// (cost of b - cost of a) in noise units; infinity where neither varies.
double margin_in_noise(const nlohmann::json& a, const nlohmann::json& b);

}  // namespace collage
