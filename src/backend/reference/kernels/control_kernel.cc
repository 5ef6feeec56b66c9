#include "backend/reference/kernels/control_kernel.h"

#include <algorithm>
#include <cstring>

#include "base/integers.h"
#include "base/interrupt.h"
#include "runtime/executor.h"
#include "runtime/run_number.h"
#include "runtime/saved_fields.h"

namespace collage {

namespace {

using nlohmann::json;
using Plans = std::vector<std::shared_ptr<const Plan>>;

constexpr char kControlLoader[] = "reference.control";
constexpr size_t kMostOperands = 1 << 20;

size_t padded(size_t bytes) { return round_up(bytes, kArenaAlignment); }

TensorType scalar_of(DType dtype) { return TensorType{{}, dtype}; }

// What an operand must be, and a result is, by the plans.
struct Interface {
  std::vector<TensorType> operands, results;
};

Result<TensorType> whole_of(const TensorType& row, int64_t rows) {
  TensorType whole = row;
  whole.shape.insert(whole.shape.begin(), rows);
  TRY(bytes_from(whole.shape, dtype_size(whole.dtype)));
  return whole;
}

Result<Interface> interface_of(const ControlSpec& spec, const Plans& plans) {
  Interface result;
  const std::vector<PlanSignature>&inputs = plans[0]->inputs, &outputs = plans[0]->outputs;
  if (spec.kind != ControlSpec::Kind::kLoop) {
    const auto same = [](const PlanSignature& a, const PlanSignature& b) {
      return a.type == b.type;
    };
    const Plan& other = *plans.back();  // of a call the same
    if (!std::equal(inputs.begin(), inputs.end(), other.inputs.begin(), other.inputs.end(), same) ||
        !std::equal(outputs.begin(), outputs.end(), other.outputs.begin(), other.outputs.end(),
                    same))
      return bad_model("its branches are of different types");
    if (spec.kind == ControlSpec::Kind::kIf) result.operands.push_back(scalar_of(DType::kBool));
    for (const PlanSignature& input : inputs) result.operands.push_back(input.type);
    for (const PlanSignature& output : outputs) result.results.push_back(output.type);
    return result;
  }
  if (inputs.empty() || spec.states + spec.scanned > inputs.size() - 1 ||
      outputs.size() < spec.states + 1 || !(inputs[0].type == scalar_of(DType::kInt64)) ||
      !(outputs[0].type == scalar_of(DType::kBool)))
    return bad_model("its plan is no loop's body");
  if ((spec.scanned > 0 || outputs.size() > spec.states + 1) != (spec.rows >= 0))
    return bad_model("a loop of {} rows", spec.rows);
  result.operands = {scalar_of(DType::kInt64), scalar_of(DType::kBool)};
  for (size_t i = 1; i < inputs.size(); ++i) {
    const bool is_scanned = i > spec.states && i <= spec.states + spec.scanned;
    result.operands.push_back(is_scanned ? TRY(whole_of(inputs[i].type, spec.rows))
                                         : inputs[i].type);
  }
  for (size_t i = 1; i < outputs.size(); ++i) {
    if (i <= spec.states && !(outputs[i].type == inputs[i].type))
      return bad_model("state {} changes its type", i - 1);
    result.results.push_back(i <= spec.states ? outputs[i].type
                                              : TRY(whole_of(outputs[i].type, spec.rows)));
  }
  return result;
}

class ControlKernel : public Kernel {
 public:
  ControlKernel(ControlSpec spec, Plans plans, std::vector<Executor> executors, int threads)
      : spec_(std::move(spec)),
        plans_(std::move(plans)),
        executors_(std::move(executors)),
        threads_(threads) {
    if (spec_.kind != ControlSpec::Kind::kLoop) return;
    const Plan& body = *plans_[0];
    for (size_t i = 0; i < spec_.states; ++i) states_.push_back(body.inputs[i + 1].type.bytes());
    for (size_t i = 0; i < spec_.scanned; ++i)
      slices_.push_back(body.inputs[i + 1 + spec_.states].type.bytes());
    for (size_t i = spec_.states + 1; i < body.outputs.size(); ++i)
      rows_.push_back(body.outputs[i].type.bytes());
  }

  Status run(const KernelArgs& args) override {
    operands_.clear();
    for (const ControlSpec::Operand& operand : spec_.operands)
      operands_.push_back(operand.constant.defined() ? const_cast<void*>(operand.constant.raw())
                                                     : args.inputs[operand.input]);
    return spec_.kind == ControlSpec::Kind::kLoop ? run_loop(args) : run_chosen(args);
  }

  // The counter, whether it goes on, the states twice, and rows that are not aligned.
  size_t workspace_bytes() const override {
    if (spec_.kind != ControlSpec::Kind::kLoop) return 0;
    size_t bytes = 2 * kArenaAlignment;
    for (const size_t state : states_) bytes += 2 * padded(state);
    for (const auto* rows : {&slices_, &rows_})
      for (const size_t row : *rows) bytes += is_direct(row) ? 0 : padded(row);
    return bytes;
  }

