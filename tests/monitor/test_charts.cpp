#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fullbore/monitor/chart_picture.h"
#include "fullbore/monitor/text_chart.h"

namespace fullbore {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

int64_t count_of(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(ChartPicture, CurvesAreBrokenWhereNothingIsKnown) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ChartCurve curves[] = {
      {"reward & more", {{0, 0.1}, {1, 0.2}, {2, nan}, {3, 0.4}, {4, 0.3}}}, {"nothing", {}}};
  const std::string svg = curves_svg({"T", "step", "reward"}, curves);
  EXPECT_THAT(svg, HasSubstr("reward &amp; more"));
  EXPECT_EQ(count_of(svg, "stroke-width=\"2\""), 1);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  const std::string path = svg.substr(svg.find("<path d=\"M64.0"));
  EXPECT_EQ(count_of(path.substr(0, path.find('>')), "M"), 2);
  const double huge = std::numeric_limits<double>::max();
  const ChartCurve wide[] = {{"a", {{-huge, -huge}, {huge, huge}}}};
  EXPECT_THAT(curves_svg({}, wide), Not(HasSubstr("inf")));
  EXPECT_THAT(curves_svg({}, {}), HasSubstr("</svg>"));
}

TEST(ChartPicture, APointAloneIsADot) {
  const ChartCurve curves[] = {{"one", {{5, 0.1}}}};
  const std::string svg = curves_svg({}, curves);
  const std::string path = svg.substr(svg.find("stroke-linecap=\"round\"") - 100, 120);
  EXPECT_THAT(path, HasSubstr("h0\" fill=\"none\""));
}

TEST(ChartPicture, HistogramsCountEveryValueOnce) {
  const std::vector<double> values = {-0.3, 0, 0.1, 0.999, 1, 1, std::nan("")};
  const std::string svg = histogram_svg({"rewards", "reward", "answers"}, values, 13);
  EXPECT_THAT(svg, HasSubstr("rewards (1 not finite)"));
  EXPECT_THAT(svg, HasSubstr("-0.3 to -0.2: 1<"));
  EXPECT_THAT(svg, HasSubstr("0.9 to 1: 3<"));
  EXPECT_EQ(count_of(svg, ": 0<"), 9);
  EXPECT_THAT(histogram_svg({}, std::vector<double>{2, 2}, 1), HasSubstr("1 to 3: 2<"));
  EXPECT_THAT(histogram_svg({}, {}), HasSubstr("</svg>"));
}

TEST(TextChart, ACurveFillsItsArea) {
  const ChartCurve curves[] = {{"falls", {{0, 3}, {9, 0}}}};
  const std::string text = curves_text({"loss", "step", ""}, curves, {.columns = 24, .rows = 4});
  EXPECT_EQ(text,
            "loss\n"
            "        3|***\n"
            "         |   ****\n"
            "         |       ****\n"
            "        0|           ***\n"
            "         +--------------\n"
            "          0    step    9\n"
            "          * falls\n");
}

TEST(TextChart, CurvesHaveLettersOrColours) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const ChartCurve curves[] = {{"a\x1b[2J", {{0, 0}, {1, nan}, {2, 1}}}, {"b", {{0, 1}, {2, 1}}}};
  const std::string letters = curves_text({}, curves, {}, {.colour = false, .unicode = true});
  EXPECT_THAT(letters, HasSubstr("* a\\x1b[2J\n"));
  EXPECT_THAT(letters, HasSubstr("oooo"));
  EXPECT_EQ(count_of(letters, "\x1b"), 0);
  // Broken at what is no number: its first point, the last one is under the other curve.
  EXPECT_EQ(count_of(letters, "*"), 2);
  const std::string colours = curves_text({}, curves, {}, {.colour = true, .unicode = true});
  EXPECT_THAT(colours, HasSubstr("\x1b[36m"));
  EXPECT_THAT(colours, HasSubstr("\x1b[33m"));
  EXPECT_EQ(count_of(colours, "o"), 0);
}

TEST(TextChart, EveryLineKeepsToItsColumns) {
  const double huge = std::numeric_limits<double>::max();
  const ChartCurve wide[] = {{std::string(300, 'n'), {{-huge, -huge}, {huge, huge}}}};
  for (const bool unicode : {false, true})
    for (const auto& curves : {std::span<const ChartCurve>(wide), std::span<const ChartCurve>()}) {
      const std::string text =
          curves_text({std::string(300, 't'), std::string(300, 'x'), ""}, curves,
                      {.columns = 40, .rows = 5}, {.colour = false, .unicode = unicode});
      size_t begin = 0;
      for (size_t end = text.find('\n'); end != text.npos; end = text.find('\n', begin)) {
        EXPECT_LE(display_width(text.substr(begin, end - begin)), 40) << text;
        begin = end + 1;
      }
      EXPECT_THAT(text, Not(HasSubstr("inf")));
    }
}

}  // namespace
}  // namespace fullbore
