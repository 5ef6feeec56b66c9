#include "frontend/onnx/input_shapes.h"

#include <algorithm>
#include <utility>

#include "frontend/onnx/limits.h"
#include "frontend/onnx/tensor_data.h"

namespace collage::frontend {

namespace {

using ::onnx::TensorShapeProto;
using ::onnx::ValueInfoProto;

Result<const ::onnx::TypeProto_Tensor*> tensor_type_of(const ValueInfoProto& input) {
  if (!input.has_type() || input.type().value_case() == ::onnx::TypeProto::VALUE_NOT_SET)
    return bad_model("input '{}' has no type", input.name());
  if (!input.type().has_tensor_type())
    return unsupported("input '{}' is no tensor (a sequence, map, optional or sparse tensor)",
                       input.name());
  const auto& type = input.type().tensor_type();
  if (type.shape().dim_size() > kMaxRank)
    return bad_model("input '{}' has rank {}, the limit is {}", input.name(),
                     type.shape().dim_size(), kMaxRank);
  return &type;
}

std::string dimension_text(const TensorShapeProto::Dimension& dim) {
  if (dim.has_dim_value()) return std::to_string(dim.dim_value());
  return dim.dim_param().empty() ? "?" : dim.dim_param();
}

std::string declared_text(const TensorShapeProto& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.dim_size(); ++i) text += (i ? ", " : "") + dimension_text(shape.dim(i));
  return text + ")";
}

// True where neither the model nor anything else so far fixes the dimension.
bool is_open(const TensorShapeProto::Dimension& dim, const std::map<std::string, int64_t>& dims) {
  if (dim.has_dim_value()) return dim.dim_value() < 0;
  return dim.dim_param().empty() || dims.count(dim.dim_param()) == 0;
}

// "--dim batch=1 --dim seq=1 or --shapes x=1x1", with 1 for what is not known.
std::string flags_to_give(const ValueInfoProto& input, const TensorShapeProto& shape,
                          const std::map<std::string, int64_t>& dims) {
  std::string by_dim, by_shape;
  std::vector<std::string> named;
  bool all_named = true;
  for (int i = 0; i < shape.dim_size(); ++i) {
    const auto& dim = shape.dim(i);
    std::string value = "1";
    if (!is_open(dim, dims)) {
      value = std::to_string(dim.has_dim_value() ? dim.dim_value() : dims.at(dim.dim_param()));
    } else if (dim.has_dim_value() || dim.dim_param().empty()) {
      all_named = false;
    } else if (std::find(named.begin(), named.end(), dim.dim_param()) == named.end()) {
      named.push_back(dim.dim_param());
      by_dim += fmt::format("--dim {}=1 ", dim.dim_param());
    }
    by_shape += (i ? "x" : "") + value;
  }
  by_shape = fmt::format("--shapes {}={}", input.name(), by_shape);
  return all_named ? by_dim + "or " + by_shape : by_shape;
}

Status check_extent(const std::string& name, int64_t value) {
  if (value < 0 || value > kMaxDimension)
    return bad_model("input '{}': dimension {} is outside 0 to {}", name, value, kMaxDimension);
  return {};
}

// Checks a shape given whole against the declaration and learns the values of named dimensions.
Status learn_from_shape(const ValueInfoProto& input, const ::onnx::TypeProto_Tensor& type,
                        const Shape& given, std::map<std::string, int64_t>& dims) {
  if (static_cast<int64_t>(given.size()) > kMaxRank)
    return usage_error("shape of rank {} given for input '{}', the limit is {}", given.size(),
                       input.name(), kMaxRank);
  for (int64_t extent : given)
    if (extent < 0 || extent > kMaxDimension)
      return usage_error("shape {} given for input '{}': dimension {} is outside 0 to {}",
                         shape_to_string(given), input.name(), extent, kMaxDimension);
  if (!type.has_shape()) return {};
  const auto mismatch = [&] {
    return bad_model("input '{}' has shape {}, which {} does not fit", input.name(),
                     declared_text(type.shape()), shape_to_string(given));
  };
  if (static_cast<int>(given.size()) != type.shape().dim_size()) return mismatch();
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    const int64_t value = given[static_cast<size_t>(i)];
    if (dim.has_dim_value() && dim.dim_value() >= 0 && dim.dim_value() != value) return mismatch();
    if (dim.has_dim_value() || dim.dim_param().empty()) continue;
    auto [it, fresh] = dims.emplace(dim.dim_param(), value);
    if (!fresh && it->second != value)
      return bad_model("input '{}': dimension '{}' is {} in shape {} but {} elsewhere",
                       input.name(), dim.dim_param(), value, shape_to_string(given), it->second);
  }
  return {};
}

