// A model that has to remember: what it gives depends on all its inputs so far.
#pragma once

#include "frontend/onnx/model_builder.h"

namespace collage::testing {

// The mean of all values so far: present = concat(past, x), a mask over both.
inline ModelBuilder& running_mean(ModelBuilder& m) {
  m.input("x", {"new", "2"}).input("past", {"old", "2"}).input("mask", {"old + new", "1"});
  m.constant("axes", Tensor::from<int64_t>({1}, {0}));
  m.node("Concat", {"past", "x"}, {"present"}).integer("axis", 0);
  m.node("Mul", {"present", "mask"}, {"kept"});
  m.node("ReduceSum", {"kept", "axes"}, {"sum"}).integer("keepdims", 0);
  m.node("ReduceSum", {"mask", "axes"}, {"count"}).integer("keepdims", 0);
  m.node("Div", {"sum", "count"}, {"mean"});
  m.output("mean", onnx::TensorProto::FLOAT).output("present", onnx::TensorProto::FLOAT);
  auto* shape = m.graph().mutable_output(1)->mutable_type()->mutable_tensor_type()->mutable_shape();
  shape->add_dim()->set_dim_param("old + new");
  shape->add_dim()->set_dim_value(2);
  return m;
}

}  // namespace collage::testing
