//! Published and measured figures of several systems on one page: what was published, what was measured, and which of it was
//! made to come out so. Markdown and HTML are written from the same sections.

mod agreement;

use maud::html as markup;
use narrows_model::comparison::Outcome;
use narrows_model::prediction::Scored;

use self::agreement::Agreement;
use crate::bottleneck::bottlenecks;
use crate::conclusions::{self, Judged, judged};
use crate::figures::{self, instant, plural};
use crate::html::{document, inline};
use crate::section::{Block, Cell, Column, Figure, Medium, Phrase, Row, Section, SmallPrint, Table, Tone};
use crate::sections::{changes, prediction_cells, published};
use crate::{markdown as writer, measures};

const TITLE: &str = "Published and measured";

/// Source of a results page, and the page's description of itself.
#[derive(Debug)]
pub struct Source<'a> {
    /// The run of each system.
    pub outcomes: &'a [Outcome],
    /// The command that makes the page again.
    pub command: &'a str,
}

/// A run and how it stands beside what was published.
struct System<'a> {
    outcome: &'a Outcome,
    conclusions: Vec<Judged<'a>>,
    agreement: Agreement,
}

fn systems<'a>(source: &Source<'a>) -> Vec<System<'a>> {
    let system = |outcome: &'a Outcome| System {
        outcome,
        conclusions: judged(outcome),
        agreement: Agreement::new(&outcome.beside),
    };
    source.outcomes.iter().map(system).collect()
}

/// The page as Markdown. Ends with a line feed.
pub fn markdown(source: &Source<'_>) -> String {
    let made = Phrase::from("Made by ").code(source.command);
    let made = made.plain(format!("; nothing here is written by hand. Machine: {}.", machine(source.outcomes)));
    let systems = systems(source);
    let blocks = vec![Block::Note(made), Block::Note(marks()), Block::Table(summary(&systems))];
    let sections: Vec<Section> = systems.iter().map(System::section).collect();
    format!("{}\n{}", writer::sections(&[Section::new("", TITLE, blocks)], 1), writer::sections(&sections, 2))
}

/// The page as HTML, from doctype to `</html>`; it needs nothing else.
pub fn html(source: &Source<'_>) -> String {
    let header = markup! {
        header.top {
            h1 { (TITLE) }
            p.note { (inline(&marks())) }
            p.note { (machine(source.outcomes)) " · made by " code { (source.command) } }
        }
        "\n"
    };
    let systems = systems(source);
    let first = Section::untitled(vec![Block::Table(summary(&systems))]);
    let all: Vec<Section> = std::iter::once(first).chain(systems.iter().map(System::section)).collect();
    document(TITLE, &header, &all)
}

/// Meaning of the marks of cells.
fn marks() -> Phrase {
    Phrase::from("Each cell has the ")
        .slanted("published")
        .plain(" figure (slanted) and the ")
        .strong("measured")
        .plain(" one (bold). A measured figure that is marked ")
        .slanted("fitted")
        .plain(" was made to come out, or its ratio is to one that was: the parameter that it names was chosen for it, so it \
                proves nothing. One that is marked ")
        .slanted("given")
        .plain(" follows by arithmetic from what was published, and ")
        .slanted("same as")
        .plain(" names the figure that a row has in another unit. Ratios are to the ")
        .plain("first variant, except where another one is named. ")
        .code("narrows sensitivity")
        .plain(" shows what they do when a fitted parameter is 20 % lower or higher.")
}

/// The machines that the runs were made on, each once.
fn machine(outcomes: &[Outcome]) -> String {
    let mut machines: Vec<String> = Vec::new();
    for outcome in outcomes {
        let text = figures::machine(&outcome.evidence.run.environment);
        if !machines.contains(&text) {
            machines.push(text);
        }
    }
    machines.join("; ")
}

/// Number of figures that agree, a line for each system.
fn summary(systems: &[System<'_>]) -> Table {
    let columns = vec![
        Column::left("system"),
        Column::right("published conclusions"),
        Column::right("that come back"),
        Column::right("figures that could have come out otherwise"),
        Column::right("within 20 % of the published"),
    ];
    let row = |system: &System<'_>| {
        let System { outcome, conclusions, agreement } = system;
        let all = agreement.within + agreement.outside.len();
        let name = Figure { is_link: true, ..Figure::new(&outcome.evidence.run.experiment) };
        let come_back = conclusions.iter().filter(|one| one.comes_back == Some(true)).count();
        let counts = [conclusions.len(), come_back, all, agreement.within].map(|count| Figure::new(count.to_string()));
        Row::new(std::iter::once(name).chain(counts))
    };
    Table::new(columns, systems.iter().map(row).collect())
}

