//! `narrows engine NAME`: a server that reference systems are made of, as a process of its own.

use std::time::Duration;

use narrows_docstore::{Config, bind, serve};

use crate::exit::{Exit, Failure, with_causes};
use crate::{Outcome, stderr};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    engine: Engine,
}

#[derive(Debug, clap::Subcommand)]
enum Engine {
    /// A partitioned document store with provisioned throughput, in the REST shapes of Cosmos DB
    Docstore(Docstore),
}

#[derive(Debug, clap::Args)]
struct Docstore {
    /// The port on 127.0.0.1; 0 is any free one
    #[arg(long, default_value_t = Config::default().port)]
    port: u16,
    /// Physical partitions
    #[arg(long, value_name = "N", default_value_t = Config::default().partitions)]
    partitions: u32,
    /// Throughput of each container in request units per second, split evenly over its partitions
    #[arg(long, value_name = "RU", default_value_t = Config::default().throughput_ru_per_second)]
    throughput: u32,
    /// Documents that each container begins with
    #[arg(long, value_name = "N", default_value_t = Config::default().documents_per_container)]
    documents: u32,
    /// Milliseconds to wait before each answer, in place of a network
    #[arg(long, value_name = "MS", default_value_t = 0)]
    delay_ms: u64,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let Engine::Docstore(docstore) = &arguments.engine;
    let config = Config {
        port: docstore.port,
        partitions: docstore.partitions,
        throughput_ru_per_second: docstore.throughput,
        documents_per_container: docstore.documents,
        delay: Duration::from_millis(docstore.delay_ms),
        ..Config::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("cannot start threads: {error}")))?;
    runtime
        .block_on(async {
            let listener = bind(&config).await?;
            if let Ok(address) = listener.local_addr() {
                stderr::say(&format!("docstore listens on http://{address}"));
            }
            serve(listener, config).await
        })
        .map_err(|error| Failure::new(with_causes(&error)))?;
    Ok(Exit::Fine)
}
