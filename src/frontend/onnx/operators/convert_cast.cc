// Changes of the element type. Types that are narrower than any of ours are rounded to
// (narrowing.h) and kept in wider ones.
#include "frontend/onnx/narrowing.h"
#include "frontend/onnx/operators/converters.h"
#include "ops/half.h"

namespace collage::frontend {

namespace {

Result<Expr> cast_to_narrow(NodeContext& node, const NarrowType& to) {
  node.make_narrow(&to);
  if (node.narrow(0) == &to) return node.in(0);
  return narrowed(node, node.in(0), to, TRY(narrowing_of(node)));
}

Result<Expr> convert_cast(NodeContext& node) {
  if (const NarrowType* to = TRY(node.narrow_element_type("to"))) return cast_to_narrow(node, *to);
  const DType to = TRY(node.element_type("to"));
  return node.cast(node.in(0), to);
}

// Models of half precision are computed in single, where those bits are gone.
Result<Expr> convert_bit_cast(NodeContext& node) {
  const DType dtype = TRY(node.element_type("to"));
  for (DType type : {node.dtype(0), dtype})
    if (is_half(type)) return unsupported("the bits of {}", dtype_name(type));
  if (node.dtype(0) == dtype) return node.in(0);
  return node.call("reinterpret", {node.in(0)}, {{"dtype", dtype}});
}

Result<Expr> convert_cast_like(NodeContext& node) {
  if (const NarrowType* to = node.narrow(1)) return cast_to_narrow(node, *to);
  return node.cast(node.in(0), node.dtype(1));
}

}  // namespace

ConverterRows cast_converters() {
  return {
      {"BitCast", 1, 1, single(convert_bit_cast)},
      {"Cast", 1, 1, single(convert_cast)},
      {"CastLike", 2, 2, single(convert_cast_like)},
  };
}

}  // namespace collage::frontend
