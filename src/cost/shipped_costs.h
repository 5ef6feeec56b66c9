// ShippedCosts: what kernels and conversions took on processors that were measured before, in files
// that are installed beside the library, one a processor and number of threads. They are estimates:
// what a plan uses is tried here, and programs are checked.
//
//   {"collage_costs": 1, "processor": "…", "kind": "…", "threads": 2, "versions": {…}, "speed":
//   {…}} estimate ["onednn", "nn.conv2d", "float32 1", 2.1, 1.3, 0, 1.1]  kernel_estimates.h
//   variant {"name": "direct", …}                                    numbered from 0
//   kernel 0123456789abcdef w 0:31.4 2:29.0                           microseconds
//   conversion 0123456789abcdef w 3.1
//   end 4                                                            lines before this one
//
// A kernel is known by the first digits of the SHA-256 of its target and its function's text, with
// the state of the caches it was timed in. It may be of no variants: the target refused it.
//
// `collage db ship` writes such a file of a database.
#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "cost/database.h"
#include "cost/kernel_estimates.h"
#include "ir/target.h"
#include "measure/task.h"

namespace collage {

// The words of files, for who reads and who writes them.
namespace shipped {

inline constexpr const char *kHead = "collage_costs", *kExtension = ".costs";
inline constexpr int kFormat = 1;
inline constexpr const char *kEstimate = "estimate", *kVariant = "variant", *kKernel = "kernel",
                            *kConversion = "conversion", *kEnd = "end";

inline constexpr size_t kIdDigits = 16;
inline std::string kernel_id(const std::string& text, const std::string& target) {
  return sha256_hex(target + "\n" + text).substr(0, kIdDigits);
}
inline std::string key_of(const std::string& id, CacheState state) {
  return id + " " + cache_state_name(state)[0];
}

}  // namespace shipped

class ShippedCosts {
 public:
  // Of a file's text; kBadModel: it is damaged, or not such a file.
  static Result<ShippedCosts> read(std::string text);
  // Those of a folder that help on a processor with so many threads: its own file; else one of its
  // kind (machine.h), whose rows are scaled by speed; else the estimates of one that is about as
  // fast a thread. Read once a process; one warning for each file that cannot be read.
  static std::shared_ptr<const ShippedCosts> find(const std::filesystem::path& folder,
                                                  const std::string& processor, int threads,
                                                  const std::function<MachineSpeed()>& speed);

  // The variants that were seen there, with what they take in MeasuredVariant::elsewhere; none
  // where the processor is of another kind, or the target's library of another version.
  std::optional<TargetCosts> kernel(const std::string& text, const Target& target,
                                    CacheState cache) const;
  std::optional<double> conversion(const std::string& text, CacheState cache) const;
  // What a kernel of that work is expected to take. On another processor than the file's it is
  // scaled by the machine's speed.
  std::optional<double> expected(const std::string& target, const std::string& algorithm,
                                 const KernelWork& work,
                                 const std::function<MachineSpeed()>& speed) const {
    return estimates_.seconds(target, algorithm, work, is_of_here() ? head_.speed : speed());
  }

 private:
  struct Head {
    std::string processor, kind;  // the latter with the threads; may be empty
    int threads = 0;
    std::map<std::string, std::string> versions;  // of backends
    MachineSpeed speed;
  };
  static Result<Head> head_of(std::string_view line);
  Status read_line(std::string_view kind, std::string_view rest);
  bool is_of_here() const { return nearness_ == Nearness::kHere; }
  std::string_view row(const std::string& id, CacheState cache) const;
  Result<TargetCosts> decoded(std::string_view row, const Target& target) const;

  std::shared_ptr<const std::string> text_;  // which the rest points into
  Head head_;
  enum class Nearness { kOther, kKind, kHere } nearness_ = Nearness::kOther;
  double seconds_factor_ = 1;  // what a second there is expected to be here
  KernelEstimates estimates_;
  std::vector<std::string_view> variants_;
  std::unordered_map<std::string_view, std::string_view> rows_;  // by id and state
};

// The folder that was installed with this library, or that tests name ($COLLAGE_COSTS); empty where
// there is none.
std::filesystem::path shipped_costs_folder();

// Writes the rows of a database that were measured on this processor with the libraries of this
// build, and the estimates that follow from them.
Status write_shipped_costs(CostDatabase& database, std::ostream& out);

}  // namespace collage
