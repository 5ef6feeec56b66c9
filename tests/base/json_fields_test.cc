#include "base/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collage {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(JsonFields, ReadWhatIsThere) {
  const json value = parse_json(R"({"text":"a","number":2,"flag":true,"list":[1],"object":{}})");
  const JsonFields fields(value);
  EXPECT_EQ(fields.text("text").value(), "a");
  EXPECT_EQ(fields.number("number", {0, 2}).value(), 2);
  EXPECT_EQ(fields.integer("number", 2, 3).value(), 2);
  EXPECT_TRUE(fields.flag("flag").value());
  EXPECT_EQ(fields.array("list").value()->size(), 1u);
  EXPECT_TRUE(fields.object("object").value()->is_object());
  EXPECT_EQ(fields.text("absent", "b").value(), "b");
  EXPECT_EQ(fields.number("absent", {0, 1}, 0.5).value(), 0.5);
  EXPECT_TRUE(fields.has("flag"));
  EXPECT_FALSE(fields.has("absent"));
}

TEST(JsonFields, RefuseWhatIsMissingOfAnotherTypeOrOutOfRange) {
  for (const char* text :
       {R"({"x":null})", R"({"x":[]})", R"({"x":{}})", R"({"x":-1})", R"({"x":1e300})",
        R"({"x":18446744073709551615})", R"({"y":1})", "[]", "1", "null", "", R"({"x":)"}) {
    const json value = parse_json(text);
    const JsonFields fields(value);
    EXPECT_FALSE(fields.text("x").ok()) << text;
    EXPECT_FALSE(fields.number("x", {0, 10}).ok()) << text;
    EXPECT_FALSE(fields.integer("x", 0, 10).ok()) << text;
    EXPECT_FALSE(fields.flag("x").ok()) << text;
    EXPECT_FALSE(fields.flag("x", true).ok() && fields.has("x")) << text;
  }
  const json value = {{"x", 0.5}};
  EXPECT_THAT(JsonFields(value).integer("x", 0, 1).status().message(), HasSubstr("'x'"));
  EXPECT_THAT(JsonFields(value).number("x", {1, 2}).status().message(), HasSubstr("from 1 to 2"));
}

// Printing a value recurses: a line of brackets must not overflow the stack.
TEST(JsonFields, ADeeplyNestedTextIsNone) {
  const size_t deep = 1'000'000;
  EXPECT_TRUE(parse_json(std::string(deep, '[') + std::string(deep, ']')).is_null());
  EXPECT_FALSE(parse_json(std::string(50, '[') + std::string(50, ']')).is_null());
  EXPECT_FALSE(parse_json(json(std::string(deep, '[')).dump()).is_null()) << "only quoted";
}

TEST(JsonFields, TextIsWrittenWhateverItsBytes) {
  EXPECT_THAT(json_text({{"x", "\xff"}}), HasSubstr("\xef\xbf\xbd"));
}

}  // namespace
}  // namespace collage
