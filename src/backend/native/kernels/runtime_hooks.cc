// What compiled kernels call: Halide's parallel loop on the team of the run,
// scratch memory and error reports, and external functions, by their labels.
//
// Scratch blocks are kept per thread: a kernel asks for the same few sizes on every run, and fresh
// pages would cost more than many kernels do.
#include "backend/native/kernels/runtime_hooks.h"

#include <HalideRuntime.h>
#include <omp.h>
#include <setjmp.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "tensor_program/external.h"
#include "tensor_program/intrinsic.h"

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
  std::vector<Header*> blocks;  // that are free
  std::vector<Header*> in_use;  // in the order in which they were asked for
  ScratchPool() { in_use.reserve(64); }
  ~ScratchPool() {
    for (Header* block : blocks) std::free(block);
  }
};
thread_local ScratchPool pool;

/// Where a thread goes on when scratch memory cannot be had. All that it leaves is compiled code,
/// in which nothing is to be destroyed but the scratch memory that it has.
struct Landing {
  jmp_buf place;
  Landing* before;
  size_t in_use;
};
thread_local Landing* landing = nullptr;
std::atomic<uint64_t> failures{0};

/// What `call` gives, which runs compiled code.
template <typename Call>
[[gnu::noinline]] int with_landing(Call call) {
  Landing here;
  here.before = landing;
  here.in_use = pool.in_use.size();
  if (_setjmp(here.place) != 0) {
    landing = here.before;
    for (; pool.in_use.size() > here.in_use; pool.in_use.pop_back()) std::free(pool.in_use.back());
    last_error = "out of memory";
    return halide_error_code_out_of_memory;
  }
  landing = &here;
  const int code = call();
  landing = here.before;
  return code;
}

/// "cblas_sgemm 4x8 8x3 4x3": the label, and the shapes of inputs and destination; "-" is that of a
/// scalar.
struct ExternalStage {
  std::string label;
  std::vector<Shape> shapes;

  explicit ExternalStage(const char* text) {
    std::istringstream words(text);
    words >> label;
    for (std::string word; words >> word;) {
      Shape& shape = shapes.emplace_back();
      if (word == "-") continue;
      std::istringstream extents(word);
      for (std::string extent; std::getline(extents, extent, 'x');)
        shape.push_back(std::stoll(extent));
    }
  }
};

bool asks_for_bounds(const halide_buffer_t& buffer) {
  return buffer.host == nullptr && buffer.device == 0;
}

/// Before a kernel allocates, it asks what part of its inputs the function needs: all of them.
int call_external(const char* text, std::initializer_list<halide_buffer_t*> buffers) {
  const ExternalStage stage(text);
  bool bounds_only = false;
  std::vector<DLTensor> tensors;
  size_t next = 0;
  for (halide_buffer_t* buffer : buffers) {
    const Shape& shape = stage.shapes[next++];
    bounds_only = bounds_only || asks_for_bounds(*buffer);
    int32_t stride = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      halide_dimension_t& dim = buffer->dim[i];
      const auto extent = static_cast<int32_t>(shape[shape.size() - 1 - i]);
      if (asks_for_bounds(*buffer)) {
        dim.min = 0;
        dim.extent = extent;
      } else if (!bounds_only && (dim.min != 0 || dim.extent != extent || dim.stride != stride)) {
        last_error = stage.label + ": an array that is not whole and dense";
        return halide_error_code_generic_error;
      }
      stride *= extent;
    }
    tensors.push_back(tensor_program::dl_tensor(DType::kFloat32, shape, buffer->host));
  }
  if (bounds_only) return 0;
  const auto* function = tensor_program::find_external(stage.label);
  const std::span<const DLTensor> all = tensors;
  const Status status =
      function == nullptr
          ? internal_error("no external function '{}'", stage.label)
          : tensor_program::call_external(*function, all.first(all.size() - 1), all.last(1));
  if (status.ok()) return 0;
  last_error = status.to_string();
  return halide_error_code_generic_error;
}

/// Tasks of a loop that one thread begins with.
struct alignas(64) Share {
  std::atomic<int> next;
  int end;
};
constexpr int kMostShares = 32;