impl System<'_> {
    /// Its section of the page.
    fn section(&self) -> Section {
        let outcome = self.outcome;
        let run = &outcome.evidence.run;
        let mut blocks = Vec::new();
        let source = measures::source(outcome).trim_end_matches('.');
        if !source.is_empty() {
            let length = if run.time_scale == 1.0 {
                String::new()
            } else {
                format!(", load × {} of its length", run.time_scale)
            };
            let text = format!("Published: {source}. Measured: {}{length}.", instant(run.started_ns));
            blocks.push(Block::Note(Phrase::from(text)));
        }
        let team = outcome.notes.published.as_ref().map(|published| &published.found).filter(|found| !found.is_empty());
        let team = team.map(|found| Phrase::from(format!("The team found: {found}")));
        blocks.extend(team.map(|found| Block::Paragraph(found, Tone::Plain)));
        blocks.extend(conclusions::table(&self.conclusions).map(Block::Table));
        let found = bottlenecks(outcome).into_iter().map(|one| Row::new([one.variant.to_owned(), one.what]));
        let columns = vec![Column::left("variant"), Column::left("Narrows found")];
        blocks.push(Block::Table(Table::new(columns, found.collect())));
        if !outcome.beside.is_empty() {
            blocks.push(Block::Table(published::table(outcome)));
        }
        blocks.extend(measures::bases(&outcome.beside).map(|bases| Block::Note(Phrase::from(bases))));
        blocks.push(Block::Only(Medium::Page, published::drawings(outcome)));
        blocks.extend(predictions(outcome));
        blocks.extend(outside(&self.agreement));
        Section::new(run.experiment.clone(), run.experiment.clone(), blocks)
    }
}

/// Predictions that are to be trusted, and why there are fewer of them than changes.
fn predictions(outcome: &Outcome) -> Vec<Block> {
    let (trusted, others): (Vec<&Scored>, Vec<&Scored>) =
        outcome.scored.iter().partition(|scored| scored.prediction.is_trusted());
    let row = |scored: &&Scored| {
        let [rate, _, mean, _] = prediction_cells::cells(scored)?.map(prediction_cells::in_brief);
        let names = Cell::from(format!("{} → {}", scored.before, scored.after));
        Some(Row::new([names, changes(scored).into(), rate, mean]))
    };
    let rows: Vec<Row> = trusted.iter().filter_map(row).collect();
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        let [rate, _, mean, _] = &prediction_cells::columns()[..] else { return blocks };
        let columns = vec![
            Column::left("predicted from the earlier variant"),
            Column::left("change"),
            rate.clone(),
            mean.clone(),
        ];
        blocks.push(Block::Table(Table::new(columns, rows).small(SmallPrint::Dropped)));
    }
    if !others.is_empty() {
        let count = plural(
            others.len(),
            "prediction that Narrows marks as not to be trusted",
            "predictions that Narrows marks as not to be trusted",
        );
        let text = format!("Not shown: {count}, mostly because the model does not reproduce the earlier variant.");
        blocks.push(Block::Note(Phrase::from(text)));
    }
    blocks
}

/// Figures that do not agree with what was published.
fn outside(agreement: &Agreement) -> Vec<Block> {
    let outside = &agreement.outside;
    if outside.is_empty() {
        return Vec::new();
    }
    let lead = format!(
        "{} more than 20 % from the published, with the reason above where one is known:",
        plural(outside.len(), "figure is", "figures are")
    );
    let item = |[name, published, measured]: &[String; 3]| Phrase::from(format!("{name}: {published} → {measured}"));
    vec![Block::Paragraph(Phrase::from(lead), Tone::Plain), Block::Items(outside.iter().map(item).collect())]
}

#[cfg(test)]
mod tests {
    use narrows_model::published::Standing;

    use super::*;
    use crate::fixture::drones;

    fn written(change: impl FnOnce(&mut narrows_model::comparison::Outcome)) -> String {
        let mut outcome = drones::outcome();
        change(&mut outcome);
        markdown(&Source { outcomes: &[outcome], command: "narrows demo --all" })
    }

    #[test]
    fn published_measured_and_fitted_are_told_apart() {
        let page = written(|outcome| outcome.beside[0].cells[1].standing = Standing::Fitted("store_delay".to_owned()));
        assert!(page.starts_with("# Published and measured\n\nMade by `narrows demo --all`;"), "{page}");
        let row = "| throughput | *19.0/s*<br>**26.0/s** | *23.0/s (×1.21)*<br>**45.0/s (×1.73)**<br>*fitted:* store\\_delay |";
        assert!(page.contains(row), "{page}");
        assert!(page.contains("- throughput: The article counts four minutes of one user too.\n"), "{page}");
        assert!(page.contains("The team found: The store refuses what goes beyond its request units."), "{page}");
        assert!(page.contains("- throughput of parallel: ×2.21 → ×2.85\n"), "{page}");
        assert!(!page.contains("- throughput of more-throughput"), "what was fitted is not judged:\n{page}");
    }

    #[test]
    fn texts_of_an_experiment_are_no_markup() {
        let page = written(|outcome| outcome.beside[0].remark = "a | b\n<b>*c*".to_owned());
        assert!(page.contains(r"- throughput: a \| b<br>&lt;b>\*c\*"), "{page}");
    }

    #[test]
    fn the_page_marks_what_was_fitted_and_escapes_what_experiments_say() {
        let mut outcome = drones::outcome();
        outcome.beside[0].cells[1].standing = Standing::Fitted("<delay>".to_owned());
        let page = html(&Source { outcomes: &[outcome], command: "narrows demo --all" });
        assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"));
        assert!(
            page.contains(
                "<b>45.0/s</b> <small>×1.73</small><small class=\"standing\">fitted: &lt;delay&gt;</small></td>"
            ),
            "{page}"
        );
    }
}
