#include "runtime/openmp_calls.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "runtime/team_region.h"

namespace collage {

namespace {

// ---- The calls ----

std::mutex critical, atomic;

long iterations(const TeamLoop& loop) {
  const long span = loop.end - loop.start;
  const long whole = span + loop.increment + (loop.increment > 0 ? -1 : 1);
  return std::max(0L, whole / loop.increment);
}

bool give(const TeamLoop& loop, long first, long last, long* begin, long* end) {
  *begin = loop.start + first * loop.increment;
  *end = loop.start + last * loop.increment;
  return true;
}

// Chunks are claimed. A thread leaves a loop when no chunk is left, so where the region has a later
// number, nothing is left of this one.
bool dynamic_next(long* begin, long* end) {
  constexpr int kShift = 40;
  Place& place = here();
  if (current_region().count == 1) {
    const long count = place.loop.next_chunk++ == 0 ? iterations(place.loop) : 0;
    return count > 0 && give(place.loop, 0, count, begin, end);
  }
  std::atomic<uint64_t>& state = current_region().loop;
  uint64_t was = state.load();
  for (;;) {
    const uint64_t number = was >> kShift;
    if (number > place.loops) return false;
    const long first = number < place.loops ? 0 : static_cast<long>(was - (number << kShift));
    const long last = std::min(iterations(place.loop), first + place.loop.chunk);
    if (first >= last) return false;
    const uint64_t now = (uint64_t{place.loops} << kShift) + static_cast<uint64_t>(last);
    if (state.compare_exchange_weak(was, now)) return give(place.loop, first, last, begin, end);
  }
}
bool dynamic_start(long start, long end, long increment, long chunk, long* begin, long* stop) {
  ++here().loops;
  here().loop = {start, end, increment, std::max(1L, chunk)};
  return dynamic_next(begin, stop);
}

bool static_next(long* begin, long* end) {
  TeamLoop& loop = here().loop;
  const long count = iterations(loop), team = current_region().count, index = here().index;
  const long number = loop.next_chunk++;
  if (loop.chunk == 0) {
    const long each = count / team, more = count % team;
    const long first = index * each + std::min(index, more);
    const long last = first + each + (index < more ? 1 : 0);
    return number == 0 && first < last && give(loop, first, last, begin, end);
  }
  const long first = (number * team + index) * loop.chunk;
  return first < count && give(loop, first, std::min(count, first + loop.chunk), begin, end);
}
bool static_start(long start, long end, long increment, long chunk, long* begin, long* stop) {
  here().loop = {start, end, increment, chunk};
  return static_next(begin, stop);
}

void barrier() { region_barrier(); }
void loop_end() { region_barrier(); }
void loop_end_nowait() {}

bool single_start() {
  uint32_t own = here().singles++;
  if (current_region().count == 1) return true;
  return current_region().singles.compare_exchange_strong(own, own + 1);
}

void critical_start() { critical.lock(); }
void critical_end() { critical.unlock(); }
// One with a name, which has a word of memory.
void named_critical_start(void** name) {
  const std::atomic_ref<void*> word(*name);
  if (word.load() == nullptr) {
    auto* made = new std::mutex;
    void* before = nullptr;
    if (!word.compare_exchange_strong(before, made)) delete made;
  }
  static_cast<std::mutex*>(word.load())->lock();
}
void named_critical_end(void** name) {
  static_cast<std::mutex*>(std::atomic_ref<void*>(*name).load())->unlock();
}
void atomic_start() { atomic.lock(); }
void atomic_end() { atomic.unlock(); }

void parallel(Region::Body body, void* data, unsigned threads, unsigned) {
  const TeamRegion region(body, data, static_cast<int>(threads));
  body(data);
}
void parallel_dynamic(Region::Body body, void* data, unsigned threads, long start, long end,
                      long increment, long chunk, unsigned) {
  const TeamRegion region(body, data, static_cast<int>(threads),
                          {start, end, increment, std::max(1L, chunk)});
  body(data);
}
// As code compiled by GCC before version 4.9 does it: the calling thread computes between the two.
thread_local std::vector<std::unique_ptr<TeamRegion>> open_regions;
void parallel_start(Region::Body body, void* data, unsigned threads) {
  open_regions.push_back(std::make_unique<TeamRegion>(body, data, static_cast<int>(threads)));
}
void parallel_end() { open_regions.pop_back(); }

int num_threads() { return current_region().count; }
int thread_num() { return here().region == nullptr ? 0 : here().index; }
int in_parallel() { return num_threads() > 1 ? 1 : 0; }
int max_threads() { return team_threads(); }
void set_num_threads(int threads) {
  threads = std::max(1, threads);
  here().threads > 0 ? void(here().threads = threads) : set_application_threads(threads);
}
int num_places() { return 0; }

struct Call {
  std::string_view name;
  void* function;  // null: GCC's own serves
};

template <typename Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

const Call kCalls[] = {
    {"GOMP_parallel", address_of(parallel)},
    {"GOMP_parallel_loop_dynamic", address_of(parallel_dynamic)},
    {"GOMP_parallel_loop_nonmonotonic_dynamic", address_of(parallel_dynamic)},
    {"GOMP_parallel_start", address_of(parallel_start)},
    {"GOMP_parallel_end", address_of(parallel_end)},
    {"GOMP_barrier", address_of(barrier)},
    {"GOMP_single_start", address_of(single_start)},
    {"GOMP_critical_start", address_of(critical_start)},
    {"GOMP_critical_end", address_of(critical_end)},
    {"GOMP_critical_name_start", address_of(named_critical_start)},
    {"GOMP_critical_name_end", address_of(named_critical_end)},
    {"GOMP_atomic_start", address_of(atomic_start)},
    {"GOMP_atomic_end", address_of(atomic_end)},
    {"GOMP_loop_static_start", address_of(static_start)},
    {"GOMP_loop_static_next", address_of(static_next)},
    {"GOMP_loop_dynamic_start", address_of(dynamic_start)},
    {"GOMP_loop_dynamic_next", address_of(dynamic_next)},
    {"GOMP_loop_nonmonotonic_dynamic_start", address_of(dynamic_start)},
    {"GOMP_loop_nonmonotonic_dynamic_next", address_of(dynamic_next)},
    {"GOMP_loop_end", address_of(loop_end)},
    {"GOMP_loop_end_nowait", address_of(loop_end_nowait)},
    {"omp_get_num_threads", address_of(num_threads)},
    {"omp_get_thread_num", address_of(thread_num)},
    {"omp_in_parallel", address_of(in_parallel)},
    {"omp_get_max_threads", address_of(max_threads)},
    {"omp_set_num_threads", address_of(set_num_threads)},
    {"omp_get_num_places", address_of(num_places)},
    {"omp_get_thread_limit", nullptr},
    {"omp_get_wtime", nullptr},
};

// ---- Leading them here ----

uintptr_t page() {
  static const auto bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

// A library of the process, as the loader has it in memory.
struct Library {
  uintptr_t address = 0;  // within it
  uintptr_t base = 0, begin = 0, end = 0;
  const ElfW(Dyn) * dynamic = nullptr;
  std::vector<std::pair<uintptr_t, uintptr_t>> constant;  // pages, once it is loaded
};

int find_library(dl_phdr_info* info, size_t, void* found) {
  Library& library = *static_cast<Library*>(found);
  Library own;
  own.address = library.address;
  own.base = info->dlpi_addr;
  bool is_it = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    const uintptr_t begin = own.base + segment.p_vaddr, end = begin + segment.p_memsz;
    if (segment.p_type == PT_DYNAMIC) own.dynamic = reinterpret_cast<const ElfW(Dyn)*>(begin);
    if (segment.p_type == PT_GNU_RELRO) own.constant.push_back({begin, end / page() * page()});
    if (segment.p_type != PT_LOAD) continue;
    is_it = is_it || (begin <= own.address && own.address < end);
    own.begin = own.begin == 0 ? begin : std::min(own.begin, begin);
    own.end = std::max(own.end, end);
  }
  if (is_it) library = own;
  return is_it ? 1 : 0;
}

// The slots of its tables that hold addresses of functions, with the functions' names.
std::vector<std::pair<std::string_view, void**>> slots_of(const Library& library) {
  uintptr_t strings = 0, symbols = 0, jumps = 0, others = 0;
  size_t jump_bytes = 0, other_bytes = 0;
  for (const ElfW(Dyn)* entry = library.dynamic; entry->d_tag != DT_NULL; ++entry) {
    const uintptr_t value = entry->d_un.d_ptr;
    const uintptr_t pointer = value < library.base ? library.base + value : value;
    if (entry->d_tag == DT_STRTAB) strings = pointer;
    if (entry->d_tag == DT_SYMTAB) symbols = pointer;
    if (entry->d_tag == DT_JMPREL) jumps = pointer;
    if (entry->d_tag == DT_RELA) others = pointer;
    if (entry->d_tag == DT_PLTRELSZ) jump_bytes = value;
    if (entry->d_tag == DT_RELASZ) other_bytes = value;
  }
  std::vector<std::pair<std::string_view, void**>> slots;
  const auto add = [&](uintptr_t table, size_t bytes) {
    const auto* relocation = reinterpret_cast<const ElfW(Rela)*>(table);
    for (size_t i = 0; i < bytes / sizeof *relocation; ++i) {
      const auto type = ELF64_R_TYPE(relocation[i].r_info);
      if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) continue;
      const auto& symbol =
          reinterpret_cast<const ElfW(Sym)*>(symbols)[ELF64_R_SYM(relocation[i].r_info)];
      const char* name = reinterpret_cast<const char*>(strings) + symbol.st_name;
      slots.push_back({name, reinterpret_cast<void**>(library.base + relocation[i].r_offset)});
    }
  };
  add(jumps, jump_bytes);
  add(others, other_bytes);
  return slots;
}

Status write_slot(const Library& library, void** slot, void* function) {
  const auto at = reinterpret_cast<uintptr_t>(slot);
  const bool constant =
      std::any_of(library.constant.begin(), library.constant.end(),
                  [&](const auto& range) { return range.first <= at && at < range.second; });
  const auto allow = [&](int what) -> Status {
    auto* begin = reinterpret_cast<void*>(at / page() * page());
    if (!constant || mprotect(begin, page(), what) == 0) return {};
    return internal_error("a table of functions: {}", std::strerror(errno));
  };
  TRY(allow(PROT_READ | PROT_WRITE));
  std::atomic_ref<void*>(*slot).store(function);
  return allow(PROT_READ);
}

}  // namespace

Status lead_openmp_calls(const void* address) {
  static auto* mutex = new std::mutex;
  const std::lock_guard guard(*mutex);
  Library library;
  library.address = reinterpret_cast<uintptr_t>(address);
  if (dl_iterate_phdr(find_library, &library) == 0 || library.dynamic == nullptr)
    return internal_error("no library holds {}", address);
  std::vector<std::pair<void**, void*>> changes;
  for (const auto& [name, slot] : slots_of(library)) {
    const auto call = std::find_if(std::begin(kCalls), std::end(kCalls),
                                   [&](const Call& each) { return each.name == name; });
    if (call == std::end(kCalls)) {
      if (name.starts_with("GOMP_") || name.starts_with("omp_"))
        return unsupported("a library that calls {}", name);
    } else if (call->function != nullptr) {
      changes.push_back({slot, call->function});
    }
  }
  for (const auto& [slot, function] : changes) TRY(write_slot(library, slot, function));
  return {};
}

namespace {

// Those of the library that holds this code, from the moment that it is loaded.
const char kHere = 0;
[[maybe_unused]] const bool led = lead_openmp_calls(&kHere).ok();

}  // namespace

}  // namespace collage
