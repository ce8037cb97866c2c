//! `narrows docs TOPIC`: the reference pages, for reading where the documentation is not at hand.
//!
//! Pages of findings are those of `narrows diagnose --explain`. Pages are printed as they are written, in Markdown.

use narrows_diagnose::pages;
use narrows_lab::experiment::nearest;

use crate::exit::Failure;
use crate::{Outcome, complete};

/// The topic of a page and its text.
type Page = (&'static str, &'static str);

macro_rules! page {
    ($topic:literal) => {
        ($topic, include_str!(concat!("../../../../docs/reference/", $topic, ".md")))
    };
}

/// Every page in `docs/reference`; a test compares the two.
static PAGES: [Page; 31] = [
    page!("agents"),
    page!("baseline"),
    page!("capacity"),
    page!("commands"),
    page!("compare"),
    page!("conventions"),
    page!("corpus"),
    page!("critical-path"),
    page!("diagnose"),
    page!("docstore"),
    page!("durable-engine"),
    page!("durable-model"),
    page!("exchange"),
    page!("experiment"),
    page!("findings"),
    page!("installation"),
    page!("instrumentation"),
    page!("kubernetes"),
    page!("limit"),
    page!("operational-laws"),
    page!("orchestrations"),
    page!("other-machines"),
    page!("otlp"),
    page!("predict"),
    page!("query"),
    page!("run-file"),
    page!("sampled-series"),
    page!("serve"),
    page!("servers"),
    page!("sidecars"),
    page!("thresholds"),
];

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// A reference page, such as `experiment`, or a finding, such as `n-plus-one` [default: the list of pages]
    #[arg(add = complete::topics())]
    topic: Option<String>,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let Some(topic) = &arguments.topic else { return super::print(&list()) };
    let own = PAGES.iter().find(|(known, _)| known == topic).map(|(_, page)| *page);
    match own.or_else(|| pages::page(topic)) {
        Some(page) => super::print(&format!("{}\n", page.trim_end())),
        None => Err(unknown(topic)),
    }
}

/// The topics with the titles of their pages.
fn list() -> String {
    let width = PAGES.iter().map(|(topic, _)| topic.len()).max().unwrap_or(0);
    let lines: String = PAGES.iter().map(|(topic, page)| format!("{topic:<width$}  {}\n", title(page))).collect();
    format!(
        "{lines}\n`narrows docs TOPIC` prints a page. Each finding has one too; `narrows docs findings` lists them.\n"
    )
}

/// Every topic, pages of findings last.
pub(crate) fn topics() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(topic, _)| *topic).chain(pages::ids())
}

fn title(page: &str) -> &str {
    page.lines().next().unwrap_or_default().trim_start_matches("# ")
}

fn unknown(topic: &str) -> Failure {
    let known: Vec<&str> = topics().collect();
    let failure = Failure::new(format!("no page is called `{topic}`"));
    match nearest(topic, &known) {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint("`narrows docs` lists the pages"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_reference_page_is_a_topic() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
        let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut pages: Vec<String> = names.filter_map(|name| name.strip_suffix(".md").map(str::to_owned)).collect();
        pages.sort();
        assert_eq!(PAGES.map(|(topic, _)| topic.to_owned()).to_vec(), pages);
        for (topic, page) in PAGES {
            assert!(page.starts_with("# ") && !title(page).is_empty(), "the title of {topic}");
        }
    }
}
