#pragma once
#include <vector>

namespace fullbore::peptide {

/// Turns the profile of a spectrum into centroids, in place.
///
/// mz         [n]  in any order, sorted here; samples of the signal
/// intensity  [n]  one per m/z, not negative
/// -> one peak for each local maximum above 0 (of a plateau its middle counts once). Its intensity is that of the
/// maximum. Its m/z is the mean, weighted by intensity, of the samples around it that fall from it without a rise
/// and have at least a third of its height. Two samples further apart than a thousandth of their m/z are of
/// different peaks, for writers leave zeros out.
/// Source: "descendPeak" of MSnbase's pickPeaks (Gatto and Lilley 2012, Bioinformatics 28:288), with its default of
/// 33 percent; gaps are this function's own rule.
void centroid(std::vector<double>& mz, std::vector<float>& intensity);

}  // namespace fullbore::peptide
