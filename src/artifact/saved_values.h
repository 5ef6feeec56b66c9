// Values saved beside plans: tensors, whose values lie in the block of constants, and maps by name.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "artifact/saved_plan.h"
#include "base/json_fields.h"

namespace collage {

nlohmann::json add_tensor(const Tensor& tensor, PlanSaver& saver);
nlohmann::json add_tensors(const std::map<std::string, Tensor>& tensors, PlanSaver& saver);

// kBadModel: the field is something else. `weights`: the block, which tensors keep.
Result<Tensor> tensor_from(const nlohmann::json& value, const SharedBytes& weights);
Result<std::map<std::string, Tensor>> tensors_from(const JsonFields& fields, const char* name,
                                                   const SharedBytes& weights);
Result<std::vector<std::string>> texts_from(const JsonFields& fields, const char* name);
Result<std::map<std::string, std::string>> names_from(const JsonFields& fields, const char* name);
// Reads sizes of buckets, at least 1, by the dimension's name.
Result<std::map<std::string, std::vector<int64_t>>> sizes_from(const JsonFields& fields,
                                                               const char* name);
Result<std::map<std::string, double>> numbers_from(const JsonFields& fields, const char* name);

}  // namespace collage
