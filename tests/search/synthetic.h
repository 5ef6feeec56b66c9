// Search problems of the size and shape of real models, with made-up costs: the cells of a
// convolutional and of a recurrent network found by architecture search, whose branches make many
// covers, and four targets that take operators in several layouts.
#pragma once

#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "partition/rules/anchor_epilogue.h"
#include "partition/rules/combine_by_primitives.h"
#include "partition/rules/host.h"
#include "partition/rules/max_coalesce.h"
#include "partition/rules/op_predicate.h"
#include "partition/rules/union_rule.h"
#include "partition/tiny_graph.h"
#include "search/problem.h"

namespace collage {

class SyntheticProblem {
 public:
  SyntheticProblem(const std::string& text, unsigned seed) : graph_(text), random_(seed) {
    problem_.graph = &graph_.graph();
    add_rules();
    problem_.launch_penalty = 1e-6;
    std::vector<double> costs(16);
    for (double& cost : costs) cost = 5e-6 * spread(0.3);
    std::vector<Encoding> all;
    for (const char* tag : kLayouts) all.push_back(encoding(tag));
    problem_.conversion_cost = [costs, all](const TensorType&, const Encoding& from,
                                            const Encoding& to) {
      size_t i = 0, j = 0;
      while (i < 3 && !(all[i] == from)) ++i;
      while (j < 3 && !(all[j] == to)) ++j;
      return costs[i * 4 + j];
    };
  }
  const SearchProblem& problem() const { return problem_; }
  const DataflowGraph& graph() const { return graph_.graph(); }

  // About 650 operators: stacked cells, each with two live inputs and five branches.
  static std::string nasnet(size_t cells) {
    std::string text = "x";
    size_t n = 0;
    auto make = [&](const std::string& call) {
      std::string name = "n" + std::to_string(n++);
      text += "; " + name + " = " + call;
      return name;
    };
    auto sep = [&](const std::string& in) {
      return make("conv(" + make("conv(" + make("relu(" + in + ")") + ", c)") + ", c)");
    };
    auto pool = [&](const std::string& in) { return make("pool(" + in + ")"); };
    auto add = [&](const std::string& a, const std::string& b) {
      return make("add(" + a + ", " + b + ")");
    };
    std::string prev = "x", cur = "x";
    for (size_t cell = 0; cell < cells; ++cell) {
      std::string p = make("relu(" + make("conv(" + prev + ", c)") + ")");
      std::string q = make("relu(" + make("conv(" + cur + ", c)") + ")");
      std::string t =
          make("tuple(" + add(sep(q), q) + "," + add(sep(p), sep(q)) + "," + add(pool(q), p) + "," +
               add(pool(p), pool(p)) + "," + add(sep(p), sep(p)) + ")");
      prev = cur;
      cur = make("concat(" + t + ")");
    }
    return text + "; return relu(" + cur + ")";
  }

  // About 60 operators a cell: sixteen products and a tree of elementwise operators.
  static std::string nasrnn(size_t cells) {
    std::string text = "x";
    size_t n = 0;
    auto make = [&](const std::string& call) {
      std::string name = "n" + std::to_string(n++);
      text += "; " + name + " = " + call;
      return name;
    };
    auto unary = [&](const std::string& op, const std::string& a) {
      return make(op + "(" + a + ")");
    };
    auto binary = [&](const std::string& op, const std::string& a, const std::string& b) {
      return make(op + "(" + a + ", " + b + ")");
    };
    std::string h = "x";
    for (size_t cell = 0; cell < cells; ++cell) {
      std::vector<std::string> t;
      for (int i = 0; i < 8; ++i)
        t.push_back(binary("add", unary("relu", make("dense(x, c)")),
                           unary("relu", make("dense(" + h + ", c)"))));
      std::string m0 = binary("add", unary("relu", t[0]), unary("sigmoid", t[3]));
      std::string m1 = binary("add", unary("sigmoid", t[1]), unary("tanh", t[2]));
      std::string m2 = binary("multiply", unary("sigmoid", t[4]), unary("tanh", t[5]));
      std::string m3 = binary("multiply", unary("sigmoid", t[6]), unary("relu", t[7]));
      std::string m4 = binary("add", unary("sigmoid", m1), unary("tanh", m2));
      std::string m5 = binary("multiply", unary("tanh", m0), unary("tanh", m3));
      h = unary("tanh", binary("multiply", unary("tanh", m4), unary("tanh", m5)));
    }
    return text + "; return " + h;
  }

