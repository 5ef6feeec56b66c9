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

namespace collage {

namespace internal {
struct TuningImpl;
}

// Ends the tuning when it is destroyed. What was measured is kept in the cost database.
class Tuning {
 public:
  // Measures on a thread of its own, and in worker processes, until nothing is left to measure or
  // `options.budget_seconds` of measuring are over (empty: as long as it takes). `better` is called
  // on that thread with each program that is verified and was faster in turns with the one before;
  // the first is compared with what Program::compile with a budget of 0 gives. It must not throw,
  // nor destroy the tuning. While this process computes anything else, measuring takes at most a
  // twentieth of the time.
  static Tuning start(Model model, ProgramOptions options,
                      std::function<void(const Program&)> better);
  Tuning(Tuning&&) noexcept;
  Tuning& operator=(Tuning&&) noexcept;
  ~Tuning();

  bool is_done() const;
  // Waits until it is done. An error ends it early: that of a compilation.
  Status wait();
  // Asks it to end, soon.
  void stop();

 private:
  explicit Tuning(std::unique_ptr<internal::TuningImpl> impl);
  std::unique_ptr<internal::TuningImpl> impl_;
};

}  // namespace collage
