#include "compiler/fault_backend.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "backend/reference/kernels/interpreted_kernel.h"
#include "backend/targets/backends.h"
#include "ir/op.h"
#include "measure/lies.h"
#include "partition/rules/op_predicate.h"

namespace collage::testing {

namespace {

// What a fault may touch: the kernel's own buffers, after the right result was written.
struct Buffers {
  float* input;
  float* output;
  size_t count;  // of outputs
};
using Fault = std::function<Status(const Buffers&)>;

[[noreturn]] void die_by(int signal) {
  ::raise(signal);
  std::abort();
}

Fault scaled(float factor) {
  return [factor](const Buffers& b) {
    for (size_t i = 0; i < b.count; ++i) b.output[i] *= factor;
    return Status();
  };
}

Fault one_element(float value) {
  return [value](const Buffers& b) {
    b.output[b.count - 1] = value;
    return Status();
  };
}

void swallow_memory(size_t at_most) {
  constexpr size_t kChunk = size_t{64} << 20;
  for (size_t had = 0; had < at_most; had += kChunk) {
    char* chunk = static_cast<char*>(::operator new(kChunk));
    // One page: the limit counts what is reserved, and a virtual machine that hands out its
    // memory slowly would take longer over the rest than a worker may stay silent.
    chunk[0] = 1;
    asm volatile("" : : "r"(chunk) : "memory");
  }
}

std::atomic<int> told{0};

// "lie0" …: what is told of a right result (measure/lies.h).
std::map<std::string, Fault> with_lies(std::map<std::string, Fault> table) {
  const std::vector<Lie> lies = all_lies();
  for (size_t i = 0; i < lies.size(); ++i)
    table["lie" + std::to_string(i)] = [lie = lies[i],
                                        runs = std::make_shared<int>(0)](const Buffers& b) {
      const Shape shape = {static_cast<int64_t>(b.count)};
      Tensor result = Tensor::borrow(DType::kFloat32, shape, b.output);
      lie.tell(result, (*runs)++);
      ++told;
      return Status();
    };
  return table;
}

const std::map<std::string, Fault>& faults() {
  static const std::map<std::string, Fault> table = with_lies({
      {"none", [](const Buffers&) { return Status(); }},
      {"segv",
       [](const Buffers&) -> Status {
         auto* nowhere = reinterpret_cast<volatile int*>(16);
         asm volatile("" : "+r"(nowhere));
         *nowhere = 1;
         return {};
       }},
      {"sigill", [](const Buffers&) -> Status { __builtin_trap(); }},
      {"abort", [](const Buffers&) -> Status { die_by(SIGABRT); }},
      {"sigkill", [](const Buffers&) -> Status { die_by(SIGKILL); }},
      {"uncaught_bad_alloc",
       [](const Buffers&) -> Status {
         // As in a library's own thread, where nobody catches it.
         std::thread([] { swallow_memory(std::numeric_limits<size_t>::max() / 2); }).join();
         return {};
       }},
      {"hang",
       [](const Buffers&) -> Status {
         while (true) std::this_thread::sleep_for(std::chrono::seconds(1));
       }},
      {"oom",
       [](const Buffers&) {
         swallow_memory(std::numeric_limits<size_t>::max() / 2);
         return Status();
       }},
      {"leak",
       [](const Buffers&) {
         swallow_memory(size_t{64} << 20);
         return Status();
       }},
      {"needs_memory",
       [](const Buffers&) {
         constexpr size_t kNeeded = size_t{1500} << 20;
         ::operator delete(::operator new(kNeeded));
         return Status();
       }},
      {"slow_to_begin",
       [](const Buffers&) {
         static const bool waited = [] {
           std::this_thread::sleep_for(std::chrono::milliseconds(2500));
           return true;
         }();
         return waited ? Status() : internal_error("it did not begin");
       }},
      {"unavailable",
       [](const Buffers&) { return error(ErrorCode::kUnavailable, "no space left on the disk"); }},
      {"crash_without_memory",
       [](const Buffers&) -> Status {
         const rlimit little{1 << 20, 1 << 20};
         ::setrlimit(RLIMIT_AS, &little);
         die_by(SIGABRT);
       }},
      {"exit_without_disk",
       [](const Buffers&) -> Status {
         // As a library does that cannot write a file.
         ::setenv("TMPDIR", "/nonexistent", 1);
         std::exit(1);
       }},
      {"fork",
       [](const Buffers&) {
         // The child keeps all descriptors open, as a careless library's would.
         if (::fork() == 0)
           while (true) ::sleep(100);
         return Status();
       }},
      {"fork_and_die",
       [](const Buffers&) -> Status {
         if (::fork() == 0)
           while (true) ::sleep(100);
         die_by(SIGABRT);
       }},
      {"nan", one_element(std::numeric_limits<float>::quiet_NaN())},
      {"infinity", one_element(std::numeric_limits<float>::infinity())},
      {"one_ulp",
       [](const Buffers& b) {
         for (size_t i = 0; i < b.count; ++i) b.output[i] = std::nextafter(b.output[i], 9.0f);
         return Status();
       }},
      {"wrong_by_half_a_thousandth", scaled(1.0005f)},  // which a whole model may err by
      {"wrong_by_a_thousandth", scaled(1.001f)},
      {"wrong_by_a_tenth", scaled(1.1f)},
      {"byte_past_output",
       [](const Buffers& b) {
         float* end = b.output + b.count;
         asm volatile("" : "+r"(end));
         *reinterpret_cast<char*>(end) = 0;
         return Status();
       }},
      {"writes_input",
       [](const Buffers& b) {
         b.input[0] = 42;
         return Status();
       }},
      {"garbage_reply",
       [](const Buffers&) {
         constexpr char kGarbage[] = "\x01\x7f{ no reply at all\n";
         if (::write(4, kGarbage, sizeof kGarbage) < 0) std::abort();
         std::this_thread::sleep_for(std::chrono::seconds(100));
         return Status();
       }},
      {"false_reply",
       [](const Buffers&) {
         constexpr char kReply[] = "{\"done\":[]}\n";
         if (::write(4, kReply, sizeof kReply - 1) < 0) std::abort();
         std::this_thread::sleep_for(std::chrono::seconds(100));
         return Status();
       }},
      {"exit", [](const Buffers&) -> Status { ::_exit(0); }},
      {"throw", [](const Buffers&) -> Status { throw std::runtime_error("thrown on purpose"); }},
      {"error", [](const Buffers&) { return internal_error("an ordinary failure"); }},
      {"stack_overflow",
       [](const Buffers&) {
         std::function<int(int)> deeper = [&](int n) {
           volatile char frame[4096] = {};
           return n < 0 ? 0 : deeper(n + 1) + frame[7];
         };
         return deeper(0) == 1 ? Status() : Status();
       }},
  });
  return table;
}

std::string option(const Target& target, const std::string& name) {
  auto it = target.options.find(name);
  return it == target.options.end() ? "" : it->second;
}

bool in_worker() {
  std::ifstream in("/proc/self/cmdline");
  std::string program, verb;
  std::getline(in, program, '\0');
  std::getline(in, verb, '\0');
  return verb == "worker";
}

// Whether this has happened, in any process that has the same cache folder.
bool happened_before(const std::string& what) {
  const std::string mark = std::string(std::getenv("COLLAGE_CACHE")) + ".happened." +
                           std::to_string(std::hash<std::string>{}(what));
  const int fd = ::open(mark.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd >= 0) ::close(fd);
  return fd < 0;
}

// When a kernel fails.
struct Condition {
  int after = 0;      // runs
  double above = -1;  // magnitude of some input, and of none a hundred
};

class FaultyKernel : public Kernel {
 public:
  FaultyKernel(std::unique_ptr<Kernel> right, Fault fault, Condition when, const Function& function)
      : right_(std::move(right)),
        fault_(std::move(fault)),
        when_(when),
        inputs_(static_cast<size_t>(num_elements(function->params[0]->tensor_type().shape))),
        outputs_(static_cast<size_t>(num_elements(function->result_type().leaves()[0].shape))) {}
  Status run(const KernelArgs& args) override {
    TRY(right_->run(args));
    auto* input = static_cast<float*>(args.inputs[0]);
    // Kernels are tried at the ends of numbers too: where it fails are ordinary ones.
    constexpr float kOrdinary = 100;
    const auto any_above = [&](double size) {
      return std::any_of(input, input + inputs_,
                         [&](float value) { return std::abs(value) > size; });
    };
    const bool fails = when_.above < 0 || (any_above(when_.above) && !any_above(kOrdinary));
    if (++runs_ <= when_.after || !fails) return {};
    return fault_({input, static_cast<float*>(args.outputs[0]), outputs_});
  }

