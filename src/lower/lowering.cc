#include "lower/lowering.h"

#include <algorithm>
#include <map>
#include <optional>

#include "backend/memory/kernels/regions_kernel.h"
#include "base/check.h"
#include "base/name_supply.h"
#include "ir/effects.h"
#include "ir/visitor.h"
#include "lower/memory_planner.h"
#include "lower/step_order.h"
#include "lower/updates_in_place.h"
#include "partition/stated_places.h"
#include "runtime/shared_constants.h"

namespace collage {

namespace {

using ValueId = size_t;

// A tensor of the program and the buffers that hold it, by encoding. Those that are row-major it
// shares with what it is a view of, which alone lists them.
struct Value {
  TensorType type;
  TensorRef tensor;  // of the graph
  std::map<Encoding, BufferId> buffers;
  std::optional<ValueId> viewed = std::nullopt;  // no view itself
};

// Kernels are given aligned buffers; a constant in a mapped file may lie anywhere.
Tensor aligned(const Tensor& value) {
  return reinterpret_cast<uintptr_t>(value.raw()) % kArenaAlignment == 0 ? value : value.clone();
}

class Lowering {
 public:
  Lowering(const SearchProblem& problem, const Cover& cover, const LoweringOptions& options)
      : problem_(problem),
        graph_(*problem.graph),
        kernels_(cover.kernels),
        options_(options),
        plan_(std::make_shared<Plan>()),
        values_of_(graph_.size()) {
    result_.kernel_names.resize(kernels_.size());
    result_.functions.resize(kernels_.size());
    for (const ChosenConversion& conversion : cover.conversions)
      sources_[{conversion.tensor, conversion.to}] = conversion.from;
  }

  Result<LoweredPlan> run() {
    TRY(bind_inputs());
    TRY(emit_in_order());
    TRY(bind_outputs());
    overlap_devices();
    update_in_place(*plan_);
    lay_out();
    result_.plan = plan_;
    return std::move(result_);
  }

 private:
  BufferId add_buffer(Buffer::Place place, const TensorType& type, const Encoding& encoding) {
    Buffer buffer;
    buffer.place = place;
    buffer.type = type;
    buffer.encoding = encoding;
    buffer.bytes = encoding.layout.physical_bytes(type.shape, encoding.dtype);
    plan_->buffers.push_back(std::move(buffer));
    return plan_->buffers.size() - 1;
  }

  ValueId add_value(const TensorType& type, TensorRef tensor) {
    values_.push_back({type, tensor, {}});
    return values_.size() - 1;
  }

  Status bind_inputs() {
    const auto& params = graph_.function()->params;
    for (size_t i = 0; i < params.size(); ++i) {
      const TensorType& type = params[i]->tensor_type();
      // A parameter that nothing reads is no node.
      PostDfsIndex node = graph_.contains(params[i]) ? graph_.index_of(params[i]) : graph_.size();
      ValueId value = add_value(type, {node, 0});
      BufferId buffer = add_buffer(Buffer::Place::kInput, type, plain_encoding(type));
      plan_->buffers[buffer].index = i;
      values_[value].buffers[plain_encoding(type)] = buffer;
      std::string name =
          i < options_.input_names.size() ? options_.input_names[i] : as<VarNode>(params[i])->name;
      plan_->inputs.push_back({name, type});
      result_.inputs_at.push_back(graph_.stated_places().at_caller(node));
      input_values_[params[i].get()] = value;
    }
    return {};
  }

  // The values a node stands for, made on demand for nodes that need no kernel.
  Result<std::vector<ValueId>> values_of(PostDfsIndex index) {
    std::vector<ValueId>& known = values_of_[index];
    if (!known.empty()) return known;
    const Expr& expr = graph_.node(index).expr;
    if (expr->kind() == ExprKind::kVar) {
      known = {input_values_.at(expr.get())};
    } else if (const auto* constant = as<ConstantNode>(expr)) {
      ValueId value = add_value(expr->tensor_type(), {index, 0});
      BufferId buffer = add_buffer(Buffer::Place::kConstant, expr->tensor_type(),
                                   plain_encoding(expr->tensor_type()));
      plan_->buffers[buffer].constant = shared_constant(aligned(constant->value));
      values_[value].buffers[plain_encoding(expr->tensor_type())] = buffer;
      known = {value};
    } else if (const auto* tuple = as<TupleNode>(expr)) {
      std::vector<ValueId> all;
      for (const Expr& field : tuple->fields)
        for (ValueId value : TRY(values_of(graph_.index_of(field)))) all.push_back(value);
      values_of_[index] = all;
      return all;
    } else if (const auto* item = as<TupleGetItemNode>(expr)) {
      std::vector<ValueId> all = TRY(values_of(graph_.index_of(item->tuple)));
      size_t first = 0;
      const auto& fields = item->tuple->type().fields();
      for (int64_t f = 0; f < item->index; ++f)
        first += fields[static_cast<size_t>(f)].leaves().size();
      size_t count = expr->type().leaves().size();
      known.assign(all.begin() + static_cast<ptrdiff_t>(first),
                   all.begin() + static_cast<ptrdiff_t>(first + count));
    } else if (const auto* call = as<CallNode>(expr);
               call != nullptr && call->op != nullptr && call->op->is_view) {
      ValueId source = TRY(values_of(graph_.index_of(call->args[0]))).at(0);
      ValueId value = add_value(expr->tensor_type(), {index, 0});
      values_[value].viewed = values_[source].viewed.value_or(source);
      known = {value};
    } else {
      return internal_error("node {} is not covered by any kernel", index);
    }
    return values_of_[index];
  }

