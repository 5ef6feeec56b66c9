// Builds one ONNX node, runs it on the host and reads the cases of the ONNX test suite that have
// such a node.
//
//   HostNode node("Unique", 4);
//   Tensors results = node.integer("axis", 1).run({data});
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <onnx/onnx-ml.pb.h>

#include <random>
#include <string>
#include <vector>

#include "dynamic/host/host_operators.h"

namespace collage::dynamic {

using Tensors = std::vector<Tensor>;

class HostNode {
 public:
  explicit HostNode(const std::string& op, int outputs = 1);
  HostNode& domain(const std::string& domain);
  HostNode& integer(const std::string& name, int64_t value);
  HostNode& real(const std::string& name, float value);  // of the wrong kind for most

  // A failure fails the test and gives no tensors.
  Tensors run(const Tensors& inputs) const;
  // The message of the error, which must be kBadModel.
  std::string error(const Tensors& inputs, int64_t opset = 17) const;

 private:
  ::onnx::NodeProto node_;
};

// Of every element type.
const std::vector<DType>& all_dtypes();
// Small integers as elements of that type; bool: whether not 0.
Tensor small_integers(DType dtype, const Shape& shape, int64_t low, int64_t high,
                      std::mt19937& random);
Tensor as_dtype(DType dtype, const Shape& shape, const std::vector<double>& values);
std::vector<int64_t> integers(const Tensor& tensor);

// Runs the cases test_<stem>* of the ONNX test suite (Debian's libonnx-testdata) with outputs
// compared exactly. Gives how many there are.
int check_suite(const std::string& stem);

}  // namespace collage::dynamic
