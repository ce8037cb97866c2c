//! The load engine: models, drivers, pacing, and the validity of the generator itself.