  // Whose buffer of that encoding a value's is.
  ValueId holder(ValueId value, const Encoding& encoding) const {
    const Value& known = values_[value];
    return known.viewed && encoding.is_linear(known.type.dtype) ? *known.viewed : value;
  }

  const BufferId* find_buffer(ValueId value, const Encoding& encoding) const {
    const auto& buffers = values_[holder(value, encoding)].buffers;
    const auto it = buffers.find(encoding);
    return it == buffers.end() ? nullptr : &it->second;
  }

  // The encodings in which a value exists.
  std::vector<Encoding> existing(ValueId value) const {
    std::vector<Encoding> all;
    for (const auto& [encoding, buffer] : values_[value].buffers) all.push_back(encoding);
    if (const auto& viewed = values_[value].viewed)
      for (const auto& [encoding, buffer] : values_[*viewed].buffers)
        if (encoding.is_linear(values_[value].type.dtype)) all.push_back(encoding);
    return all;
  }

  // The buffer that holds a value in an encoding; where there is none yet, converts from the one
  // that the search chose, else from the cheapest existing one.
  Result<BufferId> buffer_in(ValueId value, const Encoding& wanted) {
    if (const BufferId* known = find_buffer(value, wanted)) return *known;
    std::optional<Encoding> chosen;
    if (auto it = sources_.find({values_[value].tensor, wanted}); it != sources_.end()) {
      chosen = it->second;
      sources_.erase(it);  // so that sources that refer to one another come to an end
      TRY(buffer_in(value, *chosen));
    } else if (const ValueId shared = holder(value, wanted); shared != value) {
      return buffer_in(shared, wanted);
    } else if (values_[value].viewed && existing(value).empty()) {
      TRY(buffer_in(value, plain_encoding(values_[value].type)));
    }
    return convert(value, wanted, chosen);
  }

  // From the cheapest encoding, or from the one that was chosen.
  Result<BufferId> convert(ValueId value, const Encoding& wanted,
                           const std::optional<Encoding>& chosen) {
    const TensorType type = values_[value].type;
    std::optional<std::pair<Encoding, ConversionChoice>> best;
    Status failure = internal_error("a value without a buffer");
    for (const Encoding& from : existing(value)) {
      if (chosen && !(from == *chosen)) continue;
      Result<ConversionChoice> choice = options_.choose_conversion(type, from, wanted);
      if (!choice) {
        failure = choice.status();
      } else if (!best || choice->seconds < best->second.seconds) {
        best = {from, *choice};
      }
    }
    if (!best) return failure;
    Backend* backend = find_backend(best->second.backend);
    if (backend == nullptr)
      return internal_error("no backend '{}' for a conversion", best->second.backend);
    Step step;
    step.name = names_.fresh("convert_" + wanted.layout.to_string());
    step.kernel = TRY(backend->compile_conversion(type, best->first, wanted, options_.compile));
    step.inputs = {*find_buffer(value, best->first)};
    BufferId result = add_buffer(Buffer::Place::kArena, type, wanted);
    step.outputs = {result};
    result_.conversions.push_back({step.name, type, best->first, wanted, values_[value].tensor});
    plan_->steps.push_back(std::move(step));
    values_[holder(value, wanted)].buffers[wanted] = result;
    return result;
  }

  const CandidatePartition& partition_of(size_t k) const {
    return *problem_.candidates[kernels_[k].candidate].candidate;
  }

