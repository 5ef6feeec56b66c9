#include "runtime/run_number.h"

#include <utility>

namespace collage {

namespace {

thread_local std::optional<uint64_t> number_of_run;

}  // namespace

RunNumber::RunNumber(std::optional<uint64_t> number)
    : before_(std::exchange(number_of_run, number)) {}
RunNumber::~RunNumber() { number_of_run = before_; }
std::optional<uint64_t> RunNumber::of_user() { return number_of_run; }

}  // namespace collage
