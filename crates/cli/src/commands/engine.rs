//! `narrows engine NAME`: a server that reference systems are made of, as a process of its own.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::time::Duration;

use narrows_docstore::{Access, AccountKey, Config, Excess, Flush, Guard, Listen, Repair, Server, stop_signal};
use narrows_sidecar::Exposure;
use narrows_system::{Address, TokenArgument};

use crate::commands::{plural, print};
use crate::exit::{Exit, Failure, with_causes};
use crate::{Outcome, stderr};

/// The largest file with a key, in bytes.
const KEY_FILE_BYTES_MAX: u64 = 1 << 20;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Engine {
    /// A partitioned document store with provisioned throughput, in the REST shapes of Cosmos DB
    ///
    /// Requests must be signed, as Microsoft's clients do, with the key of Microsoft's emulators unless another is given.
    ///
    /// It serves until SIGTERM or SIGINT. With --dir it keeps databases, containers and documents in a folder and goes on with
    /// them; the options about containers are then for a folder that is new. With OTEL_EXPORTER_OTLP_ENDPOINT set it exports
    /// the request units that each physical partition provides, has used and has refused: db.throughput.provisioned,
    /// db.throughput.consumed and db.requests.throttled, every second or every OTEL_METRIC_EXPORT_INTERVAL milliseconds.
    /// Prometheus finds the same at /metrics, and people at /_explorer/, with items and queries.
    Docstore(Docstore),
    /// A small proxy for one service (a sidecar), with mutual TLS, spans, metrics and an access log
    ///
    /// It carries what its configuration lists until SIGTERM or SIGINT, then lets requests under way finish. Experiments
    /// write the configuration themselves for services with `sidecar`. With OTEL_EXPORTER_OTLP_ENDPOINT set it exports
    /// metrics, and a span for each sampled request at each hop.
    Sidecar(Sidecar),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sidecar {
    /// The hops, certificates and limits, as JSON
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    // Takes the place of the address, but not of the port, of each inbound hop.
    #[command(flatten)]
    address: Address,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Docstore {
    /// The port; 0 is any free one
    #[arg(long, default_value_t = Config::default().listen.address().port())]
    port: u16,
    #[command(flatten)]
    address: Address,
    #[command(flatten)]
    token: TokenArgument,
    /// Folder that keeps the data, made unless it is there; without it, data goes with the process
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// When a write to --dir is acknowledged: once the disk has flushed it (survives a loss of power), or once the system
    /// has it (survives kill -9, but a loss of power may cost the last writes)
    #[arg(long, value_name = "WHEN", default_value = "always", requires = "dir")]
    sync: When,
    /// Report what of a damaged --dir can be read, and serve nothing
    #[arg(long, requires = "dir")]
    repair: bool,
    /// Make the folder one that holds what can be read; copies of the damaged files are kept in DIR/damaged-N
    #[arg(long, requires = "repair")]
    accept_loss: bool,
    /// The key that requests are signed with, in base64, instead of that of Microsoft's emulators
    #[arg(long, value_name = "KEY", conflicts_with_all = ["key_file", "no_auth", "token"], value_parser = GivenKey::read)]
    key: Option<GivenKey>,
    /// A file with that key, which keeps it out of the list of processes
    #[arg(long, value_name = "FILE", conflicts_with_all = ["no_auth", "token"])]
    key_file: Option<PathBuf>,
    /// Serve HTTPS at the same port, with certificate.pem and key.pem of this folder; where both are missing, they are made,
    /// for localhost. Clients have to trust certificate.pem
    #[arg(long, value_name = "DIR")]
    tls: Option<PathBuf>,
    /// Serve requests whether they are signed or not
    #[arg(long, conflicts_with = "token")]
    no_auth: bool,
    /// The top-level property that is the partition key of the containers the store begins with
    #[arg(long, value_name = "NAME", default_value_t = Config::default().partition_key)]
    partition_key: String,
    /// Physical partitions
    #[arg(long, value_name = "N", default_value_t = Config::default().partitions)]
    partitions: u32,
    /// Physical partitions of containers that clients create, at least; without it, one for every 10,000 RU/s
    #[arg(long, value_name = "N")]
    partitions_of_created: Option<u32>,
    /// Bytes of text beyond which a partition is split in two, where it has more than one partition key
    #[arg(long, value_name = "BYTES", default_value_t = Config::default().split_bytes)]
    split_bytes: usize,
    /// Throughput of each container in request units per second, split evenly over its partitions
    #[arg(long, value_name = "RU", default_value_t = Config::default().throughput_ru_per_second)]
    throughput: u32,
    /// Treatment of the request that goes beyond a partition's budget for a second: it is served, and the next ones get 429
    /// until later seconds have paid it (as in Cosmos DB), or it gets 429 itself (as in Microsoft's emulator)
    #[arg(long, value_name = "MODE", default_value = "overdraw")]
    budget: BudgetMode,
    /// Documents that each container begins with
    #[arg(long, value_name = "N", default_value_t = Config::default().documents_per_container)]
    documents: u32,
    /// Milliseconds each request spends under way in place of a network, half before the store looks at it and half
    /// after; may be a fraction, though timers add 1 to 2 ms to all but 0
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    delay_ms: Duration,
    /// Mean of an exponentially distributed time under way on top of the delay, in milliseconds; may be a fraction
    #[arg(long, value_name = "MS", default_value = "0", value_parser = milliseconds)]
    jitter_ms: Duration,
    /// Seed of the times that --jitter-ms draws and of when each partition's seconds begin; the same one draws them again
    #[arg(long, value_name = "N", default_value_t = Config::default().seed)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum When {
    Always,
    Never,
}

impl From<When> for Flush {
    fn from(when: When) -> Self {
        match when {
            When::Always => Self::Always,
            When::Never => Self::Never,
        }
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum BudgetMode {
    Overdraw,
    Strict,
}

impl From<BudgetMode> for Excess {
    fn from(mode: BudgetMode) -> Self {
        match mode {
            BudgetMode::Overdraw => Self::Overdraw,
            BudgetMode::Strict => Self::Strict,
        }
    }
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let refused = || "expected a number of milliseconds from 0 on, such as 2.5".to_owned();
    let number: f64 = text.parse().map_err(|_| refused())?;
    Duration::try_from_secs_f64(number / 1_000.0).map_err(|_| refused())
}

/// A key as it was given, or `None` when it is not base64: the argument parser would print what it refuses.
#[derive(Debug, Clone)]
struct GivenKey(Option<AccountKey>);

impl GivenKey {
    fn read(text: &str) -> Result<Self, Infallible> {
        Ok(Self(AccountKey::from_base64(text)))
    }

    /// The key that `origin` has given; the error does not repeat it.
    fn usable(self, origin: &str) -> Result<AccountKey, Failure> {
        self.0.ok_or_else(|| Failure::new(format!("{origin} is not a key, expected base64")))
    }
}

/// Whose requests the arguments let the store serve.
fn access(docstore: &Docstore) -> Result<Access, Failure> {
    if docstore.no_auth {
        return Ok(Access::Anyone);
    }
    let key = match (&docstore.key_file, &docstore.key) {
        (Some(file), _) => {
            let text = narrows_files::read_text(file, KEY_FILE_BYTES_MAX)
                .map_err(|error| Failure::new(format!("cannot read --key-file {}: {error}", file.display())))?;
            GivenKey(AccountKey::from_base64(&text)).usable(&format!("the content of --key-file {}", file.display()))?
        }
        (None, Some(key)) => key.clone().usable("the value of --key")?,
        (None, None) => match docstore.token.token().map_err(Failure::new)? {
            Some(token) => return Ok(Access::Token(token)),
            None => AccountKey::of_emulators(),
        },
    };
    Ok(Access::Signed(key))
}

/// Where the store listens. Everyone knows the key of Microsoft's emulators, so it protects nothing.
fn listen(docstore: &Docstore, access: &Access) -> Result<Listen, Failure> {
    let guard = match access {
        Access::Token(token) => Guard::Token(token.clone()),
        Access::Signed(key) if *key != AccountKey::of_emulators() => Guard::Own,
        Access::Signed(_) | Access::Anyone => Guard::Nothing,
    };
    docstore.address.listen(docstore.port, guard).map_err(|exposed| {
        Failure::new(exposed.to_string())
            .hint("set your own key with --key-file or a token with --token; --insecure serves anyone")
    })
}

pub(crate) fn execute(engine: &Engine) -> Outcome {
    match engine {
        Engine::Docstore(docstore) => serve_docstore(docstore),
        Engine::Sidecar(sidecar) => serve_sidecar(sidecar),
    }
}

fn serve_sidecar(arguments: &Sidecar) -> Outcome {
    let failed = |error: narrows_sidecar::Error| Failure::new(with_causes(&error)).hinted(error.hint());
    let exposure = Exposure { listen: arguments.address.listen, is_insecure: arguments.address.insecure };
    let config = narrows_sidecar::Config::read(&arguments.config, exposure).map_err(failed)?;
    // One thread is what a sidecar's cost is measured by.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start a runtime: {error}")))?;
    let served = runtime.block_on(async {
        let stop = narrows_sidecar::stop_signal()?;
        let sidecar = narrows_sidecar::Sidecar::bind(&config)?;
        for (name, address) in sidecar.listeners() {
            stderr::say(&format!("{name} listens on {address}"));
        }
        sidecar.serve(stop).await;
        Ok(())
    });
    served.map_err(failed)?;
    Ok(Exit::Fine)
}

/// Reports the damage in a folder and, on request, opens the folder without the lost data.
fn repair_docstore(folder: &Path, accept_loss: bool) -> Outcome {
    let failed = |error: narrows_docstore::Error| explained(&error);
    let repair = Repair::open(folder).map_err(failed)?;
    let documents = plural(repair.documents(), "document");
    if repair.findings().is_empty() {
        print(&format!("{} is sound: {documents}, nothing is damaged\n", folder.display()))?;
        return Ok(Exit::Fine);
    }
    let mut report = format!("{} is damaged; {documents} can be read\n", folder.display());
    for finding in repair.findings() {
        report.push_str(&format!("  {finding}\n"));
    }
    if !accept_loss {
        print(&format!(
            "{report}nothing was changed: restore the folder from a copy, or open it without what is lost with `--accept-loss`\n"
        ))?;
        return Ok(Exit::VerdictFailed);
    }
    let kept = repair.accept().map_err(failed)?;
    print(&format!(
        "{report}repaired: the store opens without what is lost; copies of the damaged files are in {}\n",
        kept.display()
    ))?;
    Ok(Exit::Fine)
}

fn explained(error: &narrows_docstore::Error) -> Failure {
    Failure::new(with_causes(error)).hinted(error.hint())
}

fn serve_docstore(docstore: &Docstore) -> Outcome {
    if let Some(folder) = docstore.dir.as_deref().filter(|_| docstore.repair) {
        return repair_docstore(folder, docstore.accept_loss);
    }
    let access = access(docstore)?;
    let config = Config {
        listen: listen(docstore, &access)?,
        dir: docstore.dir.clone(),
        sync: docstore.sync.into(),
        access,
        tls: docstore.tls.clone(),
        partitions: docstore.partitions,
        partition_key: docstore.partition_key.clone(),
        partitions_of_created: docstore.partitions_of_created,
        split_bytes: docstore.split_bytes,
        throughput_ru_per_second: docstore.throughput,
        excess: docstore.budget.into(),
        documents_per_container: docstore.documents,
        delay: docstore.delay_ms,
        jitter: docstore.jitter_ms,
        seed: docstore.seed,
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    let served = runtime.block_on(async {
        let mut stop = Box::pin(stop_signal()?);
        let server = tokio::select! {
            () = &mut stop => return Ok(()),
            opened = Server::open(config) => opened?,
        };
        let port = server.address().port();
        if let Some(certificate) = server.certificate() {
            stderr::say(&format!("docstore serves https://localhost:{port} with {}", certificate.display()));
        }
        stderr::say(&format!("docstore listens on http://{}", server.address()));
        server.serve(stop).await
    });
    // A signal may have come while the store was being filled, which need not be finished.
    runtime.shutdown_background();
    served.map_err(|error| explained(&error))?;
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_may_be_fractions_but_not_negative_or_endless() {
        assert_eq!(milliseconds("2.5"), Ok(Duration::from_micros(2_500)));
        assert_eq!(milliseconds("0"), Ok(Duration::ZERO));
        for text in ["-1", "NaN", "inf", "1e300", "", "5ms"] {
            assert_eq!(milliseconds(text).unwrap_err(), "expected a number of milliseconds from 0 on, such as 2.5");
        }
    }
}
