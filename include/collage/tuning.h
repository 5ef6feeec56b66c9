// Tunes a model in the background: a service answers with the program that Program::compile made in
// seconds (ProgramOptions::budget_seconds), and goes on to faster ones as they are found.
//
//   collage::ContextPool pool(program, 0);
//   collage::Tuning tuning = collage::Tuning::start(
//       model, options, [&](const collage::Program& better) { pool.replace(better); });
#pragma once

#include <collage/collage.h>

#include <functional>
#include <memory>
#include <thread>

namespace collage {

namespace internal {
struct TuningImpl;
}

// Ends the tuning when it is destroyed, and waits for that, unless `better` destroys it. What was
// measured is kept in the cost database. Any thread may call its methods.
class Tuning {
 public:
  // Measures on a thread of its own, and in worker processes, until nothing is left to measure or
  // `options.budget_seconds` of measuring are over (empty: as long as it takes). `better` is called
  // on that thread with a program that is verified and was faster, in turns, than what
  // Program::compile with a budget of 0 gives. It must not throw. While this process computes
  // anything else, measuring takes at most a twentieth of the time.
  static Tuning start(Model model, ProgramOptions options,
                      std::function<void(const Program&)> better);
  Tuning(Tuning&&) noexcept;
  Tuning& operator=(Tuning&&) noexcept;
  ~Tuning();

  bool is_done() const;
  bool wait_for(double seconds) const;  // returns whether it is done
  // Waits until it is done. An error ended it early: that of a compilation. kUsage: in `better`.
  Status wait() const;
  // Asks it to end, soon.
  void stop() const;

 private:
  explicit Tuning(std::shared_ptr<internal::TuningImpl> impl);
  std::shared_ptr<internal::TuningImpl> impl_;
  std::thread thread_;
};

}  // namespace collage
