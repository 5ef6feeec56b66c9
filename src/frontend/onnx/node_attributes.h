// The attributes of one ONNX node, with defaults. Every reader checks: an attribute of the wrong
// kind, or a missing one, is kBadModel.
//
//   const bool sorted = TRY(NodeAttributes(node).flag("sorted", true));
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ir/attrs.h"

namespace collage::frontend {

class NodeAttributes {
 public:
  // `node` must outlive it.
  explicit NodeAttributes(const ::onnx::NodeProto& node) : node_(node) {}

  size_t num_attrs() const { return static_cast<size_t>(node_.attribute_size()); }
  bool has_attr(std::string_view name) const { return find(name) != nullptr; }
  // Without a default the attribute is required.
  Result<int64_t> integer(std::string_view name, std::optional<int64_t> fallback = {}) const;
  Result<bool> flag(std::string_view name, bool fallback) const;
  Result<double> real(std::string_view name, std::optional<double> fallback = {}) const;
  Result<std::string> text(std::string_view name, std::optional<std::string> fallback = {}) const;
  Result<Ints> ints(std::string_view name, std::optional<Ints> fallback = {}) const;
  Result<std::vector<double>> reals(std::string_view name) const;
  Result<std::vector<std::string>> texts(std::string_view name) const;
  Result<DType> element_type(std::string_view name) const;  // an attribute such as "to"
  // All of them, each of the kind that it has: a number, a text, or a list of numbers.
  Result<Attrs> all() const;

 protected:
  Result<const ::onnx::AttributeProto*> find(std::string_view name,
                                             ::onnx::AttributeProto::AttributeType type,
                                             bool required) const;

 private:
  const ::onnx::AttributeProto* find(std::string_view name) const;

  const ::onnx::NodeProto& node_;
};

// -1 becomes rank - 1; an error outside [-rank, rank).
Result<int64_t> normal_axis(int64_t axis, int64_t rank);
// Normalises all of them and sorts; an axis that is named twice is an error.
Result<Ints> normal_axes(const Ints& axes, int64_t rank);

}  // namespace collage::frontend