  size_t constant_bytes() const override {
    size_t bytes = 0;
    for (const std::shared_ptr<const Plan>& plan : plans_)
      for (const Step& step : plan->steps) bytes += step.kernel->constant_bytes();
    return bytes;
  }

  Result<std::shared_ptr<Kernel>> twin() const override {
    std::vector<Executor> executors;
    for (const std::shared_ptr<const Plan>& plan : plans_)
      executors.push_back(TRY(Executor::create_beside(plan, threads_)));
    return std::shared_ptr<Kernel>(
        std::make_shared<ControlKernel>(spec_, plans_, std::move(executors), threads_));
  }

  Result<SavedKernel> save() const override {
    SavedKernel saved;
    saved.loader = kControlLoader;
    saved.plans = plans_;
    json operands = json::array();
    for (const ControlSpec::Operand& operand : spec_.operands) {
      if (!operand.constant.defined()) {
        operands.push_back(operand.input);
        continue;
      }
      operands.push_back(-1);
      auto holder = std::make_shared<Tensor>(operand.constant);
      saved.constants.push_back({{holder, holder->raw()}, holder->bytes()});
    }
    saved.description = json{{"kind", static_cast<int>(spec_.kind)},
                             {"states", spec_.states},
                             {"scanned", spec_.scanned},
                             {"rows", spec_.rows},
                             {"most_checked", spec_.most_checked},
                             {"operands", std::move(operands)}}
                            .dump();
    return saved;
  }

 private:
  static bool is_direct(size_t row) { return row % kArenaAlignment == 0; }

  // A branch, or what is called.
  Status run_chosen(const KernelArgs& args) {
    const size_t first = spec_.kind == ControlSpec::Kind::kIf ? 1 : 0;  // operand that it takes
    const bool otherwise = first == 1 && !*static_cast<const bool*>(operands_[0]);
    Executor& chosen = executors_[otherwise ? 1 : 0];
    for (size_t i = first; i < operands_.size(); ++i) chosen.place_input(i - first, operands_[i]);
    for (size_t i = 0; i < chosen.plan().outputs.size(); ++i)
      chosen.place_output(i, args.outputs[i]);
    return chosen.run_placed();
  }

  int64_t most_iterations() const {
    int64_t most = *static_cast<const int64_t*>(operands_[0]);
    if (spec_.rows >= 0) most = std::min(most, spec_.rows);
    if (spec_.most_checked > 0 && !RunNumber::of_user()) most = std::min(most, spec_.most_checked);
    return most;
  }

  Status run_loop(const KernelArgs& args) {
    constexpr size_t kFirst = 2;  // operand that the body takes
    Executor& body = executors_[0];
    auto* free = static_cast<uint8_t*>(args.workspace);
    const auto take = [&free](size_t bytes) {
      void* taken = free;
      free += padded(bytes);
      return taken;
    };
    auto* counter = static_cast<int64_t*>(take(sizeof(int64_t)));
    auto* goes_on = static_cast<bool*>(take(sizeof(bool)));
    for (auto& place : places_) {
      place.clear();
      for (const size_t state : states_) place.push_back(take(state));
    }
    given_.clear();  // where slices and rows lie that are not aligned; null: others
    for (const auto* rows : {&slices_, &rows_})
      for (const size_t row : *rows) given_.push_back(is_direct(row) ? nullptr : take(row));
    const size_t first_scanned = kFirst + states_.size();
    const size_t first_invariant = first_scanned + slices_.size();

    body.place_input(0, counter);
    body.place_output(0, goes_on);
    for (size_t i = first_invariant; i < operands_.size(); ++i)
      body.place_input(i - kFirst + 1, operands_[i]);
    for (size_t i = 0; i < given_.size(); ++i) {
      if (given_[i] == nullptr) continue;
      if (i < slices_.size())
        body.place_input(1 + states_.size() + i, given_[i]);
      else
        body.place_output(1 + states_.size() + i - slices_.size(), given_[i]);
    }

    *goes_on = *static_cast<const bool*>(operands_[1]);
    const int64_t most = most_iterations();
    const bool stopped = interrupted();
    void* const* states = operands_.data() + kFirst;  // where they lie
    int64_t trip = 0;
    LoopIteration iteration;
    for (; *goes_on && trip < most; ++trip) {
      if (!stopped && interrupted()) return error(ErrorCode::kInternal, "interrupted");
      iteration.begin(static_cast<uint64_t>(trip));
      *counter = trip;
      const std::vector<void*>& next = places_[trip % 2];
      for (size_t i = 0; i < states_.size(); ++i) {
        body.place_input(1 + i, states[i]);
        body.place_output(1 + i, next[i]);
      }
      const auto at = static_cast<size_t>(trip);
      for (size_t i = 0; i < slices_.size(); ++i) {
        uint8_t* slice = static_cast<uint8_t*>(operands_[first_scanned + i]) + at * slices_[i];
        if (given_[i] == nullptr)
          body.place_input(1 + states_.size() + i, slice);
        else
          std::memcpy(given_[i], slice, slices_[i]);
      }
      for (size_t i = 0; i < rows_.size(); ++i)
        if (given_[slices_.size() + i] == nullptr)
          body.place_output(1 + states_.size() + i, row_of(args, i, at));
      TRY(body.run_placed());
      for (size_t i = 0; i < rows_.size(); ++i)
        if (const void* row = given_[slices_.size() + i])
          std::memcpy(row_of(args, i, at), row, rows_[i]);
      states = next.data();
    }
    for (size_t i = 0; i < states_.size(); ++i)
      if (states_[i] > 0) std::memcpy(args.outputs[i], states[i], states_[i]);
    for (size_t i = 0; i < rows_.size(); ++i)
      if (const auto left = static_cast<size_t>(spec_.rows - trip) * rows_[i]; left > 0)
        std::memset(row_of(args, i, static_cast<size_t>(trip)), 0, left);
    return {};
  }

