// Plans in which tensors are parts of one another, or updated where they lie, against the
// interpreter.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "backend/backend.h"
#include "backend/targets/backends.h"
#include "base/check.h"
#include "lower/lowering.h"
#include "ops/interpreter.h"
#include "ops/registry.h"
#include "runtime/executor.h"
#include "runtime/updating_kernel.h"
#include "verify/synthetic.h"

namespace collage {
namespace {

// Adds one to each element, in place where it may.
class AddOne : public UpdatingKernel {
 public:
  explicit AddOne(int64_t elements) : elements_(elements) {}
  Status run(const KernelArgs& args) override {
    const auto* from = static_cast<const float*>(args.inputs[0]);
    auto* to = static_cast<float*>(args.outputs[0]);
    for (int64_t i = 0; i < elements_; ++i) to[i] = from[i] + 1;
    return {};
  }
  std::vector<Update> updates() const override { return {{0, 0}}; }

 private:
  int64_t elements_;
};

std::string add_one(int64_t channels) {
  return "program { inout X[n:1, c:" + std::to_string(channels) +
         ", h:2, w:2]: float32; update X[n, c, h, w] = sum() 1.0f; }";
}

// A graph of elementwise operators, updates, joins and cuts of tensors with a batch of one and
// channels in sixteens, so that the parts lie in the whole in some layout.
Function random_function(std::mt19937& random) {
  const auto pick = [&](size_t count) { return static_cast<size_t>(random() % count); };
  const auto call = [](std::string_view op, std::vector<Expr> args, Attrs attrs = {}) {
    Result<Expr> made = make_call(op, std::move(args), std::move(attrs));
    COLLAGE_CHECK(made.ok(), "{}", made.status().to_string());
    return *made;
  };
  std::vector<Expr> params, values;
  for (int64_t i = 0; i < 2; ++i) {
    params.push_back(
        make_var("x" + std::to_string(i), TensorType{{1, 16 * (1 + i), 2, 2}, DType::kFloat32}));
    values.push_back(params.back());
  }
  const size_t steps = 3 + pick(8);
  for (size_t s = 0; s < steps; ++s) {
    const Expr& value = values[pick(values.size())];
    const int64_t channels = value->tensor_type().shape[1];
    switch (pick(5)) {
      case 0:
      case 1:
        values.push_back(call(pick(2) == 0 ? "tanh" : "sigmoid", {value}));
        break;
      case 2: {
        std::vector<Expr> fields;
        for (size_t f = 0, count = 2 + pick(2); f < count; ++f)
          fields.push_back(values[values.size() - 1 - pick(std::min<size_t>(values.size(), 4))]);
        values.push_back(call("concatenate", {make_tuple(fields)}, {{"axis", int64_t{1}}}));
        break;
      }
      case 3:
        values.push_back(call("tensor_program", {value}, {{"program", add_one(channels)}}));
        break;
      default:
        if (channels < 32) break;
        if (pick(2) == 0) {
          const Expr parts =
              call("split", {value}, {{"indices_or_sections", Ints{16}}, {"axis", int64_t{1}}});
          for (int64_t part : {0, 1}) values.push_back(make_tuple_get_item(parts, part).value());
        } else {
          values.push_back(call("strided_slice", {value},
                                {{"begin", Ints{16}},
                                 {"end", Ints{channels}},
                                 {"strides", Ints{1}},
                                 {"axes", Ints{1}}}));
        }
    }
  }
  // The last ones are results, so that some joins and parts are.
  std::vector<Expr> results(values.end() - static_cast<ptrdiff_t>(1 + pick(3)), values.end());
  return make_function(params, results.size() == 1 ? results[0] : make_tuple(results));
}

struct Count {
  size_t parts = 0;       // buffers in others
  size_t moved = 0;       // joins and cuts that still copy
  size_t in_results = 0;  // parts of what the caller gets
  size_t updated = 0;     // values that were overwritten where they lay
  size_t copied = 0;      // and those that somebody else still read
};

void check(const Function& function, std::mt19937& random, Count& count) {
  const DataflowGraph graph(untangle_tuples(function));
  Backend& memory = *find_backend("memory");
  std::deque<CandidatePartition> partitions;
  SearchProblem problem;
  problem.graph = &graph;
  Cover cover;
  const auto choose = [&](const SubGraph& nodes, const char* target, const Variant& variant) {
    auto spec =
        std::make_shared<PartitionSpec>(PartitionSpec{target, nullptr, Target{target, {}, {}}});
    partitions.push_back({"", nodes, std::move(spec)});
    problem.candidates.push_back({&partitions.back(), {{variant}}});
    cover.kernels.push_back({cover.kernels.size(), 0});
  };
  for (const DataflowGraph::Node& node : graph.nodes()) {
    if (node_role(node.expr) != NodeRole::kKernel) continue;
    SubGraph alone = SubGraph::of(graph, with_tuple_arguments(graph, IndexSet({node.index})));
    const Function one = alone.extract(graph);
    if (as_op(node.expr, "tensor_program") != nullptr) {
      choose(alone, "test", Variant::plain("update", one));
      continue;
    }
    // Whether the rule would offer it or not: what cannot lie in place is copied.
    const Result<std::vector<Variant>> places = memory.variants(one, Target{"memory", {}, {}}, {});
    if (places.ok() && random() % 8 != 0) {
      choose(alone, "memory", (*places)[random() % places->size()]);
    } else {
      choose(alone, "reference", Variant::plain("reference", one));
    }
  }
  LoweringOptions options;
  options.choose_conversion = [](const TensorType&, const Encoding&, const Encoding&) {
    return Result<ConversionChoice>(ConversionChoice{"reference", 1e-6});
  };
  options.compile_kernel = [&](const Function& kernel, const CandidatePartition& partition,
                               const Variant& variant) -> Result<std::shared_ptr<Kernel>> {
    const Target& target = partition.spec->target;
    if (target.kind == "test")
      return std::shared_ptr<Kernel>(
          std::make_shared<AddOne>(num_elements(kernel->params[0]->tensor_type().shape)));
    return std::shared_ptr<Kernel>(
        TRY(find_backend(target.kind)->compile(kernel, variant, target, {})));
  };
  Result<LoweredPlan> lowered = lower(problem, cover, options);
  ASSERT_TRUE(lowered.ok()) << lowered.status().to_string();
  const Plan& plan = *lowered->plan;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.place != Buffer::Place::kPart) continue;
    const Buffer& whole = plan.buffers[buffer.index];
    ASSERT_NE(whole.place, Buffer::Place::kPart);
    ASSERT_LE(buffer.offset + buffer.bytes, whole.bytes);
    ++count.parts;
    count.in_results += whole.place == Buffer::Place::kOutput;
  }
  const auto whole_of = [&](BufferId id) {
    return plan.buffers[id].place == Buffer::Place::kPart ? plan.buffers[id].index : id;
  };
  for (const Step& step : plan.steps)
    if (dynamic_cast<const UpdatingKernel*>(step.kernel.get()) != nullptr)
      ++(whole_of(step.inputs[0]) == whole_of(step.outputs[0]) ? count.updated : count.copied);
  for (const Step& step : plan.steps)
    for (const InPlace& wish : step.kernel->in_place()) {
      const bool joins = wish.joins();
      count.moved +=
          plan.buffers[joins ? step.inputs[wish.input] : step.outputs[wish.output]].place !=
          Buffer::Place::kPart;
    }

