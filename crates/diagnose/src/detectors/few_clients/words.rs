//! Texts of `few-clients` findings.

use narrows_model::finding::evidence::few_clients::{Clients, FewClients};
use narrows_model::finding::{Figure, Finding};
use narrows_model::units;

use crate::detectors::words::Words;

/// Clients per replica from which a hash spreads requests about evenly.
const CLIENTS_PER_REPLICA: usize = 10;

impl Words for FewClients {
    fn title(&self, finding: &Finding) -> String {
        format!(
            "the load has {} for {} replicas of {}, so replica {} gets {} of its requests",
            count(self.clients),
            self.replicas.len(),
            finding.resource,
            self.hot,
            units::percent(self.hot_share)
        )
    }

    fn cost_of(&self, finding: &Finding) -> String {
        format!("of the combined capacity of all replicas of {}, when replica {} is full", finding.resource, self.hot)
    }

    fn reasons(&self, _finding: &Finding) -> Vec<String> {
        let shares = self.replicas.iter().map(|one| format!("{}: {}", one.replica, units::percent(one.share)));
        let how = match self.clients {
            Clients::SeenAddresses(_) => "each address is seen at only one replica",
            Clients::GivenAddresses(_) | Clients::Users(_) => "the shares are those of whole clients",
        };
        vec![
            format!(
                "Requests by replica: {}; an even share is {}.",
                shares.collect::<Vec<_>>().join(", "),
                units::percent(1.0 / self.replicas.len() as f64)
            ),
            format!(
                "The load has {}, and {how}; a hash of that few gives the fullest about {} times the mean.",
                count(self.clients),
                units::number(self.expected_ratio)
            ),
        ]
    }

    fn figures(&self, _finding: &Finding) -> Vec<Figure> {
        vec![
            Figure::new("clients", self.clients.count() as f64, ""),
            Figure::new("replicas", self.replicas.len() as f64, ""),
            Figure::new("replicas without a request", self.idle_replicas() as f64, ""),
            Figure::new("share of the fullest", self.hot_share * 100.0, "%"),
            Figure::new("fullest over the mean", self.hot_ratio, ""),
            Figure::new("requests looked at", self.requests as f64, ""),
        ]
    }

    fn ruled_out(&self, _finding: &Finding) -> Vec<String> {
        vec![
            "Chance among few requests: Pearson's chi-square is beyond its 99.9 % point.".into(),
            "A burst or a replica that started later: both halves of the trial show it.".into(),
        ]
    }

    fn falsified_by(&self, _finding: &Finding) -> String {
        format!("With ten or more clients per replica, replica {} still gets as large a share.", self.hot)
    }

    fn advice(&self, finding: &Finding) -> String {
        format!(
            "Let the load come from as many clients as the real one, {} at least: more users with sessions of their own, or \
             more source addresses (`client_addresses`). Until then, what one replica of {} does is no sign of what the \
             balancer or the service can do.",
            units::count((CLIENTS_PER_REPLICA * self.replicas.len()) as u64),
            finding.resource
        )
    }
}

fn count(clients: Clients) -> String {
    let (word, words) = match clients {
        Clients::SeenAddresses(_) | Clients::GivenAddresses(_) => ("address", "addresses"),
        Clients::Users(_) => ("user", "users"),
    };
    format!("{} {}", units::count(clients.count() as u64), if clients.count() == 1 { word } else { words })
}
