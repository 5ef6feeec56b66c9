// What compiled kernels ask of the process that loads them: Halide's parallel loop on the process's
// OpenMP (libgomp) team, scratch memory and error reports. Exported: kernels resolve these names
// when they are loaded.
//
// Scratch blocks are kept per thread: a kernel asks for the same few sizes on every run, and fresh
// pages would cost more than many kernels do.
#include "backend/native/runtime_hooks.h"

#include <HalideRuntime.h>
#include <omp.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace collage::native {
namespace {

thread_local std::string last_error;

struct Header {
  size_t bytes;
  char padding[56];
};
static_assert(sizeof(Header) == 64);

constexpr size_t kMostKept = 16;

struct ScratchPool {
  std::vector<Header*> blocks;
  ~ScratchPool() {
    for (Header* block : blocks) std::free(block);
  }
};
thread_local ScratchPool pool;

}  // namespace

std::string take_kernel_error() {
  std::string error;
  error.swap(last_error);
  return error;
}

}  // namespace collage::native

#define COLLAGE_EXPORT __attribute__((visibility("default"), used))

extern "C" {

COLLAGE_EXPORT int halide_do_par_for(void* context, halide_task_t task, int min, int size,
                                     uint8_t* closure) {
  if (size <= 0) return 0;
  if (size == 1) return task(context, min, closure);
  int result = 0;
#pragma omp parallel for schedule(dynamic, 1) shared(result)
  for (int i = min; i < min + size; ++i) {
    const int code = task(context, i, closure);
    if (code != 0) {
#pragma omp atomic write
      result = code;
    }
  }
  return result;
}

COLLAGE_EXPORT void* halide_malloc(void*, size_t bytes) {
  using namespace collage::native;
  auto& blocks = pool.blocks;
  size_t best = blocks.size();
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i]->bytes < bytes || blocks[i]->bytes / 4 > bytes + 4096) continue;
    if (best == blocks.size() || blocks[i]->bytes < blocks[best]->bytes) best = i;
  }
  Header* block = nullptr;
  if (best < blocks.size()) {
    block = blocks[best];
    blocks[best] = blocks.back();
    blocks.pop_back();
  } else {
    const size_t total = (bytes + sizeof(Header) + 127) / 64 * 64;
    block = static_cast<Header*>(std::aligned_alloc(64, total));
    if (block == nullptr) return nullptr;
    block->bytes = total - sizeof(Header);
  }
  return block + 1;
}

COLLAGE_EXPORT void halide_free(void*, void* memory) {
  using namespace collage::native;
  if (memory == nullptr) return;
  Header* block = static_cast<Header*>(memory) - 1;
  auto& blocks = pool.blocks;
  blocks.push_back(block);
  if (blocks.size() > kMostKept) {
    std::free(blocks.front());
    blocks.erase(blocks.begin());
  }
}

COLLAGE_EXPORT void halide_error(void*, const char* message) {
  collage::native::last_error = message;
}
COLLAGE_EXPORT int halide_error_out_of_memory(void*) {
  collage::native::last_error = "out of memory";
  return halide_error_code_out_of_memory;
}
}
