//! The experiment file, its components, and the run.
