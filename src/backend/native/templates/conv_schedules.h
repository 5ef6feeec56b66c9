// Schedules of the direct convolution (conv_template.h): which micro-kernel, how large its register
// tile is, and how the work divides into tasks. The best four by estimated waste, loads and
// the bytes of weights and input are kept for a problem, and kernel_variants.cc offers one or two
// of these for each layout: a new schedule has to rank among them. Measuring decides among what is
// offered. A schedule is found again by its text: to_string() must tell all fields apart.
#pragma once

#include <string>
#include <vector>

#include "backend/native/templates/conv_problem.h"

namespace collage::native {

struct ConvSchedule {
  enum class Vectors { kChannels, kPixels };
  enum class Split { kRows, kChannels };  ///< what the parallel tasks divide
  Vectors vectors = Vectors::kChannels;
  Split split = Split::kRows;
  int k_tile = 1;       ///< kChannels: blocks of 16 output channels; kPixels: output channels
  int x_tile = 14;      ///< kChannels: pixels; kPixels: vectors of 16
  int y_tile = 1;       ///< rows in the register tile
  int strip = 1;        ///< rows of one task (kRows); tiles where the map is one row
  bool k_inner = true;  ///< output-channel loop inside the pixel loops
  int streams = 1;      ///< kChannels: parts of the input channels summed side by side
  int k_task = 1;       ///< kChannels: k tiles of one task (kChannels), one after the other
  bool ahead = false;   ///< weights are read ahead (weights_ahead.h)

  std::string to_string() const;
};

/// Schedules worth measuring, most promising first; empty where the template does not apply.
std::vector<ConvSchedule> conv_schedules(const ConvProblem& problem, int threads, bool avx512);

}  // namespace collage::native