Result<Shape> complete_shape(const ValueInfoProto& input, const ::onnx::TypeProto_Tensor& type,
                             const std::map<std::string, int64_t>& dims) {
  if (!type.has_shape())
    return bad_model("input '{}' has no shape: give --shapes {}=1x…", input.name(), input.name());
  Shape shape;
  for (int i = 0; i < type.shape().dim_size(); ++i) {
    const auto& dim = type.shape().dim(i);
    if (is_open(dim, dims)) {
      const std::string which = dim.has_dim_value() || dim.dim_param().empty()
                                    ? fmt::format("{} ({})", i, dimension_text(dim))
                                    : fmt::format("'{}'", dim.dim_param());
      return bad_model("input '{}' {}: dimension {} has no value; give {}", input.name(),
                       declared_text(type.shape()), which,
                       flags_to_give(input, type.shape(), dims));
    }
    const int64_t value = dim.has_dim_value() ? dim.dim_value() : dims.at(dim.dim_param());
    TRY(check_extent(input.name(), value));
    shape.push_back(value);
  }
  return shape;
}

// Options that name nothing in the model are mistakes worth an error.
Status check_option_names(const std::vector<const ValueInfoProto*>& inputs,
                          const ImportOptions& options) {
  std::string input_names, dim_names;
  std::map<std::string, bool> known_inputs, known_dims;
  for (const ValueInfoProto* input : inputs) {
    if (known_inputs.emplace(input->name(), true).second)
      input_names += (input_names.empty() ? "" : ", ") + input->name();
    for (const auto& dim : input->type().tensor_type().shape().dim())
      if (!dim.dim_param().empty() && known_dims.emplace(dim.dim_param(), true).second)
        dim_names += (dim_names.empty() ? "" : ", ") + dim.dim_param();
  }
  for (const auto& [name, shape] : options.shapes)
    if (known_inputs.count(name) == 0)
      return usage_error("a shape is given for input '{}', the model's inputs are: {}", name,
                         input_names.empty() ? "none" : input_names);
  for (const auto& [name, value] : options.dims) {
    if (known_dims.count(name) == 0)
      return usage_error(
          "a value is given for dimension '{}', the model's named dimensions are: {}", name,
          dim_names.empty() ? "none" : dim_names);
    if (value < 0 || value > kMaxDimension)
      return usage_error("dimension '{}' cannot be {}", name, value);
  }
  return {};
}

}  // namespace

Result<ModelInput> describe_input(const ValueInfoProto& input) {
  const auto* type = TRY(tensor_type_of(input));
  ModelInput result;
  result.name = input.name();
  Result<DType> dtype = carrier_from_onnx(type->elem_type());
  if (!dtype)
    return std::move(dtype).status().with_context(fmt::format("input '{}'", input.name()));
  result.dtype = *dtype;
  result.has_shape = type->has_shape();
  for (const auto& dim : type->shape().dim()) result.dims.push_back(dimension_text(dim));
  return result;
}

Status check_fixed_input(const ValueInfoProto& input, const Tensor& value) {
  const auto* type = TRY(tensor_type_of(input));
  const ModelInput described = TRY(describe_input(input));
  if (described.dtype != value.dtype())
    return usage_error("input '{}' is {}, the value given is {}", input.name(),
                       dtype_name(described.dtype), dtype_name(value.dtype()));
  std::map<std::string, int64_t> dims;
  return learn_from_shape(input, *type, value.shape(), dims);
}

Result<GraphInputs> make_inputs(const std::vector<const ValueInfoProto*>& inputs,
                                const ImportOptions& options) {
  TRY(check_option_names(inputs, options));
  GraphInputs result;
  for (const ValueInfoProto* input : inputs) {
    const auto* type = TRY(tensor_type_of(*input));
    auto given = options.shapes.find(input->name());
    if (given != options.shapes.end())
      TRY(learn_from_shape(*input, *type, given->second, result.dims));
  }
  for (const auto& [name, value] : options.dims) {
    auto [it, fresh] = result.dims.emplace(name, value);
    if (!fresh && it->second != value)
      return usage_error("dimension '{}' is given as {}, but a given shape makes it {}", name,
                         value, it->second);
  }
  for (const ValueInfoProto* input : inputs) {
    const ModelInput described = TRY(describe_input(*input));
    auto given = options.shapes.find(input->name());
    Shape shape = given != options.shapes.end()
                      ? given->second
                      : TRY(complete_shape(*input, input->type().tensor_type(), result.dims));
    Result<int64_t> count = checked_num_elements(shape);
    if (!count || *count > kMaxElements)
      return bad_model("input '{}': shape {} has more than {} elements", input->name(),
                       shape_to_string(shape), kMaxElements);
    result.variables.push_back(
        make_var(input->name(), TensorType{std::move(shape), described.dtype}));
  }
  return result;
}

}  // namespace collage::frontend