/// Each thread takes consecutive tasks, which mostly read what it wrote in the kernel before: from
/// a core with another cache that takes several times as long. Then it helps the others with
/// theirs.
int run_parallel(void* context, halide_task_t task, int min, int size, uint8_t* closure) {
  if (size <= 0) return 0;
  if (size == 1) return task(context, min, closure);
  const int count = std::min({omp_get_max_threads(), size, kMostShares});
  Share shares[kMostShares];
  for (int i = 0, begin = min; i < count; ++i) {
    const int end = begin + size / count + (i < size % count ? 1 : 0);
    shares[i].next.store(begin, std::memory_order_relaxed);
    shares[i].end = begin = end;
  }
  std::atomic<int> result{0};
#pragma omp parallel shared(shares, result)
  for (int turn = 0; turn < count; ++turn) {
    Share& share = shares[(omp_get_thread_num() + turn) % count];
    for (;;) {
      const int i = share.next.fetch_add(1, std::memory_order_relaxed);
      if (i >= share.end) break;
      const int code = with_landing([&] { return task(context, i, closure); });
      if (code != 0) result = code;
    }
  }
  return result;
}

void* allocate_scratch(void*, size_t bytes) {
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
    block = total < bytes ? nullptr : static_cast<Header*>(std::aligned_alloc(64, total));
    if (block == nullptr) {
      ++failures;
      if (landing != nullptr) _longjmp(landing->place, 1);
      return nullptr;
    }
    block->bytes = total - sizeof(Header);
  }
  pool.in_use.push_back(block);
  return block + 1;
}

void free_scratch(void*, void* memory) {
  if (memory == nullptr) return;
  Header* block = static_cast<Header*>(memory) - 1;
  const auto used = std::find(pool.in_use.rbegin(), pool.in_use.rend(), block);
  if (used != pool.in_use.rend()) pool.in_use.erase(std::next(used).base());
  auto& blocks = pool.blocks;
  blocks.push_back(block);
  if (blocks.size() > kMostKept) {
    std::free(blocks.front());
    blocks.erase(blocks.begin());
  }
}

int call_external1(const char* stage, halide_buffer_t* a, halide_buffer_t* to) {
  return call_external(stage, {a, to});
}
int call_external2(const char* stage, halide_buffer_t* a, halide_buffer_t* b, halide_buffer_t* to) {
  return call_external(stage, {a, b, to});
}
int call_external3(const char* stage, halide_buffer_t* a, halide_buffer_t* b, halide_buffer_t* c,
                   halide_buffer_t* to) {
  return call_external(stage, {a, b, c, to});
}

void report_error(void*, const char* message) { last_error = message; }
int report_out_of_memory(void*) {
  last_error = "out of memory";
  return halide_error_code_out_of_memory;
}

/// What the user's intrinsic leaves in the first of its sums (codegen/tile_calls.h).
template <typename T>
T call_intrinsic(const char* text, T* sums, const char* a, const char* b, const int64_t* places) {
  thread_local std::string latest;
  thread_local int64_t number = 0;
  thread_local const tensor_program::Intrinsic* intrinsic = nullptr;
  if (latest != text) {
    latest = text;
    number = std::strtoll(text, nullptr, 10);
    intrinsic = tensor_program::find_intrinsic(latest.substr(latest.find(' ') + 1));
  }
  const auto bytes = [](int64_t n, DType type) {
    return n * static_cast<int64_t>(dtype_size(type));
  };
  intrinsic->call(number, sums + places[0], a + bytes(places[1], intrinsic->shared_dtype()),
                  b + bytes(places[2], intrinsic->lanes_dtype()), places + 3);
  return sums[places[0]];
}

template <typename Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace

const std::vector<Hook>& runtime_hooks() {
  static const auto* hooks = [] {
    auto* all =
        new std::vector<Hook>{{"halide_do_par_for", address(run_parallel)},
                              {"halide_malloc", address(allocate_scratch)},
                              {"halide_free", address(free_scratch)},
                              {"halide_error", address(report_error)},
                              {"halide_error_out_of_memory", address(report_out_of_memory)},
                              {"collage_call_external1", address(call_external1)},
                              {"collage_call_external2", address(call_external2)},
                              {"collage_call_external3", address(call_external3)},
                              {"collage_call_intrinsic_int32", address(call_intrinsic<int32_t>)},
                              {"collage_call_intrinsic_float32", address(call_intrinsic<float>)}};
    for (Hook& hook : assertion_hooks()) all->push_back(std::move(hook));
    return all;
  }();
  return *hooks;
}

int call_compiled(int (*code)(void**), void** arguments) {
  return with_landing([&] { return code(arguments); });
}

uint64_t scratch_failures() { return failures; }

void set_kernel_error(std::string message) { last_error = std::move(message); }

std::string take_kernel_error() {
  std::string error;
  error.swap(last_error);
  return error;
}

}  // namespace collage::native
