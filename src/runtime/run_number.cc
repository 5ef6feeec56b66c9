#include "runtime/run_number.h"

#include <utility>

namespace collage {

namespace {

thread_local uint64_t number_of_run = 0;

}  // namespace

RunNumber::RunNumber(uint64_t number) : before_(std::exchange(number_of_run, number)) {}
RunNumber::~RunNumber() { number_of_run = before_; }
uint64_t RunNumber::current() { return number_of_run; }

}  // namespace collage
