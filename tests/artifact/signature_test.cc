// Signed artifacts: the key's own are taken, and nothing else is.
#include "base/signature.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "artifact/artifact_file.h"
#include "artifact/damage.h"
#include "artifact/signing_keys.h"
#include "artifact/tiny_plan.h"
#include "artifact/write_artifact.h"
#include "base/files.h"
#include "base/scratch_folder.h"
#include "collage/program.h"
#include "collage/runtime.h"

namespace collage {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::kForeignPublicKey;
using testing::kOtherPublicKey;
using testing::kPrivateKey;
using testing::kPublicKey;

class SignedArtifactTest : public ::testing::Test {
 protected:
  fs::path write(const char* name, const std::string& key) const {
    const fs::path path = folder_.path() / name;
    PlanFacts facts{1, "tiny.onnx"};
    facts.key = SigningKey::parse_if_given(key).value();
    const Status status = write_artifact(path, *testing::tiny_plan(), facts, {});
    EXPECT_TRUE(status.ok()) << status.to_string();
    return path;
  }
  static std::string load(const std::string& file, const char* key) {
    return Program::load_signed(file.data(), file.size(), key).status().to_string();
  }

  const ScratchFolder folder_ =
      ScratchFolder::create(fs::temp_directory_path(), "collage-signature-test-").value();
};

TEST_F(SignedArtifactTest, IsTakenByItsKeyAlone) {
  const fs::path signed_file = write("signed.collage", kPrivateKey);
  const fs::path plain = write("plain.collage", "");
  EXPECT_EQ(Program::load_signed(signed_file, kPublicKey).status().to_string(), "ok");
  EXPECT_EQ(Program::load(signed_file).status().to_string(), "ok");
  const Status other = Program::load_signed(signed_file, kOtherPublicKey).status();
  EXPECT_EQ(other.code(), ErrorCode::kBadModel);
  EXPECT_THAT(other.to_string(), HasSubstr("signed.collage: its signature is not that of the key"));
  const Status none = Program::load_signed(plain, kPublicKey).status();
  EXPECT_EQ(none.code(), ErrorCode::kBadModel);
  EXPECT_THAT(none.to_string(), HasSubstr("plain.collage: it is not signed"));
}

TEST_F(SignedArtifactTest, RunsAsTheUnsignedDoes) {
  const auto plan = testing::tiny_plan();
  const Program artifact =
      Program::load_signed(write("signed.collage", kPrivateKey), kPublicKey).value();
  Context context = artifact.make_context().value();
  const Tensor input = testing::tiny_input(3);
  EXPECT_EQ(testing::bytes_of(context.run({input}).value()),
            testing::bytes_of(testing::run_plan(plan, input)));
}

// Of every byte, whether it is of an entry's data, between entries, or the signature's own.
TEST_F(SignedArtifactTest, IsRefusedWhereAnyByteIsAnother) {
  const std::string file = read_file(write("signed.collage", kPrivateKey)).value();
  EXPECT_EQ(load(file, kPublicKey), "ok");
  for (size_t at = 0; at < file.size(); at += at + 1024 < file.size() ? 61 : 1) {
    std::string changed = file;
    changed[at] ^= 1;
    EXPECT_NE(load(changed, kPublicKey), "ok") << at;
  }
  EXPECT_NE(load(file + "x", kPublicKey), "ok");
  EXPECT_NE(load(file.substr(0, file.size() - 1), kPublicKey), "ok");
  EXPECT_NE(load("", kPublicKey), "ok");
  // Without the key too, a signature that was changed is damage.
  std::string changed = file;
  char& digit = changed[changed.size() - 100];
  digit = digit == '0' ? '1' : '0';
  EXPECT_THAT(Program::load(changed.data(), changed.size()).status().to_string(),
              HasSubstr("damaged"));
}

// Somebody who has no key makes checksums and the seal fit what they changed.
TEST_F(SignedArtifactTest, IsRefusedWhereTheSealFitsTheChange) {
  std::string file = read_file(write("signed.collage", kPrivateKey)).value();
  const Manifest manifest = read_zip(file).value();
  std::string text = manifest_text(manifest);
  text.replace(text.find("tiny.onnx"), 9, "evil.onnx");
  const std::string changed = testing::with_manifest(file, manifest, text);
  EXPECT_EQ(Program::load(changed.data(), changed.size()).status().to_string(), "ok");
  EXPECT_THAT(load(changed, kPublicKey), HasSubstr("its signature is not that of the key"));
}

// What is in memory after the comparison is what was compared.
TEST_F(SignedArtifactTest, IsNotWhatTheFileBecomesLater) {
  const fs::path path = write("signed.collage", kPrivateKey);
  const auto file = ArtifactFile::open(path, PublicKey::parse(kPublicKey).value()).value();
  const ManifestEntry& weights = *file->manifest().find(kWeightsEntry);
  std::string zeros(static_cast<size_t>(fs::file_size(path)), '\0');
  const int fd = ::open(path.c_str(), O_WRONLY);
  EXPECT_TRUE(write_all(fd, zeros.data(), zeros.size()));
  ::close(fd);
  EXPECT_TRUE(file->entry(kWeightsEntry).ok());
  EXPECT_NE(file->entry(kWeightsEntry).value().text(), std::string(weights.bytes, '\0'));
}

TEST_F(SignedArtifactTest, KeysAreRefusedInWords) {
  const fs::path path = write("signed.collage", kPrivateKey);
  for (const std::string& key :
       {std::string(), std::string("no key"), std::string(kPrivateKey),
        std::string(kForeignPublicKey), std::string(kPublicKey).substr(0, 60)}) {
    const Status status = Program::load_signed(path, key).status();
    EXPECT_EQ(status.code(), ErrorCode::kUsage) << key;
    EXPECT_THAT(status.to_string(), HasSubstr("no public key of Ed25519")) << key;
  }
  EXPECT_EQ(SigningKey::parse(kPublicKey).status().code(), ErrorCode::kUsage);
  EXPECT_FALSE(SigningKey::parse_if_given("").value());
}

TEST_F(SignedArtifactTest, ByTheCInterface) {
  const fs::path signed_file = write("signed.collage", kPrivateKey);
  const std::string bytes = read_file(signed_file).value();
  collage_program* program = nullptr;
  EXPECT_EQ(collage_program_load_signed(signed_file.c_str(), kPublicKey, &program), 0);
  collage_program_free(program);
  EXPECT_EQ(collage_program_load_memory_signed(bytes.data(), bytes.size(), kPublicKey, &program),
            0);
  collage_program_free(program);
  EXPECT_EQ(collage_program_load_signed(signed_file.c_str(), kOtherPublicKey, &program), 3);
  EXPECT_EQ(program, nullptr);
  EXPECT_THAT(collage_last_error(), HasSubstr("its signature"));
  EXPECT_EQ(
      collage_program_load_memory_signed(bytes.data(), bytes.size() - 1, kPublicKey, &program), 3);
  EXPECT_EQ(collage_program_load_signed(signed_file.c_str(), "", &program), 2);
  EXPECT_EQ(collage_program_load_signed(signed_file.c_str(), nullptr, &program), 2);
}

}  // namespace
}  // namespace collage
