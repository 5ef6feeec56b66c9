// A tiny function (tests/ir/tiny_function.h) with its dataflow graph.
//
//   TinyGraph g("x; a = conv(x, c1); b = relu(a); return b");
//   g.names(candidate.sub_graph.inside())   ->  "a b"
#pragma once

#include "ir/tiny_function.h"
#include "partition/dataflow_graph.h"

namespace collage {

class TinyGraph {
 public:
  explicit TinyGraph(const std::string& text) : named_(text), graph_(named_.function()) {}

  const DataflowGraph& graph() const { return graph_; }
  const Expr& operator[](const std::string& name) const { return named_[name]; }
  PostDfsIndex index(const std::string& name) const { return graph_.index_of(named_[name]); }
  IndexSet set(const std::vector<std::string>& names) const {
    IndexSet result;
    for (const std::string& name : names) result.insert(index(name));
    return result;
  }
  // The nodes by name, in index order.
  std::string names(const IndexSet& indices) const {
    std::string text;
    indices.for_each([&](PostDfsIndex i) {
      std::string name = named_.name_of(graph_.node(i).expr);
      if (!name.empty()) text += (text.empty() ? "" : " ") + name;
    });
    return text;
  }
  template <typename Candidates>
  std::vector<std::string> names_of(const Candidates& candidates) const {
    std::vector<std::string> result;
    for (const auto& candidate : candidates) result.push_back(names(candidate.sub_graph.inside()));
    return result;
  }

 private:
  TinyFunction named_;
  DataflowGraph graph_;
};

}  // namespace collage
