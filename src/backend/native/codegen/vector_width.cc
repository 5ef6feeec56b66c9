#include "backend/native/codegen/vector_width.h"

#include <atomic>

#include "backend/native/codegen/code_cache.h"

namespace collage::native {
namespace {

std::atomic<int> assumed = 0;  // 0: that of the processor

}  // namespace

int vector_width() {
  const int other = assumed;
  return other != 0 ? other : kernel_target().natural_vector_size<float>();
}

AssumedVectorWidth::AssumedVectorWidth(int width) { assumed = width; }
AssumedVectorWidth::~AssumedVectorWidth() { assumed = 0; }

}  // namespace collage::native
