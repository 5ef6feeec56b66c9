// Program: a few oneDNN primitives run in sequence as one kernel. Each reads and writes values: the
// caller's buffers, constants that were prepacked when the program was made, or temporaries in the
// workspace. Memory objects are made once; a run only points them at the caller's buffers.
//
//   ProgramBuilder builder;
//   Value x = builder.input(0, pd.src_desc()), y = builder.output(0, pd.dst_desc());
//   Value w = builder.constant(weights, plain, pd.weights_desc());
//   builder.add(pd, {{DNNL_ARG_SRC, x}, …});
//   std::unique_ptr<Kernel> kernel = builder.finish();
#pragma once

#include <collage/tensor.h>

#include <memory>
#include <utility>
#include <vector>

#include "backend/onednn/kernels/library.h"
#include "runtime/kernel.h"

namespace collage::onednn {

struct Value {
  size_t index = 0;
};
using Bindings = std::vector<std::pair<int, Value>>;  // DNNL_ARG_…, value

struct ProgramCode;

class ProgramBuilder {
 public:
  ProgramBuilder();
  ~ProgramBuilder();

  // Views the caller's buffer as `desc`. The same buffer may have several views; `byte_offset`
  // starts the view further in.
  Value input(size_t position, const Desc& desc, size_t byte_offset = 0);
  Value output(size_t position, const Desc& desc, size_t byte_offset = 0);
  // Makes a temporary in the workspace, and another view of a temporary.
  Value temporary(const Desc& desc);
  Value view(Value temporary, const Desc& desc);
  // Reorders `tensor` (whose bytes are described by `given`) to `wanted` now.
  Value constant(const Tensor& tensor, const Desc& given, const Desc& wanted);

  // `masks`: those of the primitive's attributes, which cannot be queried.
  void add(const dnnl::primitive& primitive, const Desc& scratchpad, const Bindings& bindings,
           const Masks& masks);
  template <typename PrimitiveDesc>
  void add(const PrimitiveDesc& pd, const Bindings& bindings, const Masks& masks = {}) {
    add(dnnl::primitive(pd.get()), pd.scratchpad_desc(), bindings, masks);
  }
  // Zeroes an output of that many bytes before the steps added later.
  void clear_output(size_t position, size_t bytes);

  std::unique_ptr<Kernel> finish();

 private:
  std::unique_ptr<ProgramCode> code_;
};

}  // namespace collage::onednn
