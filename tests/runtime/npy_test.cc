// NumPy files: what write_npy writes is read back; headers are untrusted input.
#include "runtime/npy.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/files.h"

namespace collage {
namespace {

class Npy : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("npy_test" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // A version 2 file of that header and so many bytes of data.
  Result<Tensor> read(const std::string& header, size_t data = 0) const {
    std::string bytes("\x93NUMPY\x02\x00", 8);
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
    EXPECT_TRUE(write_file_atomically(path(), bytes + header + std::string(data, '\0')).ok());
    return read_npy(path());
  }
  std::filesystem::path path() const { return folder_ / "x.npy"; }

 private:
  std::filesystem::path folder_;
};

TEST_F(Npy, ReadsWhatItWrites) {
  Tensor tensor = *Tensor::allocate(DType::kInt32, {2, 1, 3});
  for (int i = 0; i < 6; ++i) tensor.data<int32_t>()[i] = i * i - 3;
  ASSERT_TRUE(write_npy(path(), tensor).ok());
  const Result<Tensor> again = read_npy(path());
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->shape(), tensor.shape());
  EXPECT_EQ(again->dtype(), DType::kInt32);
  EXPECT_EQ(std::memcmp(again->raw(), tensor.raw(), tensor.bytes()), 0);
}

TEST_F(Npy, ReadsHeadersInAnyOrderAndSpacing) {
  const Result<Tensor> read_back =
      read("{'shape':(2, 3 ,),   'fortran_order':   False, 'descr':   '<f4', }\n", 24);
  ASSERT_TRUE(read_back.ok()) << read_back.status().to_string();
  EXPECT_EQ(read_back->shape(), (Shape{2, 3}));
  EXPECT_EQ(read("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", 8)->shape(), Shape{});
}

TEST_F(Npy, RefusesMalformedHeaders) {
  const std::string good = "'descr': '<f4', 'fortran_order': False, ";
  const struct {
    std::string header, wrong;
  } cases[] = {
      {"", "no 'descr'"},
      {"{'descr':", "no 'descr'"},
      {"{'descr': '<f4", "no 'descr'"},
      {"{'descr': [('a', '<f4')], 'shape': (1,)}", "no 'descr'"},
      {"{'descr': '>f4', 'shape': (1,)}", "element type '>f4'"},
      {"{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}", "Fortran order"},
      {"{" + good + "}", "no 'shape'"},
      {"{" + good + "'shape': (1,", "no 'shape'"},
      {"{" + good + "'shape': (-1,)}", "no 'shape'"},
      {"{" + good + "'shape': (2,)}", "shape (2) does not fit the data"},
  };
  for (const auto& c : cases) {
    const Result<Tensor> refused = read(c.header, 4);
    EXPECT_FALSE(refused.ok()) << c.header;
    EXPECT_NE(refused.status().to_string().find(c.wrong), std::string::npos)
        << refused.status().to_string();
  }
  EXPECT_FALSE(read("{" + good + "'shape': (99999999999, 99999999999, 99999999999)}", 4).ok());
}

TEST_F(Npy, LongHeadersNeedNoStack) {
  const std::string spaces(4 << 20, ' ');
  EXPECT_FALSE(read("{'descr': '" + std::string(4 << 20, 'x') + "', 'shape': (1,)}", 4).ok());
  EXPECT_FALSE(read("{'descr': '<f4', 'shape': (1," + spaces + "x)}", 4).ok());
  EXPECT_TRUE(read("{'descr':" + spaces + "'<f4', 'shape': (" + spaces + "1)}", 4).ok());
}

}  // namespace
}  // namespace collage
