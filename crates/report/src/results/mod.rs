//! Published and measured figures of several systems on one page: what was published, what was measured, and which of it was
//! made to come out so.
//!
//! A page is gathered from outcomes once and written as Markdown or as HTML, so that both say the same.

mod agreement;
mod gather;
mod html;
pub(crate) mod markdown;

use narrows_model::comparison::Outcome;

use crate::figures::plural;

/// Source of a results page, and the page's description of itself.
#[derive(Debug)]
pub struct Source<'a> {
    /// The run of each system.
    pub outcomes: &'a [Outcome],
    /// The command that makes the page again.
    pub command: &'a str,
}

/// The page as Markdown. Ends with a line feed.
pub fn markdown(source: &Source<'_>) -> String {
    markdown::page(&gather::results(source))
}

/// The page as HTML, from doctype to `</html>`; it needs nothing else.
pub fn html(source: &Source<'_>) -> String {
    html::page(&gather::results(source))
}

/// Everything that the page says.
struct Results {
    command: String,
    machine: String,
    systems: Vec<System>,
}

/// One system of the page.
struct System {
    name: String,
    /// When it ran, and how long its load was beside the experiment's.
    run: String,
    source: String,
    /// Bottleneck found by the team that published the figures.
    team: String,
    /// Variant, and the bottleneck that Narrows found.
    found: Vec<(String, String)>,
    variants: Vec<String>,
    /// Variants with ratios to a variant other than the first; `None` if no variant has them.
    bases: Option<String>,
    rows: Vec<Row>,
    /// Change, predicted and measured throughput, predicted and measured mean: of predictions that are to be trusted.
    predictions: Vec<[String; 4]>,
    /// Number of others.
    untrusted: usize,
    agreement: Agreement,
}

impl System {
    /// Why there are fewer predictions than changes; empty if all are there.
    fn left_out(&self) -> String {
        match self.untrusted {
            0 => String::new(),
            count => format!(
                "Not shown: {}, mostly because the model does not reproduce the earlier variant.",
                plural(
                    count,
                    "prediction that Narrows marks as not to be trusted",
                    "predictions that Narrows marks as not to be trusted"
                )
            ),
        }
    }
}

/// A published figure over all variants.
struct Row {
    name: String,
    cells: Vec<Cell>,
    remark: String,
    /// The same as bars, in HTML.
    pairs: String,
}

/// Published and measured values as text, empty where there is no value.
struct Cell {
    published: String,
    /// The published value ÷ that of another variant, mostly the first.
    published_ratio: String,
    measured: String,
    measured_ratio: String,
    /// The parameter that was chosen to reproduce the figure.
    fitted: Option<String>,
}

/// Number of agreeing figures to which nothing was fitted.
#[derive(Default)]
struct Agreement {
    within: usize,
    /// Figure and variant, published, measured.
    outside: Vec<[String; 3]>,
}
