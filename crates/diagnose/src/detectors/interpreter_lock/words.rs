//! Texts of `interpreter-lock` findings, and of threads that use one core together.

use narrows_model::finding::evidence::interpreter_lock::{Interpreter, InterpreterLock};
use narrows_model::finding::evidence::one_core::OneCore;
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, proof};

/// More of these does not help where threads take turns.
pub(crate) const NO_HELP: &str = "More threads, a larger machine or a higher CPU limit will not help.";

impl Words for InterpreterLock {
    fn title(&self, finding: &Finding) -> String {
        format!(
            "{} is limited by the lock of {}: its {} use {} together",
            finding.resource,
            lock(self.interpreter),
            threads(&self.one_core),
            units::cores(self.one_core.cores)
        )
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of one core, which the threads of {} share", finding.resource)
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        reasons(&self.one_core, &finding.resource)
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        figures(&self.one_core)
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        ruled_out(&self.one_core)
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("A second process or replica of {} does not raise throughput.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        match self.interpreter {
            Interpreter::Python => format!(
                "Run {service} in several processes, one for each core (the workers of gunicorn or uvicorn, or \
                 replicas), or move computation to code that releases the lock. {NO_HELP}"
            ),
            Interpreter::Ruby => format!(
                "Run {service} in several processes, one for each core (the workers of puma, or replicas). {NO_HELP}"
            ),
        }
    }
}

/// Reasons why the threads of a service are known to take turns.
pub(crate) fn reasons(one_core: &OneCore, service: &str) -> Vec<String> {
    let replicas = if one_core.replicas > 1 {
        format!(" ({} of {} replicas)", one_core.locked_replicas, one_core.replicas)
    } else {
        String::new()
    };
    let same = one_core
        .lighter_cores
        .map_or_else(String::new, |cores| format!(", and {} under the lighter load", units::cores(cores)));
    let mut reasons = vec![
        format!("A replica used {} in {}{same}{replicas}.", units::cores(one_core.cores), one_core.interval),
        format!("No thread alone explains that: the busiest used {} of a core.", units::percent(one_core.thread_cores)),
        room(one_core),
        proof(Some(&one_core.proof)),
    ];
    reasons.extend(one_core.own_share.map(|share| {
        format!("Requests spent {} of their time in {service} itself, outside its calls.", units::percent(share))
    }));
    reasons
}

pub(crate) fn figures(one_core: &OneCore) -> Vec<Figure> {
    let mut figures = vec![
        Figure::new("CPU of a replica, median", one_core.cores, "{cores}"),
        Figure::new("CPU of its busiest thread, mean", one_core.thread_cores, "{cores}"),
    ];
    let known = [
        ("time in which that thread waited for a processor", one_core.thread_wait.map(|wait| wait * 100.0), "%"),
        ("threads, median", one_core.threads, ""),
        ("context switches for each response", one_core.switches_each, ""),
    ];
    figures.extend(known.into_iter().filter_map(|(name, value, unit)| Some(Figure::new(name, value?, unit))));
    figures.push(Figure::new("idle CPU of the machine, median", one_core.idle_cores, "{cores}"));
    figures.push(Figure::new("throughput at that time", one_core.proof.heavier.rate, "/s"));
    figures
}

pub(crate) fn ruled_out(one_core: &OneCore) -> Vec<String> {
    let cap = match one_core.cap {
        Some(cap) => format!("A CPU limit: the replica may use {}.", units::cores(cap)),
        None => "A CPU limit: the replica has none.".to_owned(),
    };
    let others = match one_core.crowded {
        None => "Other programs: the machine was not full.".to_owned(),
        Some(_) => "Other programs: they filled the machine, but few threads waited for a processor.".to_owned(),
    };
    let mut ruled_out = vec![cap, others];
    if one_core.thread_wait.is_some() {
        ruled_out.push("A wait for a processor: the busiest thread rarely waited for one.".to_owned());
    }
    ruled_out
}

/// Sentence showing that the threads could have used more of the machine.
fn room(evidence: &OneCore) -> String {
    let machine = units::cores(f64::from(evidence.machine_cores));
    match evidence.crowded {
        None => format!("{} of the machine's {machine} were idle.", units::cores(evidence.idle_cores)),
        Some(crowded) => format!(
            "Of {:.1} requests in it, {:.1} waited for a lock; {:.1} threads waited for a processor, though other \
             programs filled the machine's {machine}.",
            crowded.requests, crowded.waiting_for_lock, crowded.waiting_for_cpu
        ),
    }
}

fn lock(interpreter: Interpreter) -> &'static str {
    match interpreter {
        Interpreter::Python => "the Python interpreter (GIL)",
        Interpreter::Ruby => "the Ruby interpreter (GVL)",
    }
}

/// `38 threads`, or `threads` if they were not counted.
pub(crate) fn threads(evidence: &OneCore) -> String {
    evidence.threads.map_or_else(|| "threads".to_owned(), |threads| units::counted(threads.round(), "thread"))
}
