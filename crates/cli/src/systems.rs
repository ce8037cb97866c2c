//! The reference systems, one line each. `narrows system` and `narrows demo` are made from this list.

use narrows_system::{Advice, CommandOutcome, Demo};

use crate::exit::{Failure, with_causes};

/// The demo of `narrows demo` without a name.
pub(crate) const DEFAULT_DEMO: &str = narrows_drone_delivery::DEMO.name;

/// Each line is a variant's name, a crate that exports `Command`, and its demos, as `narrows_system` describes them. The
/// first demo has the name of the system.
macro_rules! systems {
    ($($variant:ident: $system:ident, $demo:ident $(and $further:ident)*;)*) => {
        /// The subcommands of `narrows system`.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum System {
            $(#[command(name = $system::$demo.name)] $variant($system::Command),)*
        }

        impl System {
            /// Starts what the arguments name.
            pub(crate) async fn run(self) -> Result<CommandOutcome, Failure> {
                match self {
                    $(Self::$variant(command) => command.run().await.map_err(|error| failure(&error)),)*
                }
            }
        }

        /// The demos of all systems.
        pub(crate) const DEMOS: &[&Demo] = &[$(&$system::$demo, $(&$system::$further,)*)*];
    };
}

systems! {
    Customer360: narrows_customer_360, DEMO;
    DroneDelivery: narrows_drone_delivery, DEMO;
    HelloCities: narrows_hello_cities, DEMO and DEMO_ON_NODES;
    Micron: narrows_micron, DEMO;
}

fn failure(error: &impl Advice) -> Failure {
    Failure::new(with_causes(error)).hinted(error.hint())
}
