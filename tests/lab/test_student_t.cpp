#include <gtest/gtest.h>

#include <cmath>

#include "fullbore/lab/quality/student_t.h"

namespace fullbore {
namespace {

// Expected values are of SciPy 1.15: special.betainc, stats.t.sf, stats.t.isf, stats.nct.sf.

void expect_digits(double value, double expected, double relative = 1e-12) {
  EXPECT_NEAR(value, expected, relative * std::abs(expected));
}

TEST(StudentT, IncompleteBeta) {
  expect_digits(incomplete_beta(0.5, 0.5, 0.25), 0.33333333333333337);
  expect_digits(incomplete_beta(2, 3, 0.4), 0.5247999999999999);
  expect_digits(incomplete_beta(50, 0.5, 0.99), 0.3173043978741973);
  expect_digits(incomplete_beta(0.5, 50, 0.0001), 0.07945942861737437);
  expect_digits(incomplete_beta(5, 5, 0.9), 0.99910908);
  expect_digits(incomplete_beta(500, 0.5, 0.999), 0.31731044730971725, 1e-11);
  EXPECT_EQ(incomplete_beta(2, 3, 0), 0);
  EXPECT_EQ(incomplete_beta(2, 3, 1), 1);
}

TEST(StudentT, Tails) {
  expect_digits(student_upper_tail(0, 3), 0.5);
  expect_digits(student_upper_tail(1, 1), 0.25);
  expect_digits(student_upper_tail(2.5, 2), 0.06480586011075541);
  expect_digits(student_upper_tail(-1.3, 4), 0.868274201764388);
  expect_digits(student_upper_tail(6.5, 5), 0.0006433265501999849);
  expect_digits(student_upper_tail(30, 2), 0.0005546313409798295);
  expect_digits(student_upper_tail(40, 9), 9.491499224669911e-12);
  expect_digits(student_upper_tail(0.01, 7), 0.49615015882181085);
  expect_digits(student_upper_tail(3, 1000), 0.0013833545221190963, 1e-10);
  EXPECT_EQ(student_upper_tail(INFINITY, 3), 0);
  EXPECT_TRUE(std::isnan(student_upper_tail(NAN, 3)));
}

TEST(StudentT, CriticalValues) {
  expect_digits(student_critical(0.05, 1), 6.313751514675044);
  expect_digits(student_critical(0.05, 2), 2.9199855803537256);
  expect_digits(student_critical(0.05, 4), 2.131846786326651);
  expect_digits(student_critical(0.01, 1), 31.82051595377396);
  expect_digits(student_critical(0.005, 3), 5.840909309733357);
  expect_digits(student_critical(0.025, 10), 2.2281388519862753);
  expect_digits(student_critical(0.9, 6), -1.4397557472651483);
  expect_digits(student_critical(1e-6, 2), 707.1057205259339);
  expect_digits(student_critical(0.05, 1000), 1.6463788172854648);
}

TEST(StudentT, Power) {
  EXPECT_NEAR(noncentral_upper_tail(6.313751514675043, 1, 7), 0.726501437125344, 1e-7);
  EXPECT_NEAR(noncentral_upper_tail(2.919985580355516, 2, 4.33), 0.848399352262653, 1e-7);
  EXPECT_NEAR(noncentral_upper_tail(2.131846786326649, 4, 3), 0.7910901344027723, 1e-7);
  EXPECT_NEAR(noncentral_upper_tail(2.131846786326649, 4, 0), 0.05, 1e-7);
  EXPECT_NEAR(noncentral_upper_tail(1.8331129326536335, 9, 2.5), 0.7457370182145737, 1e-7);
  EXPECT_NEAR(noncentral_upper_tail(1.6463788172854639, 999, 3), 0.9119906613822765, 1e-7);
  EXPECT_NEAR(noncentral_upper_tail(2.9, 3, -1), 0.004063015190355832, 1e-7);
  EXPECT_EQ(noncentral_upper_tail(2, 3, INFINITY), 1);
}

}  // namespace
}  // namespace fullbore
