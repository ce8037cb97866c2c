//! The output files of `narrows load`. They are opened before the load, so that a path that cannot be written is
//! reported at once. Rows are written during the load, so that a long load needs no more memory than a short one.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use narrows_model::evidence::RequestOfLoad;
use narrows_model::load::LoadBatch;
use narrows_report::export::{HdrLog, csv_requests, csv_seconds, openmetrics};

use super::arguments::Results;
use crate::exit::Failure;

/// A file that is being written.
struct Output {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| refused(path, &error))?;
        Ok(Self { path: path.to_owned(), file: BufWriter::new(file) })
    }

    fn write(&mut self, text: &str) -> Result<(), Failure> {
        self.file.write_all(text.as_bytes()).map_err(|error| refused(&self.path, &error))
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.file.flush().map_err(|error| refused(&self.path, &error))
    }
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("cannot write {}: {error}", path.display()))
}

/// See the module.
pub(super) struct Outputs {
    seconds: Option<Output>,
    requests: Option<Output>,
    hdr: Option<Output>,
    hdr_log: HdrLog,
    openmetrics: Option<Output>,
}

impl Outputs {
    /// Opens the requested files; what a file held before is gone.
    pub(super) fn create(results: &Results) -> Result<Self, Failure> {
        let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
        let mut outputs = Self {
            seconds: create(&results.csv)?,
            requests: create(&results.csv_requests)?,
            hdr: create(&results.hdr)?,
            hdr_log: HdrLog::default(),
            openmetrics: create(&results.openmetrics)?,
        };
        if let Some(seconds) = &mut outputs.seconds {
            seconds.write(&csv_seconds(&[]))?;
        }
        if let Some(requests) = &mut outputs.requests {
            requests.write(&csv_requests(&[]))?;
        }
        Ok(outputs)
    }

    /// Writes the rows of the seconds that are over.
    pub(super) fn write(&mut self, batch: &LoadBatch) -> Result<(), Failure> {
        if let Some(seconds) = &mut self.seconds {
            seconds.write(without_header(&csv_seconds(&batch.seconds)))?;
        }
        if let Some(requests) = &mut self.requests {
            requests.write(without_header(&csv_requests(&batch.samples)))?;
        }
        if let Some(hdr) = &mut self.hdr {
            hdr.write(&self.hdr_log.lines(&batch.seconds))?;
        }
        Ok(())
    }

    /// Writes what is known only when the load is over. `counted` is the part after the warm-up.
    pub(super) fn finish(mut self, url: &str, counted: &RequestOfLoad) -> Result<(), Failure> {
        if let Some(hdr) = &mut self.hdr {
            hdr.write(&self.hdr_log.end())?;
        }
        if let Some(output) = &mut self.openmetrics {
            output.write(&openmetrics(std::slice::from_ref(counted), &[("url", url)]))?;
        }
        let all = [&mut self.seconds, &mut self.requests, &mut self.hdr, &mut self.openmetrics];
        all.into_iter().flatten().try_for_each(Output::flush)
    }
}

/// A table goes on where the one before ended.
fn without_header(table: &str) -> &str {
    table.split_once('\n').map_or("", |(_, rows)| rows)
}