  // Kernels in an order in which everything they read exists: those whose inputs are all available,
  // lowest node first.
  Status emit_in_order() {
    std::vector<size_t> owner(graph_.size(), kernels_.size());
    for (size_t k = 0; k < kernels_.size(); ++k)
      partition_of(k).sub_graph.inside().for_each([&](size_t index) { owner[index] = k; });
    enum class Mark { kNew, kOpen, kDone };
    std::vector<Mark> marks(kernels_.size(), Mark::kNew);
    std::vector<size_t> order;
    // Depth first over the kernels that produce a kernel's inputs, looking through nodes that need
    // no kernel.
    struct Frame {
      size_t kernel;
      std::vector<size_t> producers;
      size_t next = 0;
    };
    auto producers = [&](size_t k) {
      std::vector<size_t> found;
      IndexSet seen;
      std::vector<size_t> pending = partition_of(k).sub_graph.input().elements();
      std::reverse(pending.begin(), pending.end());
      while (!pending.empty()) {
        size_t index = pending.back();
        pending.pop_back();
        if (seen.contains(index)) continue;
        seen.insert(index);
        if (owner[index] < kernels_.size()) {
          found.push_back(owner[index]);
        } else {
          for (size_t input : graph_.node(index).inputs) pending.push_back(input);
        }
      }
      std::sort(found.begin(), found.end());
      found.erase(std::unique(found.begin(), found.end()), found.end());
      return found;
    };
    std::vector<size_t> by_position(kernels_.size());
    for (size_t k = 0; k < by_position.size(); ++k) by_position[k] = k;
    std::sort(by_position.begin(), by_position.end(), [&](size_t a, size_t b) {
      return partition_of(a).sub_graph.inside().last() < partition_of(b).sub_graph.inside().last();
    });
    for (size_t root : by_position) {
      if (marks[root] != Mark::kNew) continue;
      std::vector<Frame> stack;
      marks[root] = Mark::kOpen;
      stack.push_back({root, producers(root)});
      while (!stack.empty()) {
        Frame& top = stack.back();
        if (top.next < top.producers.size()) {
          size_t producer = top.producers[top.next++];
          if (producer == top.kernel || marks[producer] == Mark::kDone) continue;
          if (marks[producer] == Mark::kOpen)
            return internal_error("the kernels of a cover depend on each other in a cycle");
          marks[producer] = Mark::kOpen;
          stack.push_back({producer, producers(producer)});
        } else {
          marks[top.kernel] = Mark::kDone;
          order.push_back(top.kernel);
          stack.pop_back();
        }
      }
    }
    for (size_t k : order) TRY(emit(k));
    return {};
  }

  Status emit(size_t k) {
    const CandidatePartition& partition = partition_of(k);
    const SubGraph& sub_graph = partition.sub_graph;
    const Target& target = partition.spec->target;
    const Variant& variant =
        problem_.candidates[kernels_[k].candidate].variants[kernels_[k].variant].variant;
    Function function = sub_graph.extract(graph_);
    function = TRY(inline_calls(function));
    Step step;
    step.name = names_.fresh(step_name(graph_, sub_graph, target));
    step.target = target.to_string();
    step.device = target.device;
    result_.kernel_names[k] = step.name;
    result_.functions[k] = function;
    std::vector<PostDfsIndex> inputs = sub_graph.input().elements();
    if (inputs.size() != variant.inputs.size())
      return internal_error("{}: {} inputs, but the variant has {}", step.name, inputs.size(),
                            variant.inputs.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      ValueId value = TRY(values_of(inputs[i])).at(0);
      step.inputs.push_back(TRY(buffer_in(value, variant.inputs[i])));
    }
    Result<std::shared_ptr<Kernel>> kernel = options_.compile_kernel(function, partition, variant);
    if (!kernel) return std::move(kernel).status().with_context(step.name);
    step.kernel = std::move(kernel).value();
    size_t leaf = 0;
    Status status;
    sub_graph.exit().for_each([&](size_t index) {
      std::vector<ValueId>& values = values_of_[index];
      const Type& whole = graph_.node(index).expr->type();
      for (const TensorType& type : whole.leaves()) {
        ValueId value = add_value(
            type, whole.is_tensor() ? tensor_of(graph_, index) : TensorRef{index, values.size()});
        BufferId buffer = add_buffer(Buffer::Place::kArena, type, variant.outputs.at(leaf));
        values_[value].buffers[variant.outputs[leaf]] = buffer;
        step.outputs.push_back(buffer);
        values.push_back(value);
        ++leaf;
      }
    });
    if (leaf != variant.outputs.size())
      return internal_error("{}: {} outputs, but the variant has {}", step.name, leaf,
                            variant.outputs.size());
    for (const InPlace& in_place : step.kernel->in_place()) place(step, in_place);
    const std::vector<Expr> nodes = post_order(function->body);
    step.has_effects = std::any_of(nodes.begin(), nodes.end(), [](const Expr& node) {
      return node->kind() == ExprKind::kCall && has_effects(*as<CallNode>(node));
    });
    plan_->steps.push_back(std::move(step));
    return {};
  }

