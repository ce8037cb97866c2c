//! Evidence that real runs left, as `narrows export --format evidence` writes it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use narrows_model::evidence::RunEvidence;

/// Maximum uncompressed size of such a file, bytes.
const BYTES_MAX: u64 = 256 << 20;

/// Reads the evidence of a run.
///
/// # Errors
/// When the file cannot be read or holds something else.
pub fn read(path: &Path) -> io::Result<RunEvidence> {
    let file = BufReader::new(File::open(path)?);
    let mut json = String::new();
    GzDecoder::new(file).take(BYTES_MAX).read_to_string(&mut json)?;
    Ok(serde_json::from_str(&json)?)
}
