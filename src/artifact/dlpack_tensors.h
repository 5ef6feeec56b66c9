// Reads and writes tensors of other libraries by DLPack.
#pragma once

#include <collage/tensor.h>
#include <dlpack/dlpack.h>

#include "runtime/memory_overlap.h"
#include "runtime/tensor_type.h"

namespace collage {

// Borrows the tensor's memory, which must outlive the result; or copies it if its elements are not
// dense in row-major order. kBadModel unless it is a tensor of that type on the CPU; `what` names
// it in the message.
Result<Tensor> borrow_dlpack(const DLTensor& given, const TensorType& type,
                             const std::string& what);

// Where its elements lie.
TensorMemory memory_of(const DLTensor& tensor);

// Writes the elements by the other tensor's strides; types are equal.
void copy_to_dlpack(const Tensor& from, const DLTensor& to);

}  // namespace collage
