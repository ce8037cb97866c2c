//! The plan's flows and steps, laid out for the hot path: every step of every scenario has one number, its *row*, under
//! which its request is compiled, counted and sampled.

use std::ops::RangeInclusive;

use narrows_model::load::{Cookies, Flow, LoadPlan, Scenario, Step};

use crate::Error;
use crate::clock::nanos;
use crate::random::Random;
use crate::request::Request;
use crate::session::{Rules, Session};

/// All flows of a plan.
#[derive(Debug)]
pub(crate) struct Flows {
    steps: Vec<CompiledStep>,
    scenarios: Vec<Range>,
    /// Of all scenarios, one after the other.
    flows: Vec<CompiledFlow>,
}

/// A step ready to be sent.
#[derive(Debug)]
pub(crate) struct CompiledStep {
    /// The scenario that it belongs to.
    pub(crate) scenario: usize,
    /// Name of its rows: see `LoadSecond::request`.
    pub(crate) name: String,
    /// Request.
    pub(crate) request: Request,
    /// The data sources that the steps of its flow draw from, once per iteration.
    pub(crate) sources_used: Vec<usize>,
    /// The pause after it.
    pub(crate) think_ns: RangeInclusive<i64>,
    /// Rules for its response.
    pub(crate) rules: Rules,
}

impl CompiledStep {
    /// The pause after it, drawn anew each time.
    pub(crate) fn think_ns(&self, random: &mut Random) -> i64 {
        let (from, to) = (*self.think_ns.start(), *self.think_ns.end());
        if from == to { from } else { random.between(from, to) }
    }
}

/// The scenario's part of the flows.
#[derive(Debug, Clone, Copy)]
struct Range {
    first: usize,
    end: usize,
    session: SessionShape,
}

/// State that users of a scenario keep within or between iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SessionShape {
    /// Nothing: iterations are single requests, and only the status of their responses counts.
    Plain,
    /// Where they are, and so many variables.
    Kept { variables: usize, cookies: Cookies },
}

#[derive(Debug)]
struct CompiledFlow {
    /// The share of this flow and those before it among the scenario's, up to 1.
    up_to: f64,
    first_row: usize,
    end_row: usize,
}

/// Where a user is in a flow: rows from the current one to the flow's last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    /// The step's row.
    pub(crate) row: usize,
    end_row: usize,
}

impl Position {
    /// The step after this one; none at the flow's end.
    pub(crate) fn next(self) -> Option<Self> {
        (self.row + 1 < self.end_row).then_some(Self { row: self.row + 1, ..self })
    }
}

impl Flows {
    /// Compiles every step of a plan.
    ///
    /// # Errors
    /// [`Error::Plan`] with the step's name when a request is not well-formed.
    pub(crate) fn compile(plan: &LoadPlan) -> Result<Self, Error> {
        let mut all = Self { steps: Vec::new(), scenarios: Vec::new(), flows: Vec::new() };
        for (index, scenario) in plan.scenarios.iter().enumerate() {
            all.add(index, scenario, plan)?;
        }
        Ok(all)
    }

    fn add(&mut self, index: usize, scenario: &Scenario, plan: &LoadPlan) -> Result<(), Error> {
        let first = self.flows.len();
        let total: f64 = scenario.flows.iter().map(|flow| flow.weight).sum();
        let mut up_to = 0.0;
        for flow in &scenario.flows {
            let first_row = self.steps.len();
            for step in &flow.steps {
                let name = row_name(scenario, flow, step);
                let place = if name.is_empty() { String::new() } else { format!(", request {name}") };
                let place = format!("scenario {}{place}", scenario.name);
                let request = Request::compile(step, scenario, plan, &place)?;
                let rules = Rules::compile(step, scenario, &place)?;
                let think = step.think_time.unwrap_or(scenario.think_time);
                let think_ns = nanos(think.from)..=nanos(think.to);
                let sources_used = Vec::new();
                self.steps.push(CompiledStep { scenario: index, name, request, sources_used, think_ns, rules });
            }
            self.join_sources(first_row);
            up_to += flow.weight / total;
            self.flows.push(CompiledFlow { up_to, first_row, end_row: self.steps.len() });
        }
        self.scenarios.push(Range { first, end: self.flows.len(), session: session_shape(scenario) });
        Ok(())
    }

    /// Gives the steps from a row on, which are a flow, the sources of all of them.
    fn join_sources(&mut self, first_row: usize) {
        let steps = &mut self.steps[first_row..];
        let mut all: Vec<usize> = steps.iter().flat_map(|step| step.request.sources_used.clone()).collect();
        all.sort_unstable();
        all.dedup();
        steps.iter_mut().for_each(|step| step.sources_used.clone_from(&all));
    }

    /// State of a new user of a scenario; `None` if it keeps none.
    pub(crate) fn new_session(&self, scenario: usize) -> Option<Box<Session>> {
        match self.scenarios[scenario].session {
            SessionShape::Plain => None,
            SessionShape::Kept { variables, cookies } => Some(Box::new(Session::new(variables, cookies))),
        }
    }

