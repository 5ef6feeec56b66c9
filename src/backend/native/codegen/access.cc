#include "backend/native/codegen/access.h"

#include <utility>

namespace collage::native {

std::vector<int64_t> physical_extents(const std::vector<int64_t>& shape, ChannelLayout layout) {
  const Shape physical = tensor_program::physical_shape(shape, layout);
  return {physical.rbegin(), physical.rend()};
}

void fix_dense(Halide::OutputImageParam buffer, const std::vector<int64_t>& extents) {
  std::vector<int64_t> strides{1};
  for (int64_t extent : extents) strides.push_back(strides.back() * extent);
  fix_strided(std::move(buffer), extents, strides);
}

void fix_dense(Halide::OutputImageParam buffer, const std::vector<Halide::Expr>& extents) {
  Halide::Expr stride = 1;
  for (size_t i = 0; i < extents.size(); ++i) {
    buffer.dim(static_cast<int>(i)).set_bounds(0, extents[i]).set_stride(stride);
    stride = Halide::Internal::simplify(stride * extents[i]);
  }
  buffer.set_host_alignment(64);
}

void fix_strided(Halide::OutputImageParam buffer, const std::vector<int64_t>& extents,
                 const std::vector<int64_t>& strides) {
  for (size_t i = 0; i < extents.size(); ++i) {
    buffer.dim(static_cast<int>(i))
        .set_bounds(0, static_cast<int>(extents[i]))
        .set_stride(static_cast<int>(strides[i]));
  }
  buffer.set_host_alignment(64);
}

BufferArg::BufferArg(const std::string& name, Halide::Type type, std::vector<int64_t> shape)
    : shape_(std::move(shape)), param_(type, static_cast<int>(shape_.size()), name) {
  fix_dense(param_, physical_extents(shape_, ChannelLayout::kPlain));
}

BufferArg::BufferArg(const std::string& name, Halide::Type type, std::vector<int64_t> shape,
                     const std::vector<Halide::Expr>& sizes)
    : shape_(std::move(shape)), param_(type, static_cast<int>(shape_.size()), name) {
  fix_dense(param_, std::vector<Halide::Expr>(sizes.rbegin(), sizes.rend()));
}

Halide::Expr BufferArg::operator()(const std::vector<Halide::Expr>& at) const {
  return param_(std::vector<Halide::Expr>(at.rbegin(), at.rend()));
}

}  // namespace collage::native
