//! A bound on the access log of a proxy that has none: a file that has grown to it begins anew.
//!
//! Such proxies append, so a file that is cut goes on from its beginning. Looked at once a second, and told as a gauge.

use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;

use crate::components::gauges::{Gauge, Gauges};

/// Size from which a file begins anew.
const BYTES_MAX: u64 = 64 << 20;

/// Looks after one file.
#[derive(Debug)]
pub(super) struct AccessLog {
    path: PathBuf,
    bytes_max: u64,
}

impl AccessLog {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, bytes_max: BYTES_MAX }
    }
}

impl Gauges for AccessLog {
    fn read(&mut self) -> Result<Vec<Gauge>, String> {
        let problem = |error| format!("its access log {}: {error}", self.path.display());
        let file = match File::options().write(true).open(&self.path) {
            Ok(file) => file,
            // No request has been written yet.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(problem(error)),
        };
        let bytes = file.metadata().map_err(problem)?.len();
        if bytes > self.bytes_max {
            file.set_len(0).map_err(problem)?;
        }
        Ok(vec![Gauge::new("sidecar.access_log.size", "By", bytes as f64)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_over_the_bound_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("access.log");
        let mut log = AccessLog { path: path.clone(), bytes_max: 5 };
        assert_eq!(log.read(), Ok(Vec::new()));
        for (text, left) in [("12345", 5), ("123456", 0)] {
            std::fs::write(&path, text).unwrap();
            let told = log.read().unwrap();
            assert_eq!(told, [Gauge::new("sidecar.access_log.size", "By", text.len() as f64)]);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), left);
        }
        assert!(AccessLog::new(folder.path().to_owned()).read().unwrap_err().starts_with("its access log "));
    }
}