    /// All steps; a step's index is its row.
    pub(crate) fn steps(&self) -> &[CompiledStep] {
        &self.steps
    }

    /// Draws the flow of an iteration: its first step. Costs nothing where there is no choice.
    pub(crate) fn draw(&self, scenario: usize, random: &mut Random) -> Position {
        let range = self.scenarios[scenario];
        let flows = &self.flows[range.first..range.end];
        let flow = match flows {
            [only] => only,
            _ => {
                let at = random.unit();
                flows.iter().find(|flow| at < flow.up_to).unwrap_or(&flows[flows.len() - 1])
            }
        };
        Position { row: flow.first_row, end_row: flow.end_row }
    }

    /// The row that speaks for the scenario: its first step's.
    pub(crate) fn first_row(&self, scenario: usize) -> usize {
        self.flows[self.scenarios[scenario].first].first_row
    }
}

fn session_shape(scenario: &Scenario) -> SessionShape {
    let is_plain = |step: &Step| step.checks.is_empty() && step.extract.is_empty() && step.redirects_max == 0;
    let mut steps = scenario.flows.iter().flat_map(|flow| &flow.steps);
    if scenario.cookies == Cookies::Ignored
        && scenario.flows.iter().all(|flow| flow.steps.len() == 1)
        && steps.clone().all(is_plain)
    {
        return SessionShape::Plain;
    }
    let extracts = steps.by_ref().flat_map(|step| &step.extract);
    let variables = extracts.map(|extract| extract.variable + 1).max().unwrap_or(0);
    SessionShape::Kept { variables, cookies: scenario.cookies }
}

fn row_name(scenario: &Scenario, flow: &Flow, step: &Step) -> String {
    match (scenario.flows.len(), flow.steps.len()) {
        (1, 1) => String::new(),
        (1, _) => step.name.clone(),
        (_, 1) if step.name.is_empty() => flow.name.clone(),
        _ => format!("{}/{}", flow.name, step.name),
    }
}

#[cfg(test)]
mod tests {
    use narrows_model::load::ThinkTime;

    use super::*;
    use crate::testing::constant_plan;

    #[test]
    fn pauses_are_drawn_from_their_range() {
        let mut plan = plan(&[("", 1.0, &["varied", "fixed"])]);
        let ms = std::time::Duration::from_millis;
        plan.scenarios[0].think_time = ms(7).into();
        plan.scenarios[0].flows[0].steps[0].think_time = Some(ThinkTime { from: ms(10), to: ms(30) });
        let flows = Flows::compile(&plan).unwrap();
        let mut random = Random::new(1, 0);
        let mut pauses = |row: usize| (0..400).map(|_| flows.steps()[row].think_ns(&mut random)).collect::<Vec<_>>();
        let varied = pauses(0);
        assert!(varied.iter().all(|pause| (10_000_000..=30_000_000).contains(pause)), "{varied:?}");
        let mean = varied.iter().sum::<i64>() / 400;
        assert!((19_000_000..21_000_000).contains(&mean), "{mean}");
        assert_eq!(pauses(1), [7_000_000; 400]);
    }

    fn plan(flows: &[(&str, f64, &[&str])]) -> LoadPlan {
        let mut plan = constant_plan();
        let step = plan.scenarios[0].flows[0].steps[0].clone();
        plan.scenarios[0].flows = flows
            .iter()
            .map(|(name, weight, steps)| Flow {
                name: (*name).to_owned(),
                weight: *weight,
                steps: steps.iter().map(|name| Step { name: (*name).to_owned(), ..step.clone() }).collect(),
            })
            .collect();
        plan
    }

    fn names(plan: &LoadPlan) -> Vec<String> {
        Flows::compile(plan).unwrap().steps().iter().map(|step| step.name.clone()).collect()
    }

    #[test]
    fn rows_are_named_only_as_far_as_needed() {
        assert_eq!(names(&plan(&[("", 1.0, &[""])])), [""]);
        assert_eq!(names(&plan(&[("", 1.0, &["login", "list"])])), ["login", "list"]);
        let two = plan(&[("browse", 1.0, &[""]), ("buy", 1.0, &["cart", "pay"])]);
        assert_eq!(names(&two), ["browse", "buy/cart", "buy/pay"]);
    }

    #[test]
    fn flows_are_drawn_by_weight_and_walked_to_their_end() {
        let flows = Flows::compile(&plan(&[("a", 1.0, &["x"]), ("b", 3.0, &["y", "z"])])).unwrap();
        let mut random = Random::new(1, 1);
        let drawn: Vec<Position> = (0..4_000).map(|_| flows.draw(0, &mut random)).collect();
        let of_b = drawn.iter().filter(|position| position.row == 1).count();
        assert!((2_800..3_200).contains(&of_b), "{of_b} of 4,000");
        let second = drawn.iter().find(|position| position.row == 1).unwrap().next().unwrap();
        assert_eq!((second.row, second.next()), (2, None));
        assert_eq!(flows.first_row(0), 0);
    }
}
