// Parallel regions of the calling thread: with the team that it holds, or with one that it takes
// for the region; alone inside of another region.
#pragma once

#include "runtime/worker_team.h"

namespace collage {

// From the constructor to the destructor `body(data)` is called on the other threads; the calling
// thread calls it itself between the two, as index 0.
class TeamRegion {
 public:
  // `threads` 0: as many as the TeamScope has.
  TeamRegion(Region::Body body, void* data, int threads, const TeamLoop& loop = {});
  ~TeamRegion();
  TeamRegion(const TeamRegion&) = delete;
  TeamRegion& operator=(const TeamRegion&) = delete;

 private:
  const Place before_;
  WorkerTeam* team_ = nullptr;   // that computes it; null: alone
  WorkerTeam* taken_ = nullptr;  // for it
  Region alone_;
};

// The region that the calling thread computes; outside of any, one of its own.
Region& current_region();

// Waits for all threads of the calling thread's region.
void region_barrier();

// Threads of a region of the calling thread: those of its TeamScope; outside of one those of the
// application's own regions.
int team_threads();

// Threads of the regions that the calling thread begins in code whose calls are not redirected (see
// openmp_calls.h): the application's, and functions' that kernels call.
int application_threads();
void set_application_threads(int threads);
// Looks for the library that says so, once in a process; a thread waits for one that does.
void find_openmp();

}  // namespace collage
