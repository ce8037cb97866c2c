//! Three systems of twelve services: who calls whom.

/// Twelve services: who calls whom, and whether a service makes its calls at the same time.
#[derive(Debug)]
pub(crate) struct System {
    /// Name of the system.
    pub(crate) name: &'static str,
    /// By service, in the order of [`NAMES`].
    pub(crate) calls: [&'static [usize]; 12],
    pub(crate) is_parallel: [bool; 12],
}

/// The services of all systems.
pub(crate) const NAMES: [&str; 12] = [
    "frontend",
    "cart",
    "catalogue",
    "checkout",
    "payment",
    "shipping",
    "currency",
    "email",
    "search",
    "stock",
    "accounts",
    "quotes",
];

/// A tree, each service with its calls one after another.
pub(crate) const SHOP: System = System {
    name: "shop",
    calls: [&[1, 2, 3], &[9], &[8, 9], &[4, 5, 6, 7], &[10], &[11], &[], &[], &[9], &[], &[], &[6]],
    is_parallel: [false; 12],
};

/// A gateway that asks six at the same time, over two more levels.
pub(crate) const TRAVEL: System = System {
    name: "travel",
    calls: [&[1, 2, 3, 4, 5, 6], &[7], &[7, 8], &[9], &[10], &[], &[11], &[], &[11], &[], &[], &[]],
    is_parallel: [true, false, true, false, false, false, false, false, false, false, false, false],
};

/// A tree in which five services have several callees.
pub(crate) const BANK: System = System {
    name: "bank",
    calls: [&[1, 2, 3], &[4, 5, 6], &[5, 7, 8], &[9, 10, 11], &[7, 10], &[], &[], &[], &[], &[], &[], &[]],
    is_parallel: [false, false, true, false, false, false, false, false, false, false, false, false],
};

impl System {
    /// A service without calls that this one does not call.
    pub(crate) fn leaf_beside(&self, service: usize) -> usize {
        let is_other = |leaf: &usize| self.calls[*leaf].is_empty() && !self.calls[service].contains(leaf);
        (1..NAMES.len()).find(is_other).expect("each system has several leaves")
    }

    /// True if requests reach a service, however deep.
    pub(crate) fn is_reached(&self, service: usize) -> bool {
        self.calls.iter().any(|callees| callees.contains(&service))
    }
}
