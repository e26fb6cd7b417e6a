//===- SampleBundle.h - a small bundle for tests ----------------------------===//
//
// A program of two rows that has one of everything: host ops, two kernels (test/Inputs/runtime/
// sample.ptx), a plain weight, an fp8 weight of experts, an embedding table, a recurrent state, a
// paged cache, every step input, scratch, a counter, and a group with nothing to do.
//
//===----------------------------------------------------------------------===//
#ifndef PLANC_TEST_LIB_BUNDLE_SAMPLEBUNDLE_H
#define PLANC_TEST_LIB_BUNDLE_SAMPLEBUNDLE_H

#include "lib/Bundle/Container.h"

namespace sample {

/// Its sections: both kernels' PTX and a stand-in for the plan dialect.
std::vector<planc::bundle::SectionData> sections(const std::string &ptx);

/// The manifest that goes with them; `rows` rows.
planc::bundle::Manifest manifest(const std::string &ptx, uint32_t rows = 2);

/// The PTX text, from the folder that the test was built from.
std::string ptx();

/// A manifest and sections as a file, with right lengths and checksums and nothing else checked.
std::string pack(planc::Json manifest, std::span<const planc::bundle::SectionData> sections);

} // namespace sample

#endif // PLANC_TEST_LIB_BUNDLE_SAMPLEBUNDLE_H
