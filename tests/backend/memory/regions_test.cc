#include "backend/memory/regions.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "backend/check.h"
#include "backend/memory/memory_backend.h"
#include "backend/memory/regions_rule.h"
#include "ir/text_parser.h"
#include "ops/registry.h"

namespace collage {
namespace {

/// The variants of a function's body, one call of float32 tensors.
std::string variants(const std::string& params, const std::string& body) {
  register_all_ops();
  const Result<Module> module =
      parse_module("#[version = \"0.0.5\"]\ndef @main(" + params + ") {\n  " + body + "\n}\n");
  if (!module) return module.status().to_string();
  const Result<std::vector<Variant>> list =
      make_memory_backend()->variants(module->main(), Target{"memory", {}, {}}, {});
  if (!list) return list.status().to_string();
  std::vector<std::string> layouts;
  for (const Variant& variant : *list) layouts.push_back(variant.outputs[0].layout.to_string());
  return fmt::format("{}", fmt::join(layouts, " "));
}

TEST(Regions, AreRunsOfBytesInSomeLayouts) {
  const auto join = [](const std::string& a, const std::string& b, int axis) {
    return variants("%a: Tensor[" + a + ", float32], %b: Tensor[" + b + ", float32]",
                    fmt::format("concatenate((%a, %b), axis={})", axis));
  };
  EXPECT_EQ(join("(1, 32, 5, 7)", "(1, 16, 5, 7)", 1), "plain aBcd16b aBcd8b");
  EXPECT_EQ(join("(1, 8, 2, 4)", "(1, 3, 2, 4)", 1), "plain aBcd8b") << "the last may be filled up";
  EXPECT_EQ(join("(1, 16, 3, 3)", "(1, 20, 3, 3)", 1), "plain aBcd16b aBcd8b");
  EXPECT_EQ(join("(1, 20, 3, 3)", "(1, 16, 3, 3)", 1), "memory: elements that lie apart")
      << "neither a multiple of 64 bytes nor of a block";
  EXPECT_EQ(join("(2, 32, 5, 7)", "(2, 16, 5, 7)", 1), "memory: elements that lie apart");
  EXPECT_EQ(join("(2, 3, 4, 4)", "(5, 3, 4, 4)", 0), "plain aBcd16b aBcd8b acdb");
  EXPECT_EQ(join("(1, 3, 4, 4)", "(1, 3, 2, 4)", 2), "aBcd16b aBcd8b acdb") << "one block";
  EXPECT_EQ(join("(1, 20, 4, 4)", "(1, 20, 2, 4)", 2), "acdb");
  EXPECT_EQ(join("(16)", "(3)", 0), "plain");
  EXPECT_EQ(join("(0)", "(3)", 0), "memory: an empty tensor");
  EXPECT_EQ(variants("%a: Tensor[(16), float32]", "concatenate((%a, %a), axis=0)"),
            "memory: a field that is constant or there twice");
}

TEST(Regions, OfCuts) {
  const std::string x = "%x: Tensor[(1, 64, 4, 2), float32]";
  EXPECT_EQ(variants(x, "split(%x, indices_or_sections=[16, 24], axis=1)"), "plain aBcd8b");
  EXPECT_EQ(variants(x, "split(%x, indices_or_sections=4, axis=1)"), "plain aBcd16b aBcd8b");
  EXPECT_EQ(variants(x, "split(%x, indices_or_sections=2, axis=3)"),
            "memory: elements that lie apart");
  EXPECT_EQ(variants(x, "strided_slice(%x, begin=[32], end=[48], strides=[1], axes=[1])"),
            "plain aBcd16b aBcd8b");
  // A part that begins inside a block of 16, though at a multiple of 64 bytes.
  for (const char* end : {"24", "64"})
    EXPECT_EQ(
        variants("%x: Tensor[(1, 64, 4, 2), float64]",
                 fmt::format("strided_slice(%x, begin=[8], end=[{}], strides=[1], axes=[1])", end)),
        "plain aBcd8b");
  EXPECT_EQ(variants(x, "strided_slice(%x, begin=[32], end=[48], strides=[2], axes=[1])"),
            "memory: elements that lie apart");
  EXPECT_EQ(variants(x, "strided_slice(%x, begin=[1, 0], end=[9, 2], strides=[1, 1], axes=[1, 2])"),
            "memory: elements that lie apart");
  EXPECT_EQ(variants(x, "tanh(%x)"), "memory: neither a join nor a cut");
}

/// Where nothing lies in place everything is copied.
TEST(Regions, AreRightWhereverTheyLie) {
  const auto check = [](const testing::Graph& graph, const Expr& result) {
    const auto backend = make_memory_backend();
    const Function function = graph.function(result);
    const std::vector<Tensor> inputs = testing::random_inputs(function);
    const auto list = backend->variants(function, Target{"memory", {}, {}}, {});
    ASSERT_TRUE(list.ok()) << list.status().to_string();
    EXPECT_GE(list->size(), 2U);
    for (const Variant& variant : *list)
      testing::check_variant(*backend, Target{"memory", {}, {}}, {}, function, variant, inputs,
                             testing::evaluate(function, inputs));
  };
  {
    testing::Graph graph;
    Expr a = graph.input({1, 32, 3, 4}), b = graph.input({1, 24, 3, 4});
    check(graph, graph.call("concatenate", {make_tuple({b, a})}, {{"axis", int64_t{1}}}));
  }
  {
    testing::Graph graph;
    Expr a = graph.input({1, 40, 3, 4});
    check(graph,
          graph.call("split", {a}, {{"indices_or_sections", Ints{8, 32}}, {"axis", int64_t{1}}}));
  }
}

/// The calls that the rule offers, by operator and node.
std::string offered(const std::string& text) {
  register_all_ops();
  Result<Module> module = parse_module("#[version = \"0.0.5\"]\n" + text);
  if (!module) return module.status().to_string();
  const DataflowGraph graph(module->main());
  const auto spec = std::make_shared<PartitionSpec>(
      PartitionSpec{"memory", memory::make_regions_rule(), Target{"memory", {}, {}}});
  std::vector<std::string> names;
  for (const CandidatePartition& candidate : all_candidates(graph, spec))
    names.push_back(candidate.sub_graph.ops_label(graph));
  return fmt::format("{}", fmt::join(names, " "));
}

TEST(RegionsRule, OffersJoinsOfWhatKernelsMake) {
  const std::string head = "def @main(%x: Tensor[(1, 16), float32]) {\n";
  EXPECT_EQ(offered(head + "%0 = tanh(%x); %1 = exp(%x); %2 = concatenate((%0, %1), axis=1); "
                           "sigmoid(%2)\n}\n"),
            "concatenate");
  EXPECT_EQ(offered(head + "%0 = tanh(%x); %1 = reshape(%0, newshape=[16]); %2 = exp(%1); "
                           "%3 = concatenate((%1, %2), axis=0); sigmoid(%3)\n}\n"),
            "concatenate")
      << "views are what they view";
  EXPECT_EQ(offered(head + "%0 = tanh(%x); %1 = concatenate((%0, %x), axis=1); sigmoid(%1)\n}\n"),
            "")
      << "a parameter lies elsewhere";
  EXPECT_EQ(offered(head + "%0 = tanh(%x); %1 = exp(%x); %2 = concatenate((%0, %1), axis=1); "
                           "%3 = concatenate((%1, %0), axis=0); (sigmoid(%2), sigmoid(%3))\n}\n"),
            "concatenate")
      << "a tensor lies in one place only";
  EXPECT_EQ(offered(head + "%0 = tanh(%x); %1 = exp(%x); %2 = concatenate((%0, %1), axis=1); "
                           "(%0, sigmoid(%2))\n}\n"),
            "")
      << "a result lies where the caller wants it";
  EXPECT_EQ(offered(head + "%0 = split(%x, indices_or_sections=[4], axis=1); %1 = %0.0; %2 = %0.1; "
                           "%3 = concatenate((%2, %1), axis=1); sigmoid(%3)\n}\n"),
            "split")
      << "parts of one whole do not become parts of another";
}

}  // namespace
}  // namespace collage
