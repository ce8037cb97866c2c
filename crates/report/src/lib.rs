//! Text, JSON, HTML and files for other programs: renderings of what a run found.
//!
//! Everything here turns model types into a `String` (or bytes, or a JSON value) and nothing else: no file is opened, nothing is
//! printed, no clock is read, and no judgement is made of a system: only whether it agrees with what was published. Counting, as of the lines of a chart, is layout:
//! scenarios laid on top of each other, replicas summed, points thinned to what a screen can show.

mod bottleneck;
mod caveats;
mod checked;
pub mod ci;
mod conclusions;
pub mod export;
mod figures;
#[cfg(test)]
mod fixture;
pub mod html;
pub mod json;
mod load;
mod markdown;
mod measures;
mod operations;
mod recurring;
pub mod results;
mod score;
mod section;
mod sections;
pub mod sensitivity;
mod spent;
pub mod table;
pub mod text;
mod unfinished;
mod used;

pub use load::repeated_and_cut;
pub use score::{ScoredRun, score};
