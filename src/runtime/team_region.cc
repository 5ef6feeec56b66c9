#include "runtime/team_region.h"

#include <dlfcn.h>

#include <algorithm>

#include "runtime/team_pool.h"
#include "runtime/thread_team.h"

namespace collage {

namespace {

// GCC's OpenMP library, which the application may use.
struct OpenMp {
  int (*max_threads)();
  int (*in_parallel)();
  void (*set_threads)(int);

  static const OpenMp& of_process() {
    static const OpenMp library = [] {
      void* handle = dlopen("libgomp.so.1", RTLD_LAZY);
      const auto find = [&](const char* name) {
        return handle == nullptr ? nullptr : dlsym(handle, name);
      };
      return OpenMp{reinterpret_cast<int (*)()>(find("omp_get_max_threads")),
                    reinterpret_cast<int (*)()>(find("omp_in_parallel")),
                    reinterpret_cast<void (*)(int)>(find("omp_set_num_threads"))};
    }();
    return library;
  }
};

}  // namespace

void find_openmp() { (void)OpenMp::of_process(); }

int application_threads() {
  const OpenMp& library = OpenMp::of_process();
  return library.max_threads != nullptr ? library.max_threads() : 1;
}

void set_application_threads(int threads) {
  if (const OpenMp& library = OpenMp::of_process(); library.set_threads != nullptr)
    library.set_threads(threads);
}

int team_threads() {
  if (here().threads > 0) return here().threads;
  const OpenMp& library = OpenMp::of_process();
  return library.in_parallel != nullptr && library.in_parallel() != 0 ? 1 : application_threads();
}

Region& current_region() {
  thread_local Region own;
  return here().region != nullptr ? *here().region : own;
}

TeamRegion::TeamRegion(Region::Body body, void* data, int threads, const TeamLoop& loop)
    : before_(here()) {
  Place& place = here();
  const int of_scope = team_threads();
  if (threads <= 0) threads = of_scope;
  if (current_region().count > 1) threads = 1;
  if (threads > 1 && place.team == nullptr)
    taken_ = TeamPool::of_process().take(threads, !place.holds_team);
  WorkerTeam* team = taken_ != nullptr ? taken_ : place.team;
  place.region = &alone_;
  if (threads > 1 && team->size() > 1) {
    team_ = team;
    place.region = &team->begin(threads, of_scope, body, data, loop);
  }
  place.holds_team = place.holds_team || taken_ != nullptr;
  place.index = 0;
  place.loops = place.singles = 0;
  place.loop = loop;
}

TeamRegion::~TeamRegion() {
  if (team_ != nullptr) team_->end();
  if (taken_ != nullptr) TeamPool::of_process().give_back(taken_);
  here() = before_;
}

void region_barrier() {
  Region& region = current_region();
  if (region.count == 1) return;
  const uint32_t passed = region.barriers.value();
  if (++region.at_barrier == region.count) {
    region.at_barrier = 0;
    region.barriers.set(passed + 1);
  } else {
    region.barriers.wait_while(passed);
  }
}

}  // namespace collage
