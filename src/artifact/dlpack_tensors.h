// Tensors of others, by DLPack.
#pragma once

#include <collage/tensor.h>
#include <dlpack/dlpack.h>

#include "runtime/memory_overlap.h"
#include "runtime/tensor_type.h"

namespace collage {

// Its memory as it is, which must outlive the tensor; or a copy where its elements do not lie
// densely in row-major order. kBadModel unless it is a tensor of that type on the CPU; `what` names
// it.
Result<Tensor> borrow_dlpack(const DLTensor& given, const TensorType& type,
                             const std::string& what);

// Where its elements lie.
TensorMemory memory_of(const DLTensor& tensor);

// Writes the elements to where the other's strides say; types are equal.
void copy_to_dlpack(const Tensor& from, const DLTensor& to);

}  // namespace collage
