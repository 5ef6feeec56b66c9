#include "measure/own_time.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace collage {

namespace {

namespace fs = std::filesystem;

// The fields of a stat file from the third, the state, on: the second may hold spaces.
std::istringstream fields_of(const fs::path& stat) {
  std::ifstream in(stat);
  std::string text;
  std::getline(in, text);
  const size_t end = text.rfind(") ");
  return std::istringstream(end == std::string::npos ? "" : text.substr(end + 2));
}

}  // namespace

double OwnTime::seconds_run() const {
  std::istringstream fields = fields_of(fmt::format("/proc/{}/stat", process_));
  std::string skipped;
  for (int field = 3; field < 14; ++field) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

bool OwnTime::waits() const {
  std::error_code code;
  fs::directory_iterator threads(fmt::format("/proc/{}/task", process_), code);
  for (; !code && threads != fs::directory_iterator(); threads.increment(code)) {
    char state = 0;
    fields_of(threads->path() / "stat") >> state;
    if (state == 'R' || state == 'D') return true;
  }
  return false;
}

double OwnTime::of(double seconds) {
  const double before = ran_;
  ran_ = seconds_run();
  return waits() ? std::clamp(ran_ - before, 0.0, seconds) : seconds;
}

}  // namespace collage
