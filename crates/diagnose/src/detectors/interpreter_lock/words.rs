//! Texts of `interpreter-lock` findings.

use narrows_model::finding::evidence::interpreter_lock::{Interpreter, InterpreterLock};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::{Words, proof};

impl Words for InterpreterLock {
    fn title(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        let (threads, cores) = (threads(self), units::cores(self.cores));
        match self.interpreter {
            Some(interpreter) => {
                format!("{service} is limited by the lock of {}: its {threads} use {cores} together", lock(interpreter))
            }
            None => format!("{service} runs one thread at a time: its {threads} use {cores} together"),
        }
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of one core, which the threads of {} share", finding.resource)
    }

    fn reasons(&self, finding: &Finding) -> Vec<String> {
        let replicas = if self.replicas > 1 {
            format!(" ({} of {} replicas)", self.locked_replicas, self.replicas)
        } else {
            String::new()
        };
        let same = self
            .lighter_cores
            .map_or_else(String::new, |cores| format!(", and {} under the lighter load", units::cores(cores)));
        let mut reasons = vec![
            format!("A replica used {} in {}{same}{replicas}.", units::cores(self.cores), self.interval),
            format!("No thread alone explains that: the busiest used {} of a core.", units::percent(self.thread_cores)),
            room(self),
            proof(Some(&self.proof)),
        ];
        reasons.extend(self.own_share.map(|share| {
            let service = &finding.resource;
            format!("Requests spent {} of their time in {service} itself, outside its calls.", units::percent(share))
        }));
        reasons
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        let mut figures = vec![
            Figure::new("CPU of a replica, median", self.cores, "{cores}"),
            Figure::new("CPU of its busiest thread, mean", self.thread_cores, "{cores}"),
        ];
        let known = [
            ("time in which that thread waited for a processor", self.thread_wait.map(|wait| wait * 100.0), "%"),
            ("threads, median", self.threads, ""),
            ("context switches for each response", self.switches_each, ""),
        ];
        figures.extend(known.into_iter().filter_map(|(name, value, unit)| Some(Figure::new(name, value?, unit))));
        figures.push(Figure::new("idle CPU of the machine, median", self.idle_cores, "{cores}"));
        figures.push(Figure::new("throughput at that time", self.proof.heavier.rate, "/s"));
        figures
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        let cap = match self.cap {
            Some(cap) => format!("A CPU limit: the replica may use {}.", units::cores(cap)),
            None => "A CPU limit: the replica has none.".to_owned(),
        };
        let others = match self.crowded {
            None => "Other programs: the machine was not full.".to_owned(),
            Some(_) => "Other programs: they filled the machine, but few threads waited for a processor.".to_owned(),
        };
        let mut ruled_out = vec![cap, others];
        if self.thread_wait.is_some() {
            ruled_out.push("A wait for a processor: the busiest thread rarely waited for one.".to_owned());
        }
        ruled_out
    }

    fn falsified_by(&self, finding: &Finding) -> String {
        format!("A second process or replica of {} does not raise throughput.", finding.resource)
    }

    fn advice(&self, finding: &Finding) -> String {
        let service = &finding.resource;
        let processes = "More threads, a larger machine or a higher CPU limit will not help.";
        match self.interpreter {
            Some(Interpreter::Python) => format!(
                "Run {service} in several processes, one for each core (the workers of gunicorn or uvicorn, or \
                 replicas), or move computation to code that releases the lock. {processes}"
            ),
            Some(Interpreter::Ruby) => format!(
                "Run {service} in several processes, one for each core (the workers of puma, or replicas). {processes}"
            ),
            None => format!(
                "Find the lock that the threads of {service} hold while they compute, and hold it for less of the work; \
                 until then, run more processes or replicas. {processes}"
            ),
        }
    }
}

/// Sentence showing that the threads could have used more of the machine.
fn room(evidence: &InterpreterLock) -> String {
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

fn threads(evidence: &InterpreterLock) -> String {
    evidence.threads.map_or_else(|| "threads".to_owned(), |threads| units::counted(threads.round(), "thread"))
}
