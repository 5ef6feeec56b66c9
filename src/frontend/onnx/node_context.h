// The view that a converter has of one ONNX node: its inputs as expressions, its attributes with
// defaults, and ways to make calls. Every reader checks: an attribute of the wrong kind or an axis
// out of range is kBadModel, an input that must be constant and is not is kUnsupported.
//
//   Result<Expr> convert_elu(NodeContext& node) {
//     return node.call("nn.elu", {node.in(0)}, {{"alpha", TRY(node.real("alpha", 1.0))}});
//   }
#pragma once

#include <onnx/onnx-ml.pb.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "frontend/onnx/folding.h"
#include "frontend/onnx/narrow_types.h"
#include "frontend/onnx/node_attributes.h"
#include "frontend/onnx/tensor_data.h"
#include "ir/expr.h"

namespace collage::frontend {

class NodeContext : public NodeAttributes {
 public:
  // Absent optional inputs are null. `wanted` receives the inputs that had to be constant and were
  // not; it may be null.
  NodeContext(::onnx::NodeProto& proto, int64_t opset, std::string origin, std::vector<Expr> inputs,
              Folder& folder, TensorData& data, std::vector<Expr>* wanted = nullptr)
      : NodeAttributes(proto),
        proto_(proto),
        opset_(opset),
        origin_(std::move(origin)),
        inputs_(std::move(inputs)),
        folder_(folder),
        data_(data),
        wanted_(wanted) {}

  // Returns the same node with other inputs, for another operator's converter.
  NodeContext with_inputs(std::vector<Expr> inputs) const {
    return NodeContext(proto_, opset_, origin_, std::move(inputs), folder_, data_, wanted_);
  }

  int64_t opset() const { return opset_; }
  size_t num_inputs() const { return inputs_.size(); }
  bool has(size_t i) const { return i < inputs_.size() && inputs_[i] != nullptr; }
  const Expr& in(size_t i) const {
    return inputs_[i];
  }  // there: the table checks the required ones
  const std::vector<Expr>& inputs() const { return inputs_; }
  const Shape& shape(size_t i) const { return inputs_[i]->tensor_type().shape; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  DType dtype(size_t i) const { return inputs_[i]->tensor_type().dtype; }
  size_t num_outputs() const { return static_cast<size_t>(proto_.output_size()); }
  bool wants(size_t output) const {  // it may be read
    return output < num_outputs() && !proto_.output(static_cast<int>(output)).empty();
  }
  // The name of the first output, which no other node of the model has.
  std::string output_name() const { return num_outputs() == 0 ? origin_ : proto_.output(0); }

  // The narrow type of an input, if its type is narrower than the tensor's, else null; and setters
  // for those of outputs.
  const NarrowType* narrow(size_t i) const { return i < narrow_.size() ? narrow_[i] : nullptr; }
  void set_narrow(std::vector<const NarrowType*> inputs) { narrow_ = std::move(inputs); }
  void make_narrow(const NarrowType* outputs) { made_narrow_ = outputs; }
  const NarrowType* made_narrow() const { return made_narrow_; }

  // Attributes. As element_type, for a narrow type; null if the attribute names another one.
  Result<const NarrowType*> narrow_element_type(std::string_view name) const;
  Result<Tensor> tensor(std::string_view name);
  // The narrow type of that attribute's tensor.
  const NarrowType* narrow_tensor_type(std::string_view name) const;

  // Inputs that must be constant; `what` names them in the error.
  Result<Tensor> constant(size_t i, std::string_view what) const;
  Result<Ints> constant_ints(size_t i, std::string_view what) const;
  Result<std::vector<double>> constant_reals(size_t i, std::string_view what) const;
  // Reads the input of that index if it is given, else the attribute; empty if neither is.
  Result<std::optional<Ints>> ints_from(size_t input, std::string_view attribute) const;

  // Returns what is known of an expression while importing; null if nothing is.
  const Tensor* known(const Expr& expr) const { return folder_.value(expr); }

  // Whether a run may count sizes (run_sizes.h).
  bool has_run_sizes() const { return folder_.run_sizes() != nullptr; }
  // Makes a scalar a size that a run counts, though importing knows what it is for these sizes of
  // inputs, unless that is the same for all of them. Returns whether it did.
  bool count_anew(const Expr& scalar);
  // The first elements of an axis, as many as the scalar `count` says. kUnsupported: it is not
  // known, and no size may be a run's.
  Result<Expr> first_of(const Expr& data, const Expr& count, int64_t axis);

  // Calls, folded if all arguments are constant.
  Result<Expr> call(std::string_view op, std::vector<Expr> args, Attrs attrs = {});
  Expr item(const Expr& tuple, int64_t index) const;
  Expr constant_of(Tensor value) const { return make_constant(std::move(value), origin_); }
  // Makes a rank-0 constant of that element type.
  Result<Expr> scalar(DType dtype, double value);
  Result<Expr> scalar_like(const Expr& like, double value) {
    return scalar(like->tensor_type().dtype, value);
  }
  Result<Expr> full(DType dtype, const Shape& shape, double value);
  // Makes first, first + 1, …: so many of int64. kUnsupported: more than a constant may have.
  Result<Expr> arange(int64_t count, int64_t first = 0);
  // These return `data` itself if they change nothing.
  Result<Expr> reshape(const Expr& data, Shape shape);
  Result<Expr> transpose(const Expr& data, const Ints& axes);
  Result<Expr> cast(const Expr& data, DType dtype);
  // Casts to float32; float64 stays.
  Result<Expr> widened(const Expr& data) {
    const bool is_double = data->tensor_type().dtype == DType::kFloat64;
    return is_double ? Result<Expr>(data) : cast(data, DType::kFloat32);
  }
  Result<Expr> broadcast_to(const Expr& data, const Shape& shape);

 private:
  ::onnx::NodeProto& proto_;
  int64_t opset_;
  std::string origin_;
  std::vector<Expr> inputs_;
  std::vector<const NarrowType*> narrow_;
  const NarrowType* made_narrow_ = nullptr;
  Folder& folder_;
  TensorData& data_;
  std::vector<Expr>* wanted_;
};

inline const Shape& shape_of(const Expr& expr) { return expr->tensor_type().shape; }
inline DType dtype_of(const Expr& expr) { return expr->tensor_type().dtype; }
inline int64_t rank_of(const Expr& expr) { return static_cast<int64_t>(shape_of(expr).size()); }

// Returns the product of the dimensions from `begin` to before `end`.
int64_t product(const Shape& shape, size_t begin, size_t end);
// Compares a computed shape with the limits before it is used.
Status check_computed_shape(const Shape& shape);

}  // namespace collage::frontend