 private:
  std::unique_ptr<Kernel> right_;
  Fault fault_;
  Condition when_;
  int runs_ = 0;
  size_t inputs_, outputs_;  // elements of the first of each
};

// A kernel with other schedules: most are slow.
class SlowKernel : public Kernel {
 public:
  explicit SlowKernel(std::unique_ptr<Kernel> right) : right_(std::move(right)) {}
  Status run(const KernelArgs& args) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return right_->run(args);
  }

 private:
  std::unique_ptr<Kernel> right_;
};

constexpr std::string_view kSchedule = "schedule ";
constexpr char kFast = '3', kFails = '2';  // options of the two decisions

class FaultBackend : public Backend {
 public:
  FaultBackend()
      : Backend("faulty", [] {
          BackendTraits traits{.version = "1", .priority = 1};
          for (const char* name : {"fault", "at", "op", "twice", "only", "after", "above", "once",
                                   "schedules", "note"})
            traits.options.push_back({name});
          return traits;
        }) {}
  PartitionRulePtr partition_rule(const Target& target) const override {
    if (option(target, "at") == "rule") (void)fault_of(target)({});
    return std::make_shared<OpPredicatePartitionRule>(
        "faulty", [op = option(target, "op")](const CallNode& call) {
          if (call.op == nullptr) return false;
          if (!op.empty()) return call.op->name == op;
          return call.op->kind == FusionKind::kElementwise && call.args.size() == 1;
        });
  }
  Result<std::vector<Variant>> variants(const Function& function, const Target& target,
                                        const CompileOptions&) const override {
    if (option(target, "at") == "variants") TRY(fault_of(target)({}));
    Variant bad = Variant::plain("bad", function);
    if (option(target, "fault") == "wrong_encoding")
      bad.outputs[0].layout = Layout::channels_last(6);
    if (option(target, "fault") == "wrong_count") bad.outputs.push_back(bad.outputs[0]);
    std::vector<Variant> variants{bad};
    if (option(target, "twice") == "1") variants.push_back(Variant::plain("bad too", function));
    if (option(target, "only").empty()) variants.push_back(Variant::plain("good", function));
    return variants;
  }
  Result<ScheduleSpace> schedule_space(const Function& function, const Target& target,
                                       const CompileOptions&) const override {
    ScheduleSpace space;
    if (option(target, "schedules").empty()) return space;
    space.options = {4, 3, 5};
    space.variant = [function](const ScheduleSpace::Choice& choice) {
      std::string name(kSchedule);
      for (const size_t option : choice) name += std::to_string(option);
      return Variant::plain(name, function);
    };
    space.stated = [function](const std::string& text) -> std::optional<Variant> {
      if (!text.starts_with(kSchedule)) return std::nullopt;
      return Variant::plain(text.substr(0, text.find('(')), function);
    };
    return space;
  }
  Result<std::unique_ptr<Kernel>> compile(const Function& function, const Variant& variant,
                                          const Target& target,
                                          const CompileOptions&) const override {
    std::unique_ptr<Kernel> right = TRY(make_interpreted_kernel(function));
    const std::string digits =
        variant.name.starts_with(kSchedule) ? variant.name.substr(kSchedule.size()) : "";
    if (!option(target, "schedules").empty() && !digits.starts_with(kFast))
      right = std::make_unique<SlowKernel>(std::move(right));
    if (variant.name == "good" || (!digits.empty() && digits[1] != kFails)) return right;
    if (option(target, "at") == "compile") TRY(fault_of(target)({}));
    if (option(target, "at") == "compile_for_the_program" && !in_worker())
      TRY(fault_of(target)({}));
    Condition when;
    when.after = std::atoi(option(target, "after").c_str());
    if (const std::string above = option(target, "above"); !above.empty())
      when.above = std::atof(above.c_str());
    const std::string at = option(target, "at");
    const bool when_run = at.empty() || (at == "run_in_the_program" && !in_worker());
    return Result<std::unique_ptr<Kernel>>(std::make_unique<FaultyKernel>(
        std::move(right), when_run ? fault_of(target) : faults().at("none"), when, function));
  }

 private:
  static Fault fault_of(const Target& target) {
    auto it = faults().find(option(target, "fault"));
    if (it == faults().end()) return faults().at("none");
    if (option(target, "once").empty()) return it->second;
    return [it, what = target.to_string()](const Buffers& buffers) {
      return happened_before(what) ? Status() : it->second(buffers);
    };
  }
};

}  // namespace

std::unique_ptr<Backend> make_fault_backend() { return std::make_unique<FaultBackend>(); }

std::string& fault_version() {
  return const_cast<std::string&>(find_backend("faulty")->traits().version);
}

int lies_told() { return told; }

std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const auto& [name, fault] : faults()) names.push_back(name);
  return names;
}

void register_all_and_faulty() {
  static std::once_flag once;
  std::call_once(once, [] {
    register_all();
    register_backend(make_fault_backend());
  });
}

}  // namespace collage::testing
