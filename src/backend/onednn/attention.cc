// Attention: softmax(scale · q · kᵀ + mask) · v.
//
// `batched` computes all scores at once, which is best while they stay in the caches. `rows<n>`
// takes n queries of one head at a time, so that their scores never leave the second-level cache;
// keys and values are packed once a head, and under a causal mask the keys that no query of the
// block sees are not multiplied at all:
//
//   for each head: pack k, v
//     for each block of queries: scores = q · kᵀ -> scale -> mask;  softmax;  out = scores · v
#include <limits>

#include "backend/onednn/implementation.h"
#include "ir/op.h"

namespace collage::onednn {

namespace {

struct AttentionProblem {
  CompositePtr composite;
  int64_t heads, queries, keys, width, value_width;
  float scale;
  bool causal;
  std::vector<Step> mask;  // none or one addition, over (heads, queries, keys)

  Value input(ProgramBuilder& builder, size_t which, const Desc& desc, int64_t offset) const {
    return builder.input(static_cast<size_t>(composite->inputs[which].param), desc,
                         static_cast<size_t>(offset) * sizeof(float));
  }
};
using AttentionProblemPtr = std::shared_ptr<const AttentionProblem>;

Result<AttentionProblem> read_attention(const CompositePtr& composite) {
  if (!composite->steps.empty()) return unsupported("onednn: nothing follows attention");
  for (size_t i = 0; i < 3; ++i)
    if (composite->inputs[i].is_constant()) return unsupported("onednn: constant attention input");
  const Shape &q = composite->inputs[0].shape, &v = composite->inputs[2].shape;
  size_t rank = q.size();
  AttentionProblem p;
  p.composite = composite;
  p.heads = num_elements(Shape(q.begin(), q.end() - 2));
  p.queries = q[rank - 2], p.width = q[rank - 1];
  p.keys = v[rank - 2], p.value_width = v[rank - 1];
  p.scale = static_cast<float>(composite->anchor->attrs.real("scale"));
  p.causal = composite->anchor->attrs.flag("causal");
  if (composite->inputs.size() == 4) {
    Shape scores = q;
    scores[rank - 1] = p.keys;
    Step add;
    add.kind = Step::Kind::kBinary;
    add.algorithm = dnnl::algorithm::binary_add;
    add.operand = composite->inputs[3];
    while (add.operand.shape.size() < rank) add.operand.shape.insert(add.operand.shape.begin(), 1);
    p.mask = TRY(merge_dims(std::vector<Step>{add}, scores, {rank - 2, rank - 1, rank}));
  }
  return p;
}

// Which keys query `first` + row may see: 0, else minus infinity.
Tensor causal_mask(int64_t first, int64_t rows, int64_t keys) {
  Tensor mask = Tensor::zeros(DType::kFloat32, {rows, keys});
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = first + i + 1; j < keys; ++j)
      mask.data<float>()[i * keys + j] = -std::numeric_limits<float>::infinity();
  return mask;
}

Step addition(Tensor constant, Shape shape) {
  Step step;
  step.kind = Step::Kind::kBinary;
  step.algorithm = dnnl::algorithm::binary_add;
  step.operand.rank = shape.size();
  step.operand.shape = std::move(shape);
  step.operand.constant = std::move(constant);
  return step;
}

Step scaling(float scale) {
  Step step;
  step.algorithm = dnnl::algorithm::eltwise_linear;
  step.alpha = scale;
  return step;
}

// A product whose right operand is in oneDNN's packed form, and the scores' post operations.
struct Product {
  dnnl::matmul::primitive_desc pd;
  std::vector<Step> steps;
  std::vector<OperandForm> forms;
};

Result<Product> product(const Shape& left, const Desc& right, const Shape& result,
                        std::vector<Step> steps = {}) {
  Product p;
  p.forms = TRY(operand_forms(steps, result, Layout(), OperandUse::kPostOperation));
  p.pd = dnnl::matmul::primitive_desc(engine(), plain_desc(left), right, plain_desc(result),
                                      attributes(make_post_ops(steps, p.forms)));
  if (is_naive(p.pd.impl_info_str())) return unsupported("onednn: only a naive implementation");
  p.steps = std::move(steps);
  return p;
}

dnnl::softmax_forward::primitive_desc softmax(const Shape& scores) {
  Desc desc = plain_desc(scores);
  return dnnl::softmax_forward::primitive_desc(engine(), dnnl::prop_kind::forward_inference,
                                               dnnl::algorithm::softmax_accurate, desc, desc,
                                               static_cast<int>(scores.size()) - 1, attributes());
}

Desc any(const Dims& dims) { return Desc(dims, kFloat, Tag::any); }
Desc transposed(int64_t batch, int64_t rows, int64_t columns) {
  return Desc({batch, rows, columns}, kFloat, Dims{rows * columns, 1, rows});
}

Variant plain_variant(const AttentionProblem& p, std::string name) {
  Encodings encodings(*p.composite);
  return encodings.variant(std::move(name), Layout());
}

void pack(ProgramBuilder& builder, Value from, const Desc& given, Value to, const Desc& wanted) {
  dnnl::reorder::primitive_desc pd(engine(), given, engine(), wanted, attributes());
  builder.add(pd, {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

Result<Implementation> batched(const AttentionProblemPtr& p) {
  Shape scores = {p->heads, p->queries, p->keys};
  auto steps = std::make_shared<std::vector<Step>>();
  steps->push_back(scaling(p->scale));
  steps->insert(steps->end(), p->mask.begin(), p->mask.end());
  if (p->causal)
    steps->push_back(addition(causal_mask(0, p->queries, p->keys), {1, p->queries, p->keys}));
  Desc keys = transposed(p->heads, p->width, p->keys);
  Desc values = plain_desc({p->heads, p->keys, p->value_width});
  auto first = TRY(plan_anchor(*steps, scores, Layout(), [&](const dnnl::primitive_attr& attr) {
    return dnnl::matmul::primitive_desc(engine(), plain_desc({p->heads, p->queries, p->width}),
                                        keys, plain_desc(scores), attr);
  }));
  auto second = TRY(product(scores, values, {p->heads, p->queries, p->value_width}));
  auto build = [p, scores, steps, first, second, keys, values]() {
    ProgramBuilder builder;
    Value s = builder.temporary(plain_desc(scores));
    append_anchor(builder, first,
                  {{DNNL_ARG_SRC, p->input(builder, 0, first.pd.src_desc(), 0)},
                   {DNNL_ARG_WEIGHTS, p->input(builder, 1, keys, 0)}},
                  s, s);
    builder.add(softmax(scores), {{DNNL_ARG_SRC, s}, {DNNL_ARG_DST, s}});
    builder.add(second.pd, {{DNNL_ARG_SRC, s},
                            {DNNL_ARG_WEIGHTS, p->input(builder, 2, values, 0)},
                            {DNNL_ARG_DST, builder.output(0, second.pd.dst_desc())}});
    return builder.finish();
  };
  return Implementation{plain_variant(*p, "batched"), std::move(build)};
}

// Whether the first rows or columns of a packed matrix lie at its start just as a smaller packed
// matrix would.
bool is_prefix(const Desc& part, const Desc& whole) {
  if (part.get_inner_blks() != whole.get_inner_blks() ||
      part.get_inner_idxs() != whole.get_inner_idxs())
    return false;
  Dims steps = part.get_padded_dims();
  for (size_t i = 0; i < part.get_inner_idxs().size(); ++i)
    steps[static_cast<size_t>(part.get_inner_idxs()[i])] /= part.get_inner_blks()[i];
  for (size_t d = 0; d < steps.size(); ++d)
    if (steps[d] > 1 && part.get_strides()[d] != whole.get_strides()[d]) return false;
  return true;
}

Result<Implementation> in_rows(const AttentionProblemPtr& p, int64_t rows) {
  if (!p->mask.empty()) {
    const Shape& mask = p->mask[0].operand.shape;
    if (mask[0] != 1 || mask[1] != 1)
      return unsupported("onednn: a mask that differs between queries");
  }
  struct Block {
    int64_t first, count, keys;  // queries, and how many keys they see
    Product scores, result;
  };
  auto blocks = std::make_shared<std::vector<Block>>();
  Desc packed_keys, packed_values;
  for (int64_t first = 0; first < p->queries; first += rows) {
    Block block{first, std::min(rows, p->queries - first), p->keys, {}, {}};
    if (p->causal) block.keys = std::min(p->keys, (first + block.count + 63) / 64 * 64);
    Shape scores = {block.count, block.keys};
    std::vector<Step> steps = {scaling(p->scale)};
    if (!p->mask.empty()) {
      Step mask = p->mask[0];
      mask.operand.shape = {1, p->keys};
      if (block.keys != p->keys) return unsupported("onednn: causal and masked");
      steps.push_back(std::move(mask));
    }
    if (p->causal) steps.push_back(addition(causal_mask(first, block.count, block.keys), scores));
    block.scores = TRY(
        product({block.count, p->width}, any({p->width, block.keys}), scores, std::move(steps)));
    block.result =
        TRY(product(scores, any({block.keys, p->value_width}), {block.count, p->value_width}));
    blocks->push_back(std::move(block));
  }
  packed_keys = blocks->back().scores.pd.weights_desc();
  packed_values = blocks->back().result.pd.weights_desc();
  for (const Block& block : *blocks)
    if (!is_prefix(block.scores.pd.weights_desc(), packed_keys) ||
        !is_prefix(block.result.pd.weights_desc(), packed_values))
      return unsupported("onednn: the packed keys of a block are not a part of all keys");
  auto build = [p, blocks, packed_keys, packed_values]() {
    ProgramBuilder builder;
    Value keys = builder.temporary(packed_keys), values = builder.temporary(packed_values);
    int64_t largest = 0;
    for (const Block& block : *blocks) largest = std::max(largest, block.count * block.keys);
    Value scores = builder.temporary(plain_desc({largest}));
    int64_t all_keys = blocks->back().keys;
    // Constants are made once, not once a head.
    std::vector<std::vector<std::optional<Value>>> operands;
    for (const Block& block : *blocks)
      operands.push_back(bind_operands(builder, block.scores.steps, block.scores.forms));
    for (int64_t head = 0; head < p->heads; ++head) {
      Desc given_keys({p->width, all_keys}, kFloat, Dims{1, p->width});
      Desc given_values = plain_desc({all_keys, p->value_width});
      pack(builder, p->input(builder, 1, given_keys, head * p->keys * p->width), given_keys, keys,
           packed_keys);
      pack(builder, p->input(builder, 2, given_values, head * p->keys * p->value_width),
           given_values, values, packed_values);
      for (size_t i = 0; i < blocks->size(); ++i) {
        const Block& block = (*blocks)[i];
        int64_t row = head * p->queries + block.first;
        Value s = builder.view(scores, plain_desc({block.count, block.keys}));
        Bindings bindings = {
            {DNNL_ARG_SRC, p->input(builder, 0, block.scores.pd.src_desc(), row * p->width)},
            {DNNL_ARG_WEIGHTS, builder.view(keys, block.scores.pd.weights_desc())},
            {DNNL_ARG_DST, s}};
        bind_post_ops(operands[i], bindings);
        builder.add(block.scores.pd, bindings);
        builder.add(softmax({block.count, block.keys}), {{DNNL_ARG_SRC, s}, {DNNL_ARG_DST, s}});
        builder.add(block.result.pd,
                    {{DNNL_ARG_SRC, s},
                     {DNNL_ARG_WEIGHTS, builder.view(values, block.result.pd.weights_desc())},
                     {DNNL_ARG_DST,
                      builder.output(0, block.result.pd.dst_desc(),
                                     static_cast<size_t>(row * p->value_width) * sizeof(float))}});
      }
    }
    return builder.finish();
  };
  return Implementation{plain_variant(*p, fmt::format("rows{}", rows)), std::move(build)};
}

}  // namespace

Result<std::vector<Implementation>> plan_attention(const CompositePtr& composite) {
  AttentionProblemPtr p = std::make_shared<const AttentionProblem>(TRY(read_attention(composite)));
  constexpr int64_t kBatchedBytes = int64_t{16} << 20;
  bool large = p->heads * p->queries * p->keys * 4 > kBatchedBytes;
  Implementations found;
  if (p->queries > 64)
    for (int64_t rows : {64, 128, 256})
      if (rows < p->queries || rows == 128)
        found.add(guarded("attention", [&] { return in_rows(p, rows); }));
  Result<std::vector<Implementation>> blocked = found.take();
  if (large && blocked.ok()) return blocked;
  Implementations all;
  all.add(guarded("attention", [&] { return batched(p); }));
  if (blocked.ok())
    for (Implementation& implementation : *blocked) all.add(std::move(implementation));
  return all.take();
}

}  // namespace collage::onednn
