//! Single partitions, driven by hand: their bounds, lost packets and misuse.

mod bounds;
mod long_work;
mod loss;
mod misuse;
mod outbox;
mod room;
