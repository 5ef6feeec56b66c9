// What the machine can do at most: the two roofs of the roofline model (Williams, Waterman and
// Patterson, 2009), measured here and now.
#pragma once

#include <map>
#include <span>
#include <string>

#include "runtime/thread_team.h"

namespace collage {

struct MachinePeaks {
  double flops_per_second = 0;  // fp32 multiply-adds on all threads of the team, counted as two
  // Reading memory beyond the caches on all threads; 0 where there was no memory for the buffers.
  double bytes_per_second = 0;
  // Of targets, by their text, whose kernels compute with something faster (Backend::peak_probe).
  std::map<std::string, double> target_flops_per_second = {};
};

// Takes about 0.2 s. The team must be otherwise idle.
MachinePeaks measure_peaks(ThreadTeam& team, std::span<const std::string> targets = {});

// The shortest time that so much work of a target's can take: the larger of computing and moving
// it.
double roofline_seconds(const MachinePeaks& peaks, const std::string& target, double flops,
                        double bytes);

}  // namespace collage