  // Makes one buffer a part of another, unless something else decided where it lies.
  void place(const Step& step, const InPlace& in_place) {
    const bool joins = in_place.joins();
    const BufferId part = joins ? step.inputs[in_place.input] : step.outputs[in_place.output];
    const BufferId whole = joins ? step.outputs[in_place.output] : step.inputs[in_place.input];
    Buffer& buffer = plan_->buffers[part];
    if (buffer.place != Buffer::Place::kArena) return;
    buffer.place = Buffer::Place::kPart;
    buffer.index = whole;
    buffer.offset = in_place.offset;
  }

  Status bind_outputs() {
    std::vector<ValueId> results = TRY(values_of(graph_.index_of(graph_.function()->body)));
    for (size_t i = 0; i < results.size(); ++i) {
      const TensorType type = values_[results[i]].type;
      BufferId source = TRY(buffer_in(results[i], plain_encoding(type)));
      std::string name = i < options_.output_names.size() ? options_.output_names[i]
                                                          : "output" + std::to_string(i);
      plan_->outputs.push_back({name, type});
      result_.outputs_at.push_back(
          graph_.stated_places().at_caller(values_[results[i]].tensor.node));
      Buffer& buffer = plan_->buffers[source];
      if (buffer.place == Buffer::Place::kArena) {  // written straight into the caller's tensor
        buffer.place = Buffer::Place::kOutput;
        buffer.index = i;
        continue;
      }
      BufferId result = add_buffer(Buffer::Place::kOutput, type, plain_encoding(type));
      plan_->buffers[result].index = i;
      Step step;
      step.name = names_.fresh("copy");
      // It is an input, a constant or another result too.
      step.kernel = memory::make_copy_kernel(type.bytes());
      step.inputs = {source};
      step.outputs = {result};
      plan_->steps.push_back(std::move(step));
    }
    return {};
  }

  void overlap_devices() {
    if (std::all_of(plan_->steps.begin(), plan_->steps.end(),
                    [](const Step& step) { return step.device == VirtualDevice{}; }))
      return;
    std::vector<Step> steps;
    for (size_t s : overlapped_order(*plan_)) steps.push_back(std::move(plan_->steps[s]));
    plan_->steps = std::move(steps);
  }

  void lay_out() {
    for (Buffer& buffer : plan_->buffers) {
      if (buffer.place != Buffer::Place::kPart) continue;
      for (const Buffer* whole = &plan_->buffers[buffer.index];
           whole->place == Buffer::Place::kPart; whole = &plan_->buffers[buffer.index]) {
        buffer.offset += whole->offset;
        buffer.index = whole->index;
      }
    }
    std::map<VirtualDevice, std::vector<ArenaSlot>> slots_of;
    for (const ArenaSlot& slot : arena_slots(*plan_)) slots_of[slot.device].push_back(slot);
    for (const auto& [device, slots] : slots_of) {
      std::vector<BufferLifetime> lifetimes;
      for (const ArenaSlot& slot : slots) lifetimes.push_back(slot.lifetime);
      const ArenaLayout layout =
          plan_arena(lifetimes, is_host_memory(device) ? kArenaAlignment : kDeviceArenaAlignment);
      for (size_t i = 0; i < slots.size(); ++i)
        (slots[i].buffer ? plan_->buffers[*slots[i].buffer].offset
                         : plan_->steps[slots[i].step].workspace_offset) = layout.offsets[i];
      if (is_host_memory(device)) {
        plan_->arena_bytes = layout.bytes;
      } else {
        plan_->device_arenas.push_back({device, layout.bytes});
      }
    }
  }

  const SearchProblem& problem_;
  const DataflowGraph& graph_;
  const std::vector<Cover::Kernel>& kernels_;
  const LoweringOptions& options_;
  std::shared_ptr<Plan> plan_;
  LoweredPlan result_;
  NameSupply names_;
  std::vector<Value> values_;
  std::vector<std::vector<ValueId>> values_of_;  // by node, one a leaf
  std::map<const ExprNode*, ValueId> input_values_;
  std::map<std::pair<TensorRef, Encoding>, Encoding> sources_;  // what the search converts from
};

}  // namespace

std::string step_name(const DataflowGraph& graph, const SubGraph& sub_graph, const Target& target) {
  return target.kind + "_" + sub_graph.ops_label(graph).substr(0, 60);
}

Result<LoweredPlan> lower(const SearchProblem& problem, const Cover& cover,
                          const LoweringOptions& options) {
  return Lowering(problem, cover, options).run();
}

}  // namespace collage
