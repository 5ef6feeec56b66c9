/* Runs a library of `collage compile --emit library` on the files input0, input1 … and writes output0, output1 ….
 * Compiled with -DNAME=name -DHEADER="name.h". Exits with 1, saying why, where runs differ from one another: on
 * other numbers of threads, on several contexts at once, on tensors of other alignment, in a child process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include HEADER

#define JOIN(a, b) a##_##b
#define OF(name, what) JOIN(name, what)
#define MY(what) OF(NAME, what)

enum { kInputs = MY(num_inputs), kOutputs = MY(num_outputs), kMost = 8, kRuns = 50 };

static char* inputs[kMost];
static char* expected[kMost];

static void require(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "%s: %s\n", what, MY(error)());
  exit(1);
}

static char* allocate(size_t bytes) {
  void* memory = NULL;
  require(posix_memalign(&memory, 64, bytes + 128) == 0, "memory");
  memset(memory, 0x5a, bytes + 128);
  return memory;
}

/* `shift`: bytes from a multiple of 64. */
static void run(MY(context) * context, size_t shift, char** outputs) {
  const void* from[kMost] = {NULL};
  void* to[kMost] = {NULL};
  char *in[kMost], *out[kMost];
  for (int i = 0; i < kInputs; ++i) {
    in[i] = allocate(MY(input)(i)->bytes);
    from[i] = memcpy(in[i] + shift, inputs[i], MY(input)(i)->bytes);
  }
  for (int i = 0; i < kOutputs; ++i) {
    out[i] = allocate(MY(output)(i)->bytes);
    to[i] = out[i] + shift;
  }
  require(MY(run)(context, from, to) == 0, "run");
  for (int i = 0; i < kInputs; ++i) {
    require(memcmp(from[i], inputs[i], MY(input)(i)->bytes) == 0, "an input changed");
    free(in[i]);
  }
  for (int i = 0; i < kOutputs; ++i) {
    const size_t bytes = MY(output)(i)->bytes;
    require(out[i][shift + bytes] == 0x5a, "written beyond an output");
    memcpy(outputs[i], to[i], bytes);
    free(out[i]);
  }
}

static void check(MY(context) * context, size_t shift) {
  char* outputs[kMost];
  for (int i = 0; i < kOutputs; ++i) outputs[i] = allocate(MY(output)(i)->bytes);
  run(context, shift, outputs);
  for (int i = 0; i < kOutputs; ++i) {
    require(memcmp(outputs[i], expected[i], MY(output)(i)->bytes) == 0, "runs differ");
    free(outputs[i]);
  }
}

static void* check_often(void* threads) {
  MY(context)* context = MY(create)(*(int*)threads);
  require(context != NULL, "create");
  for (int i = 0; i < kRuns; ++i) check(context, i % 3 == 0 ? 4 : 0);
  MY(free)(context);
  return NULL;
}

/* The context's threads are the parent's. */
static void check_in_child(MY(context) * context) {
  int status = 1;
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    for (int i = 0; i < kRuns; ++i) check(context, 0);
    MY(free)(context);
    _exit(0);
  }
  require(child > 0 && waitpid(child, &status, 0) == child && status == 0, "runs in a child process");
}

/* An output may lie in no input and in no other output. */
static void check_overlaps(MY(context) * context) {
  size_t bytes = 0;
  for (int i = 0; i < kInputs; ++i) bytes += MY(input)(i)->bytes;
  for (int i = 0; i < kOutputs; ++i) bytes += MY(output)(i)->bytes;
  char* memory = allocate(bytes);
  const void* from[kMost];
  void* to[kMost];
  for (int i = 0; i < kInputs; ++i) from[i] = inputs[i];
  for (int i = 0; i < kOutputs; ++i) to[i] = expected[i];
  const void* kept = from[0];
  to[0] = memory;
  if (kInputs > 0) {
    from[0] = memcpy(memory, inputs[0], MY(input)(0)->bytes);
    require(MY(run)(context, from, to) != 0 && strstr(MY(error)(), "overlaps") != NULL, "an output in an input");
    require(memcmp(memory, inputs[0], MY(input)(0)->bytes) == 0, "an input changed");
    from[0] = kept;
  }
  if (kOutputs > 1) {
    to[1] = memory + MY(output)(0)->bytes - 1;
    require(MY(run)(context, from, to) != 0 && strstr(MY(error)(), "overlaps") != NULL, "an output in another");
  }
  free(memory);
}

int main(void) {
  char file[32];
  require(kInputs <= kMost && kOutputs <= kMost, "more tensors than this program expects");
  require(MY(input)(kInputs) == NULL && MY(output)(kOutputs) == NULL, "tensors that there are not");
  for (int i = 0; i < kInputs; ++i) {
    const size_t bytes = MY(input)(i)->bytes;
    inputs[i] = allocate(bytes);
    snprintf(file, sizeof file, "input%d", i);
    FILE* source = fopen(file, "rb");
    require(source != NULL && fread(inputs[i], 1, bytes, source) == bytes && fgetc(source) == EOF, file);
    fclose(source);
  }
  for (int i = 0; i < kOutputs; ++i) expected[i] = allocate(MY(output)(i)->bytes);

  MY(context)* context = MY(create)(0);
  require(context != NULL, "create");
  run(context, 0, expected);
  for (int i = 0; i < kOutputs; ++i) {
    const size_t bytes = MY(output)(i)->bytes;
    printf("%s", MY(output)(i)->name);
    for (int d = 0; d < MY(output)(i)->ndim; ++d) printf(" %d", (int)MY(output)(i)->shape[d]);
    printf("\n");
    snprintf(file, sizeof file, "output%d", i);
    FILE* target = fopen(file, "wb");
    require(target != NULL && fwrite(expected[i], 1, bytes, target) == bytes && fclose(target) == 0, file);
  }
  if (kInputs > 0) {
    const void* none[kMost] = {NULL};
    void* to[kMost];
    for (int i = 0; i < kOutputs; ++i) to[i] = expected[i];
    require(MY(run)(context, none, to) != 0 && strstr(MY(error)(), "is null") != NULL, "an input that is null");
  }
  check_overlaps(context);
  check(context, 0);
  check(context, 12);
  check_in_child(context);
  check(context, 0);
  MY(free)(context);
  MY(free)(NULL);
  require(MY(create)(5000) == NULL && strlen(MY(error)()) > 0, "too many threads");

  int counts[] = {1, 2, 3, 0};
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) require(pthread_create(&threads[i], NULL, check_often, &counts[i]) == 0, "a thread");
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  return 0;
}
