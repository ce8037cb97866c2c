//! A check against a baseline for systems of continuous integration: JUnit, Markdown, and GitHub's annotations.

mod github;
mod junit;
mod markdown;

pub use github::github;
pub use junit::junit;
pub use markdown::markdown;