  Result<std::vector<Tensor>> inputs = synthetic_inputs(graph.function(), 5);
  ASSERT_TRUE(inputs.ok());
  const Result<std::vector<Tensor>> expected = interpret(function, *inputs);
  ASSERT_TRUE(expected.ok());
  Result<Executor> executor = Executor::create(lowered->plan, 1);
  ASSERT_TRUE(executor.ok());
  std::vector<Tensor> outputs(expected->size());
  for (int run = 0; run < 2; ++run) {
    const Status status = executor->run(*inputs, outputs);
    ASSERT_TRUE(status.ok()) << status.to_string();
    for (size_t o = 0; o < outputs.size(); ++o)
      for (int64_t i = 0; i < (*expected)[o].size(); ++i)
        ASSERT_EQ(outputs[o].data<float>()[i], (*expected)[o].data<float>()[i])
            << "result " << o << ", element " << i;
  }
}

TEST(InPlace, RandomJoinsCutsAndUpdatesAreRight) {
  register_all();
  std::mt19937 random(7);
  Count count;
  for (int round = 0; round < 300 && !HasFatalFailure(); ++round)
    check(random_function(random), random, count);
  EXPECT_GT(count.parts, 500U);
  EXPECT_GT(count.in_results, 50U);
  EXPECT_GT(count.moved, 20U);
  EXPECT_GT(count.updated, 50U);
  EXPECT_GT(count.copied, 50U);
}

}  // namespace
}  // namespace collage
