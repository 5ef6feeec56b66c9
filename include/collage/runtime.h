/* The C interface of libcollage_runtime: artifacts (`collage compile MODEL -o F.collage`) loaded
 * and run. Handles are opaque and the functions below stay as they are, so programs need not be
 * compiled again for a newer library of the same COLLAGE_RUNTIME_ABI.
 *
 * Tensors are DLPack's, on the CPU, of any strides and alignment: dense ones aligned to 64 bytes
 * are used where they are, others are copied.
 *
 *   collage_program* program;
 *   collage_context* context;
 *   if (collage_program_load("resnet50.collage", &program) != 0 ||
 *       collage_context_create(program, &context) != 0)
 *     fprintf(stderr, "%s\n", collage_last_error());
 *   DLManagedTensor* output = NULL;
 *   collage_context_run(context, &input, 1, &output, 1);
 *   output->deleter(output);
 *
 * Every function that can fail gives 0 or a code of collage/result.h (ErrorCode). */
#ifndef COLLAGE_RUNTIME_H
#define COLLAGE_RUNTIME_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define COLLAGE_RUNTIME_ABI 1

struct DLManagedTensor;
typedef struct collage_program collage_program; /* never changes; any thread may use it */
typedef struct collage_context collage_context; /* one thread at a time */

/* Of the library; COLLAGE_RUNTIME_ABI is the header's. */
int collage_runtime_abi(void);
/* Why the last call on this thread failed; "" where none did. Good until the next call on it. */
const char* collage_last_error(void);

int collage_program_load(const char* path, collage_program** program);
/* The bytes are copied. */
int collage_program_load_memory(const void* data, size_t bytes, collage_program** program);
/* The same where the owner of this public key (Ed25519, PEM) signed every byte, as `collage compile
 * --sign` does; any other is refused before anything in it is interpreted. A file is read into
 * memory, so that nobody changes it afterwards. */
int collage_program_load_signed(const char* path, const char* public_key,
                                collage_program** program);
int collage_program_load_memory_signed(const void* data, size_t bytes, const char* public_key,
                                       collage_program** program);
/* The bytes are used where they are, which begins on a multiple of 64 and is never freed: an array
 * of the program's, as libraries of `collage compile --emit library` have. */
int collage_program_load_static(const void* data, size_t bytes, int threads,
                                collage_program** program);
/* Contexts made of it stay good. Null is ignored, here and below. */
void collage_program_free(collage_program* program);

size_t collage_program_num_inputs(const collage_program* program);
size_t collage_program_num_outputs(const collage_program* program);

/* An input or output. What is pointed to belongs to the program. Of a program of several shapes,
 * dimensions that may have any size are -1, and ndim is where the rank may be any. */
typedef struct {
  const char* name;
  const int64_t* shape;
  int32_t ndim;
  uint8_t code, bits; /* DLPack's DLDataType, of one lane */
} collage_tensor_info;
int collage_program_input(const collage_program* program, size_t index, collage_tensor_info* info);
int collage_program_output(const collage_program* program, size_t index, collage_tensor_info* info);

/* Memory for intermediate results, and what kernels keep between runs. Contexts of one program
 * share code and weights, and run at once. */
int collage_context_create(const collage_program* program, collage_context** context);
void collage_context_free(collage_context* context);
/* What it keeps from run to run, as a decoder its keys and values, becomes empty. */
void collage_context_reset(collage_context* context);

/* Inputs are read and stay the caller's. An output that is null on entry is made, and its deleter
 * frees it; into any other the result is written, which may overlap no input and no other output.
 */
int collage_context_run(collage_context* context, struct DLManagedTensor* const* inputs,
                        size_t num_inputs, struct DLManagedTensor** outputs, size_t num_outputs);
/* The same with pointers to dense tensors in row-major order, of a program of fixed shapes. */
int collage_context_run_dense(collage_context* context, const void* const* inputs,
                              void* const* outputs);

#ifdef __cplusplus
}
#endif

#endif
