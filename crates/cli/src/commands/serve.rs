//! `narrows serve [DIR|RUN]`: pages to look at runs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use narrows_serve::{Guard, Listen, Source, Token};

use crate::exit::{Exit, Failure, with_causes};
use crate::{Outcome, page, runs_folder, stderr};

/// Where the token may be given, since other users can read an argument in the output of `ps`.
const TOKEN_VARIABLE: &str = "NARROWS_SERVE_TOKEN";
/// The port of loopback, unless another address is given.
const PORT: u16 = 9797;
const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, clap::Args)]
pub(crate) struct PlaceArgument {
    /// A folder with run files, or one run file [default: the runs folder]
    #[arg(value_name = "DIR|RUN", add = crate::complete::runs())]
    place: Option<PathBuf>,
}

impl PlaceArgument {
    /// Runs that are meant.
    pub(crate) fn source(&self) -> Result<Source, Failure> {
        match &self.place {
            Some(path) if path.is_dir() => Ok(Source::Folder(path.clone())),
            Some(path) => Ok(Source::Run(runs_folder::find(Some(path))?)),
            None => Ok(Source::Folder(runs_folder::folder())),
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    place: PlaceArgument,
    /// Listen here. Beyond loopback a token is needed: the environment variable NARROWS_SERVE_TOKEN sets it, or a random one
    /// is made and printed
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9797")]
    listen: SocketAddr,
    /// Open it in a browser: $BROWSER, or the desktop's
    #[arg(long)]
    open: bool,
}

pub(crate) fn execute(arguments: &Arguments) -> Outcome {
    let listen = listen(arguments.listen)?;
    let stop = crate::running::stop_flag()?;
    let mut ready = |url: &str| {
        stderr::say(&format!("pages at {url} (Ctrl-C ends it)"));
        if arguments.open {
            let url = url.to_owned();
            std::thread::spawn(move || page::open(Path::new(&url)));
        }
    };
    let served = narrows_serve::serve(listen, arguments.place.source()?, &stop, &mut ready);
    served.map(|()| Exit::Fine).map_err(|error| cannot_serve(&error))
}

/// The failure of a server that cannot be had.
pub(crate) fn cannot_serve(error: &narrows_serve::Error) -> Failure {
    let failure = Failure::new(with_causes(error));
    match error {
        narrows_serve::Error::Listen(cannot) => match cannot.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        },
        narrows_serve::Error::Folder { .. } => failure.hint("`narrows run experiment.yaml` makes runs"),
        _ => failure,
    }
}

/// Pages about a run that is under way in this process, which stay until they are ended.
pub(crate) struct PagesBeside {
    url: String,
    stop: Arc<AtomicBool>,
    serving: JoinHandle<Result<(), narrows_serve::Error>>,
}

impl PagesBeside {
    /// Serves a run on loopback: at the usual port, or at any where that is taken.
    pub(crate) fn start(run: &Path, is_open: bool) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        let (tell, told) = sync_channel(1);
        let (source, flag) = (Source::Run(run.to_owned()), Arc::clone(&stop));
        let serving = std::thread::spawn(move || {
            let mut ready = |url: &str| _ = tell.try_send(url.to_owned());
            match narrows_serve::serve(Listen::loopback(PORT), source.clone(), &flag, &mut ready) {
                Err(narrows_serve::Error::Listen(_)) => {
                    narrows_serve::serve(Listen::loopback(0), source, &flag, &mut ready)
                }
                served => served,
            }
        });
        let Ok(mut url) = told.recv() else {
            let ended = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            return Err(ended.map_or_else(|error| cannot_serve(&error), |()| Failure::new("the pages have ended")));
        };
        url.push_str(&narrows_serve::live_page(run));
        stderr::say(&format!("live at {url}"));
        if is_open {
            let url = url.clone();
            std::thread::spawn(move || page::open(Path::new(&url)));
        }
        Ok(Self { url, stop, serving })
    }

    /// Keeps the pages until Ctrl-C.
    pub(crate) fn stay(self) -> Result<(), Failure> {
        let asked = crate::running::stop_flag()?;
        stderr::say(&format!("pages stay at {} until Ctrl-C", self.url));
        while !asked.load(Ordering::Relaxed) && !self.serving.is_finished() {
            std::thread::sleep(POLL);
        }
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.serving.join();
        Ok(())
    }
}

fn listen(address: SocketAddr) -> Result<Listen, Failure> {
    let given = Token::of_variable(TOKEN_VARIABLE);
    let given = given.map_err(|error| Failure::new(format!("invalid {TOKEN_VARIABLE}: {error}")))?;
    let guard = match given {
        Some(token) => Guard::Token(token),
        None if narrows_telemetry::otlp::is_loopback(address.ip()) => Guard::Nothing,
        None => Guard::Token(Token::random().map_err(|error| Failure::new(format!("cannot make a token: {error}")))?),
    };
    Listen::new(address, guard).map_err(|error| Failure::new(error.to_string()))
}
