//! Span builder, fakes, and the tests that keep the house tidy.