  void* row_of(const KernelArgs& args, size_t stacked, size_t trip) const {
    return static_cast<uint8_t*>(args.outputs[states_.size() + stacked]) + trip * rows_[stacked];
  }

  const ControlSpec spec_;
  const Plans plans_;
  std::vector<Executor> executors_;
  const int threads_;
  std::vector<size_t> states_, slices_, rows_;  // bytes of each
  // Of the run that is under way:
  std::vector<void*> operands_, places_[2], given_;
};

Result<std::shared_ptr<Kernel>> load_control(const SavedKernel& saved, int threads) {
  const json description = TRY(description_object(saved.description));
  const JsonFields fields(description);
  ControlSpec spec;
  using Kind = ControlSpec::Kind;
  spec.kind = static_cast<Kind>(TRY(fields.integer("kind", 0, static_cast<int>(Kind::kCall))));
  const auto most = static_cast<int64_t>(kMostOperands);
  spec.states = static_cast<size_t>(TRY(fields.integer("states", 0, most)));
  spec.scanned = static_cast<size_t>(TRY(fields.integer("scanned", 0, most)));
  spec.rows = TRY(fields.integer("rows", -1, most_bytes()));
  spec.most_checked = TRY(fields.integer("most_checked", 0, most_bytes()));
  if (saved.plans.size() != (spec.kind == Kind::kIf ? 2 : 1))
    return bad_model("{} plans", saved.plans.size());
  const Interface wanted = TRY(interface_of(spec, saved.plans));
  const std::vector<int64_t> operands =
      TRY(integers_from(fields, "operands", -1, most, kMostOperands));
  if (operands.size() != wanted.operands.size())
    return bad_model("{} operands of {}", operands.size(), wanted.operands.size());
  size_t constants = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const TensorType& type = wanted.operands[i];
    const size_t bytes = TRY(bytes_from(type.shape, dtype_size(type.dtype)));
    if (operands[i] >= 0) {
      spec.operands.push_back({Tensor(), static_cast<size_t>(operands[i])});
      TRY(saved.buffers.input_holds(spec.operands.back().input, bytes));
      continue;
    }
    if (constants >= saved.constants.size() || saved.constants[constants].bytes != bytes)
      return bad_model("operand {} is no constant of {} bytes", i, bytes);
    auto owner = std::const_pointer_cast<void>(saved.constants[constants++].data);
    spec.operands.push_back({Tensor::share(type.dtype, type.shape, owner, owner.get()), 0});
  }
  for (size_t i = 0; i < wanted.results.size(); ++i) {
    const TensorType& type = wanted.results[i];
    TRY(saved.buffers.output_holds(i, TRY(bytes_from(type.shape, dtype_size(type.dtype)))));
  }
  return make_control_kernel(std::move(spec), saved.plans, threads);
}

}  // namespace

Result<std::shared_ptr<Kernel>> make_control_kernel(ControlSpec spec, Plans plans, int threads) {
  const Interface wanted = TRY(interface_of(spec, plans));
  if (wanted.operands.size() != spec.operands.size())
    return bad_model("{} operands, not {}", spec.operands.size(), wanted.operands.size());
  for (size_t i = 0; i < wanted.operands.size(); ++i) {
    const Tensor& constant = spec.operands[i].constant;
    if (constant.defined() &&
        !(TensorType{constant.shape(), constant.dtype()} == wanted.operands[i]))
      return bad_model("operand {} is of another type", i);
  }
  std::vector<Executor> executors;
  for (const std::shared_ptr<const Plan>& plan : plans)
    executors.push_back(TRY(Executor::create(plan, threads)));
  return std::shared_ptr<Kernel>(std::make_shared<ControlKernel>(std::move(spec), std::move(plans),
                                                                 std::move(executors), threads));
}

void register_control_loader() { register_kernel_loader({kControlLoader, "2", load_control}); }

}  // namespace collage