  // Random operators that read recent tensors; up to `open` of these wait for a reader at a time.
  static std::string branching(size_t operators, size_t open, unsigned seed) {
    std::mt19937 random(seed);
    auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
    static const std::vector<std::string> kUnary = {"relu", "tanh", "sigmoid",
                                                    "pool", "conv", "conv"};
    std::string text = "x";
    std::vector<std::string> unread = {"x"}, recent = {"x"};
    for (size_t n = 0; n < operators || unread.size() > 1; ++n) {
      std::string name = "n" + std::to_string(n), call;
      // Mostly what nobody read yet, now and then again what somebody did.
      auto take = [&] {
        if (n < operators && pick(4) == 0) return recent[pick(recent.size())];
        size_t at = pick(unread.size());
        std::string taken = unread[at];
        if (unread.size() > 1 || n >= operators || pick(2) == 0)
          unread.erase(unread.begin() + static_cast<ptrdiff_t>(at));
        return taken;
      };
      if (n >= operators || unread.size() >= open || pick(3) == 0) {
        std::string first = take();
        std::string second = unread.empty() ? first : take();
        call = std::string(pick(2) ? "add" : "multiply") + "(" + first + ", " + second + ")";
      } else {
        std::string op = kUnary[pick(kUnary.size())];
        call = op + "(" + take() + (op == "conv" ? ", c)" : ")");
      }
      text += "; " + name + " = " + call;
      unread.push_back(name);
      recent.push_back(name);
      if (recent.size() > open) recent.erase(recent.begin());
    }
    return text + "; return " + unread[0];
  }

 private:
  static constexpr const char* kLayouts[] = {"", "A4a", "A2a"};

  static Encoding encoding(const std::string& layout) {
    return {DType::kFloat32, layout.empty() ? Layout() : *Layout::parse(layout), VirtualDevice()};
  }
  double spread(double by) {
    return std::uniform_real_distribution<double>(1 - by, 1 + by)(random_);
  }

  void add_rules() {
    auto elementwise = [](const EpilogueStep& step) {
      return step.call.op->kind <= FusionKind::kBroadcast;
    };
    auto any =
        std::make_shared<OpPredicatePartitionRule>("any", [](const CallNode&) { return true; });
    auto anchors = std::make_shared<AnchorEpiloguePartitionRule>(
        "anchors", is_op({"conv", "dense", "pool"}), MatchPredicate{}, elementwise, 3);
    auto singles = std::make_shared<OpPredicatePartitionRule>(
        "singles", [](const CallNode& call) { return call.op->kind <= FusionKind::kBroadcast; });
    CombineConfig depth3;
    depth3.joins = any_joins();
    depth3.max_depth = 3;
    depth3.max_ops = 4;
    depth3.maximal = false;
    CombineConfig fuse;
    fuse.max_depth = 3;
    add("onednn",
        std::make_shared<UnionPartitionRule>("onednn",
                                             std::vector<PartitionRulePtr>{anchors, singles}),
        {"", "A4a"}, true, 1.0);
    add("native", std::make_shared<CombineByPrimitivesPartitionRule>("native", any, fuse),
        {"", "A4a", "A2a"}, false, 1.05);
    add("openvino",
        std::make_shared<UnionPartitionRule>(
            "openvino",
            std::vector<PartitionRulePtr>{
                std::make_shared<CombineByPrimitivesPartitionRule>("openvino", any, depth3),
                std::make_shared<MaxCoalescePartitionRule>("region", any)}),
        {""}, false, 1.1);
    add("reference", std::make_shared<HostPartitionRule>(), {""}, false, 10);
  }

  void add(const std::string& target, PartitionRulePtr rule, std::vector<std::string> layouts,
           bool mixed, double factor) {
    auto spec = std::make_shared<PartitionSpec>(
        PartitionSpec{target, std::move(rule), Target{target, {}, {}}});
    for (CandidatePartition& candidate : all_candidates(graph_.graph(), spec)) {
      const SubGraph& sub_graph = candidate.sub_graph;
      CandidateCosts costs;
      for (const std::string& in : layouts)
        for (const std::string& out : layouts) {
          if (in != out && !mixed) continue;
          Variant variant{"v", {}, {}};
          variant.inputs.assign(sub_graph.input().size(), encoding(in));
          variant.outputs.assign(sub_graph.exit().size(), encoding(out));
          double speed = (in.empty() ? 1.15 : 1.0) * (in == out ? 1 : 1.05);
          costs.variants.push_back({variant, work(sub_graph) * factor * speed * spread(0.15)});
        }
      candidates_.push_back(std::move(candidate));
      costs.candidate = &candidates_.back();
      problem_.candidates.push_back(std::move(costs));
    }
  }

  // An anchor computes for long; what is fused to it only saves its memory traffic.
  double work(const SubGraph& sub_graph) const {
    double seconds = 0;
    size_t calls = 0;
    sub_graph.inside().for_each([&](PostDfsIndex i) {
      const auto* call = as<CallNode>(graph_.graph().node(i).expr);
      if (call == nullptr) return;
      bool anchor = call->op->kind == FusionKind::kAnchor;
      seconds += anchor ? 60e-6 : 8e-6;
      calls += anchor ? 0 : 1;
    });
    return seconds - 5e-6 * static_cast<double>(calls > 0 ? calls - 1 : 0);
  }

  TinyGraph graph_;
  std::mt19937 random_;
  std::deque<CandidatePartition> candidates_;
  SearchProblem problem_;
};

}  // namespace collage
