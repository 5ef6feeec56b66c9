#include "measure/trial.h"

#include <cstring>
#include <exception>
#include <new>
#include <string_view>
#include <system_error>

#include "base/stopwatch.h"

namespace collage {

namespace {

using Side = GuardedBuffer::Side;

struct Run {
  std::vector<std::shared_ptr<GuardedBuffer>> inputs;
  std::vector<GuardedBuffer> outputs;
  GuardedBuffer workspace;
};

Status check_guards(const Run& run) {
  for (const auto& buffer : run.inputs) TRY(buffer->check());
  for (const GuardedBuffer& buffer : run.outputs) TRY(buffer.check());
  return run.workspace.check();
}

struct Setting {
  Side side = Side::kEnd;
  // What bytes of outputs and workspace are before the run: NaN, or huge numbers.
  unsigned char leftover = 0xff;
  TrialInputs inputs = TrialInputs::kSeeded;
};

Result<Run> run_once(Kernel& kernel, const Variant& variant, Subject& subject, ThreadTeam& team,
                     const Setting& setting = {}) {
  const auto [side, leftover, given] = setting;
  Run run;
  std::vector<void*> inputs, outputs;
  for (size_t i = 0; i < variant.inputs.size(); ++i) {
    run.inputs.push_back(TRY(subject.input(i, variant.inputs[i], side, given)));
    inputs.push_back(run.inputs.back()->data());
  }
  for (size_t i = 0; i < variant.outputs.size(); ++i) {
    const Encoding& encoding = variant.outputs[i];
    size_t bytes = encoding.layout.physical_bytes(subject.outputs()[i].shape, encoding.dtype);
    run.outputs.push_back(TRY(GuardedBuffer::allocate(bytes, side, "output " + std::to_string(i))));
    run.outputs.back().fill(leftover);
    outputs.push_back(run.outputs.back().data());
  }
  run.workspace = TRY(GuardedBuffer::allocate(kernel.workspace_bytes(), side, "the workspace"));
  run.workspace.fill(leftover);
  TRY(run_kernel(kernel, {inputs.data(), outputs.data(), run.workspace.data()}, team));
  TRY(check_guards(run));
  return run;
}

size_t digest_of(const std::vector<GuardedBuffer>& outputs) {
  size_t digest = 0;
  for (const GuardedBuffer& output : outputs)
    digest = digest * 31 + std::hash<std::string_view>{}({output.data(), output.bytes()});
  return digest;
}

}  // namespace

Status run_kernel(Kernel& kernel, const KernelArgs& args, ThreadTeam& team) {
  const TeamHold hold(team.size());
  TRY(hold.status());
  // Backends promise not to throw; those that do all the same must not take the worker along.
  try {
    const auto run = [&]() -> Status {
      TRY(kernel.run(args));
      return kernel.finish();
    };
    if (kernel.thread_use() != ThreadUse::kOwnPool) return run();
    Status status;
    team.park([&] { status = run(); });
    return status;
  } catch (const std::bad_alloc&) {
    throw;                                      // for whoever owns the process to judge
  } catch (const std::system_error& failure) {  // no thread, as a rule
    return error(ErrorCode::kUnavailable, "{}", failure.what());
  } catch (const std::exception& exception) {
    return internal_error("threw an exception: {}", exception.what());
  } catch (...) {
    return internal_error("threw an exception");
  }
}

Result<Trial> try_kernel(std::shared_ptr<Kernel> kernel, const Variant& variant, Subject& subject,
                         ThreadTeam& team) {
  Trial trial;
  const Stopwatch watch;
  Run first = TRY(run_once(*kernel, variant, subject, team));
  constexpr double kLong = 0.5;  // seconds
  const bool once = subject.is_unchecked() && watch.seconds() > kLong;
  trial.agreement = TRY(subject.check_outputs(variant, first.outputs));
  trial.digest = digest_of(first.outputs);
  if (once) {
    trial.repeatable = false;
  } else {
    Run second = TRY(run_once(*kernel, variant, subject, team, {Side::kBegin, 0x7f}));
    trial.repeatable = digest_of(second.outputs) == trial.digest;
    if (!trial.repeatable)
      TRY(subject.check_outputs(variant, second.outputs).with_context("on its second run"));
  }
  if (subject.knows_ends(variant)) {
    const Run third =
        TRY(run_once(*kernel, variant, subject, team, {.inputs = TrialInputs::kEnds}));
    const Agreement at_ends =
        TRY(subject.check_outputs(variant, third.outputs, TrialInputs::kEnds)
                .with_context("where some inputs are at the ends of numbers"));
    trial.loses_nan = at_ends.loses_nan;
    trial.spreads_nan = at_ends.spreads_nan;
  }
  trial.kernel = std::move(kernel);
  trial.inputs = std::move(first.inputs);
  trial.outputs = std::move(first.outputs);
  trial.workspace = std::move(first.workspace);
  return trial;
}

Status check_after_timing(const Trial& trial, const Variant& variant, const Subject& subject) {
  for (const auto& buffer : trial.inputs) TRY(buffer->check());
  for (const GuardedBuffer& buffer : trial.outputs) TRY(buffer.check());
  TRY(trial.workspace.check());
  if (digest_of(trial.outputs) == trial.digest) return {};
  TRY(subject.check_outputs(variant, trial.outputs).with_context("after many runs"));
  return {};
}

}  // namespace collage
