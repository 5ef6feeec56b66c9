// Which of some programs is fastest, by successive halving (Jamieson and Talwalkar, 2016): all that
// are alive run a short block each in turns, and again, the slower half is dropped, with all whose
// likely interval (measure/blocks.h) lies above the first one's, the others go on with blocks twice
// as long, and so on until two are left, which run whole blocks until one is surely faster or both
// have run `blocks`. Blocks that were disturbed do not count. Where not all may be alive at once
// (memory), they come in groups, and the winner of one takes part in the next.
//
// Every figure is relative to the winner of the group over the same rounds, so drift of the machine
// between rounds and groups does not count. Figures of several groups are a chain of comparisons in
// which whoever was lucky wins and stays: at its end the two best meet once more, and what they
// take then counts.
//
// Figures of one program differ by some 2% from one race to the next. So of those that are no more
// than that behind the fastest the first in rank wins, after it met the fastest in whole blocks. So
// does whoever would win by a figure of a few runs.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "measure/cost.h"

namespace collage {

// Runs that part of a whole block of a program that is ready, at least one run, adding the seconds
// of each. While it exists the program is alive.
using RunBlock = std::function<Status(double part, std::vector<double>& samples)>;

struct Racer {
  std::optional<Measured> measured;  // before: known from an earlier race; afterwards: its figure
  std::string failure;               // why it cannot take part
  RunBlock run = {};  // afterwards: of the winner, if it ran, so that its program is still alive
  size_t rank = 0;    // of programs that are alike the lowest wins
  double charge = 0;  // seconds that count beside what it takes; known once it is made ready
};

// What is behind another by no more than this part of its time is like it.
inline constexpr double kAlike = 0.02;
// Of those with a figure the one that wins; none where nobody has one.
std::optional<size_t> winner_of(const std::vector<Racer>& racers);

struct RaceOptions {
  size_t alive = 2;         // at a time, at least 2
  size_t least_blocks = 2;  // of each, before any is dropped
  int blocks = 4;           // of the last two
  double seconds = 5;       // of runs, after which the least number of blocks is enough
  double surely = 0.02;     // the last two: the loser's interval lies that far above the winner's
  int meetings = 3;         // at the end, at most
  // Called before each program is made ready, with its position among those to time; false: no
  // more, what was found so far counts.
  std::function<bool(size_t at, size_t count)> go_on = [](size_t, size_t) { return true; };
};

// Makes a racer ready, or says why it cannot take part.
using Prepare = std::function<Result<RunBlock>(size_t index)>;

// Fills in what was not known, against the best that was; the winner's index. Without anything
// unknown nothing runs. None: nobody can take part.
Result<std::optional<size_t>> run_race(std::vector<Racer>& racers, const Prepare& prepare,
                                       const RaceOptions& options);

}  // namespace collage
