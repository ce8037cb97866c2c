//! The word that the sidecar is to stop, as its tasks wait for it.

use tokio::sync::watch;

/// Whoever gives the word.
pub(crate) struct Teller(watch::Sender<bool>);

/// Whoever waits for it.
#[derive(Clone)]
pub(crate) struct Stop(watch::Receiver<bool>);

/// Both ends.
pub(crate) fn channel() -> (Teller, Stop) {
    let (teller, stop) = watch::channel(false);
    (Teller(teller), Stop(stop))
}

impl Teller {
    /// Gives the word.
    pub(crate) fn tell(&self) {
        self.0.send_replace(true);
    }
}

impl Stop {
    /// Done once the word was given, or nobody is left to give it.
    pub(crate) async fn wait(&mut self) {
        let _ = self.0.wait_for(|stopping| *stopping).await;
    }
}
