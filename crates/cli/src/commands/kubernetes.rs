//! `narrows kubernetes manifests FILE`: an experiment's services as objects of a cluster.

use std::path::PathBuf;

use narrows_lab::experiment::{Experiment, Variant};
use narrows_lab::kubernetes::{ManifestError, Manifests, Secret, Wanted, manifests};

use crate::exit::Failure;
use crate::{Outcome, complete};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Action {
    /// Print manifests of an experiment's services
    ///
    /// Each service becomes a Deployment, or a StatefulSet where several replicas know their numbers, and a Service; `cpus`,
    /// `memory`, `replicas` and `ready` are carried over, a sidecar of kind `narrows` stands in the same pod. PostgreSQL and
    /// MariaDB come from their public images, other programs from the image under `image:`. No password or key is printed: the
    /// first lines name the Secrets that have to be there.
    Manifests(ManifestArguments),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManifestArguments {
    /// The experiment file
    #[arg(default_value = "experiment.yaml")]
    file: PathBuf,
    /// The variant [default: the first]
    #[arg(long, value_name = "NAME", add = complete::variants())]
    variant: Option<String>,
    /// Only these services
    #[arg(long, value_name = "SERVICES", value_delimiter = ',')]
    only: Vec<String>,
    /// Give a parameter of the experiment another value; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = super::run::setting, add = complete::parameters())]
    set: Vec<(String, String)>,
    /// Have services send traces and metrics there, with the token of the Secret `telemetry`
    #[arg(long, value_name = "URL")]
    otlp: Option<String>,
    /// Lead to the target of the load by an Ingress
    #[arg(long)]
    ingress: bool,
}

pub(crate) fn execute(action: &Action) -> Outcome {
    let Action::Manifests(arguments) = action;
    let experiment = super::read_experiment_with(&arguments.file, &arguments.set)?;
    let variant = match &arguments.variant {
        Some(name) => named(&experiment, name)?,
        None => &experiment.variants[0],
    };
    let wanted = Wanted { only: arguments.only.clone(), otlp: arguments.otlp.clone(), ingress: arguments.ingress };
    let made = manifests(&experiment, variant, &wanted).map_err(|error| match error {
        ManifestError::Experiment(errors) => super::invalid(&arguments.file.to_string_lossy(), &errors),
        error => Failure::new(&error).hinted(error.hint().as_deref()),
    })?;
    super::print(&format!("{}{}", head(arguments, &made), made.yaml()))
}

fn named<'a>(experiment: &'a Experiment, name: &str) -> Result<&'a Variant, Failure> {
    let found = experiment.variants.iter().find(|variant| variant.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
        Failure::new(format!("the experiment has no variant `{name}`")).hint(format!("it has {}", names.join(", ")))
    })
}

/// Comments at the top: the command that made the manifests, and the Secrets that they need.
fn head(arguments: &ManifestArguments, made: &Manifests) -> String {
    let mut command = format!("narrows kubernetes manifests {}", arguments.file.display());
    let mut option = |name: &str, value: &str| command.push_str(&format!(" --{name} {value}"));
    arguments.variant.iter().for_each(|variant| option("variant", variant));
    if !arguments.only.is_empty() {
        option("only", &arguments.only.join(","));
    }
    arguments.set.iter().for_each(|(name, value)| option("set", &format!("{name}={value}")));
    arguments.otlp.iter().for_each(|url| option("otlp", url));
    if arguments.ingress {
        command.push_str(" --ingress");
    }
    let secret = |secret: &Secret| {
        format!("# Secret {} has to be there, with {}: {}.\n", secret.name, secret.keys.join(", "), secret.purpose)
    };
    format!("# Made by `{command}`.\n{}", made.secrets.iter().map(secret).collect::<String>())
}
