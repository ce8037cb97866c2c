//! Names the narrow place: detectors over evidence, pure.
