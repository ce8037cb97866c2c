//! The experiment file, described once: every key, what it holds, whether it must be given, its default.
//!
//! The part about the load is in `load_grammar.rs`. This is data. `check.rs` holds a file against it, `complete.rs` fills in its defaults and `${…}`, `schema.rs`
//! publishes it. A key is added here, read where its section is read, and described in `docs/reference/experiment.md`.

use super::faults::FAULTS;
use super::kind::Kind;
use super::load_grammar::LOAD;
use super::shape::{Case, Field, Given, Map, Named, Need, Rule, Scope, Shape, Tagged, key};
use crate::components::{self, sidecar};

/// How long a service may take to become ready unless the file says otherwise.
pub(crate) const READY_TIMEOUT: &str = "30s";

/// Most replicas of a service.
const REPLICAS_MAX: u64 = 100;

/// Most of most things that are listed by hand.
pub(crate) const MANY: usize = 100;

pub(crate) const fn required(key: &'static str, shape: &'static Shape, doc: &'static str) -> Field {
    Field { key, shape, need: Need::Required, doc }
}

pub(crate) const fn optional(key: &'static str, shape: &'static Shape, doc: &'static str) -> Field {
    Field { key, shape, need: Need::Optional, doc }
}

pub(crate) const fn default(key: &'static str, shape: &'static Shape, yaml: &'static str, doc: &'static str) -> Field {
    Field { key, shape, need: Need::Default(yaml), doc }
}

pub(super) const fn beside(
    key: &'static str,
    shape: &'static Shape,
    keys: &'static [&'static str],
    doc: &'static str,
) -> Field {
    Field { key, shape, need: Need::OptionalBeside(keys), doc }
}

static LITERAL: Shape = Shape::Scalar(Kind::Text, Scope::Literal);
static AMOUNT: Shape = Shape::Scalar(Kind::Amount, Scope::Literal);
static LITERAL_DURATION: Shape = Shape::Scalar(Kind::PositiveDuration, Scope::Literal);
static REPLICA_TEXT: Shape = Shape::Scalar(Kind::Text, Scope::Replica);
pub(crate) static POSITIVE_DURATION: Shape = Shape::Scalar(Kind::PositiveDuration, Scope::Parameters);
pub(super) static DURATION: Shape = Shape::Scalar(Kind::Duration, Scope::Parameters);
static CORES: Shape = Shape::Scalar(Kind::Cores, Scope::Parameters);
static MEMORY: Shape = Shape::Scalar(Kind::Memory, Scope::Parameters);

/// The whole file.
pub(super) static EXPERIMENT: Shape = Shape::Map(Map::of(&[
    required(
        "experiment",
        &Shape::Scalar(Kind::ExperimentName, Scope::Literal),
        "The experiment's name; run files are named after it.",
    ),
    optional(
        "parameters",
        &Shape::Named(Named { what: "parameter", name: Kind::Name, value: &PARAMETER, least: 0, most: 1000 }),
        "Names and values that `${name}` stands for. Variants give them other values.",
    ),
    optional("system", &SYSTEM, "What Narrows starts. Without it, the load goes to a system that already runs."),
    required("load", &LOAD, "What is sent to the system."),
    optional("faults", &FAULTS, "What is done to replicas while they are under load."),
    optional(
        "objectives",
        &Shape::List { item: &OBJECTIVE, least: 0, most: MANY },
        "The objectives of the system under this load, such as `p95 < 300ms`, `error_rate == 0`, `rate >= 100/s`.",
    ),
    optional(
        "variants",
        &Shape::List { item: &VARIANT, least: 1, most: MANY },
        "The versions of the system; all are compared with the first. Without it there is one, `baseline`.",
    ),
    optional("published", &PUBLISHED, "Figures published elsewhere, shown beside the measured ones."),
    optional(
        "thresholds",
        &Shape::Named(Named { what: "threshold", name: Kind::Name, value: &AMOUNT, least: 0, most: 1000 }),
        "Other values for what detectors compare with, by name; see docs/reference/thresholds.md.",
    ),
    default(
        "seed",
        &Shape::Scalar(Kind::Whole(0, u64::MAX), Scope::Literal),
        "1",
        "The seed of everything random in a run.",
    ),
]));

static OBJECTIVE: Shape = Shape::Either(&[
    Shape::Scalar(Kind::Objective, Scope::Literal),
    Shape::Map(Map::of(&[
        required(
            "objective",
            &Shape::Scalar(Kind::Limit, Scope::Literal),
            "A metric, an operator and a bound, such as `p95 < 300ms`.",
        ),
        optional(
            "scenario",
            &Shape::Scalar(Kind::Name, Scope::Literal),
            "The scenario whose requests it is about. Without it, all.",
        ),
        beside(
            "request",
            &Shape::Scalar(Kind::RequestName, Scope::Literal),
            &["scenario"],
            "The step it is about: `STEP`, or `FLOW/STEP` in a mix.",
        ),
        default(
            "abort",
            &Shape::Scalar(Kind::Boolean, Scope::Literal),
            "false",
            "Whether a trial ends early once this can no longer be met.",
        ),
    ])),
]);

static PARAMETER: Shape = Shape::Either(&[
    Shape::Scalar(Kind::Text, Scope::Literal),
    Shape::Map(Map {
        fields: &[
            required("value", &LITERAL, "The value."),
            required("reason", &LITERAL, "The reason for the value, in a sentence that reports show."),
            optional(
                "held_by",
                &Shape::List { item: &Shape::Scalar(Kind::VariantName, Scope::Literal), least: 1, most: MANY },
                "Variants that must have reached the value, in requests per second, for later variants to be given it.",
            ),
            optional(
                "otherwise",
                &Shape::Scalar(Kind::Share, Scope::Literal),
                "The share of what the slowest of them reached that later variants are given otherwise.",
            ),
        ],
        rules: &[Rule::Needs("held_by", "otherwise"), Rule::Needs("otherwise", "held_by")],
        others: None,
    }),
]);

static PUBLISHED: Shape = Shape::Map(Map::of(&[
    required("source", &LITERAL, "Where the figures were published: title, publisher, perhaps the address."),
    optional(
        "operation",
        &Shape::Scalar(Kind::Operation, Scope::Literal),
        "The service, a space, and the name of its spans that the figures are about. Without it, all requests of the load.",
    ),
    required("figures", &Shape::List { item: &FIGURE, least: 1, most: MANY }, "The figures, one for each measure."),
]));

/// Measures that are lengths of time and those that are numbers, as [`narrows_model::published::Measure`] has them.
static FIGURE: Shape = Shape::Tagged(Tagged {
    tag: "measure",
    doc: "What was measured.",
    common: &[optional("remark", &LITERAL, "What a reader must know to compare.")],
    rules: &[],
    cases: &[
        Case { value: "rate", map: Map::of(NUMBERS) },
        Case { value: "requests", map: Map::of(NUMBERS) },
        Case { value: "failed", map: Map::of(NUMBERS) },
        Case { value: "error_rate", map: Map::of(NUMBERS) },
        Case { value: "mean", map: Map::of(TIMES) },
        Case { value: "p50", map: Map::of(TIMES) },
        Case { value: "p95", map: Map::of(TIMES) },
        Case { value: "p99", map: Map::of(TIMES) },
        Case { value: "completed", map: Map::of(NUMBERS) },
        Case { value: "throttled", map: Map::of(NUMBERS) },
        Case { value: "calls_per_operation", map: Map::of(NUMBERS) },
        Case { value: "attempts_per_operation", map: Map::of(NUMBERS) },
        Case { value: "charge_per_operation", map: Map::of(NUMBERS) },
        Case { value: "metric", map: Map::of(METRICS) },
    ],
});

static NUMBER_BY_VARIANT: Shape =
    Shape::Named(Named { what: "variant", name: Kind::VariantName, value: &AMOUNT, least: 1, most: MANY });
static TIME_BY_VARIANT: Shape =
    Shape::Named(Named { what: "variant", name: Kind::VariantName, value: &LITERAL_DURATION, least: 1, most: MANY });

static NUMBERS: &[Field] = &[required("values", &NUMBER_BY_VARIANT, "The figure by variant.")];
static METRICS: &[Field] = &[
    required("metric", &LITERAL, "The name of a metric that a service reports."),
    required("values", &NUMBER_BY_VARIANT, "The figure by variant, in the metric's unit."),
];
static TIMES: &[Field] = &[required("values", &TIME_BY_VARIANT, "The figure by variant, with its unit.")];

static VARIANT: Shape = Shape::Map(Map {
    fields: &[
        required(
            "name",
            &Shape::Scalar(Kind::VariantName, Scope::Literal),
            "The variant's name; a trial is addressed as `RUN:NAME`.",
        ),
        optional(
            "from",
            &Shape::Scalar(Kind::VariantName, Scope::Literal),
            "A variant listed earlier whose parameters this one starts from.",
        ),
    ],
    rules: &[],
    others: Some(&LITERAL),
});

static SYSTEM: Shape = Shape::Map(Map::of(&[required(
    "services",
    &Shape::Named(Named { what: "service", name: Kind::Name, value: &SERVICE, least: 1, most: MANY }),
    "The services by name. They are started in this order, each when the one before it is ready, and stopped in reverse.",
)]));

/// One service.
pub(super) static SERVICE: Shape = Shape::Map(Map { fields: &SERVICE_FIELDS, rules: SERVICE_RULES, others: None });

/// A service is a program or one of the components.
static SERVICE_RULES: &[Rule] =
    &[Rule::ExactlyOne(&STARTS), Rule::OnlyBeside(&["setup", "setup_timeout", "cwd"], "run")];

/// `run` and the keys of the components.
static STARTS: [Given; 1 + components::ALL.len()] = {
    let mut starts = [key("run"); 1 + components::ALL.len()];
    let mut at = 0;
    while at < components::ALL.len() {
        starts[1 + at] = key(components::ALL[at].key);
        at += 1;
    }
    starts
};

const SERVICE_FIELDS_COUNT: usize = PROGRAM_FIELDS.len() + components::ALL.len() + COMMON_FIELDS.len();

/// What every service has, and between what only programs have and the rest the keys of the components.
static SERVICE_FIELDS: [Field; SERVICE_FIELDS_COUNT] = {
    let mut fields = [PROGRAM_FIELDS[0]; SERVICE_FIELDS_COUNT];
    let mut at = 0;
    while at < SERVICE_FIELDS_COUNT {
        let (of_components, of_all) = (PROGRAM_FIELDS.len(), PROGRAM_FIELDS.len() + components::ALL.len());
        fields[at] = if at < of_components {
            PROGRAM_FIELDS[at]
        } else if at < of_all {
            let entry = components::ALL[at - of_components];
            optional(entry.key, entry.shape, entry.doc)
        } else {
            COMMON_FIELDS[at - of_all]
        };
        at += 1;
    }
    fields
};

const PROGRAM_FIELDS: &[Field] = &[
    optional(
        "setup",
        &Shape::List { item: &Shape::Arguments(Scope::Literal), least: 0, most: MANY },
        "Commands that run once in a run, one after the other, before the service's first start.",
    ),
    default("setup_timeout", &POSITIVE_DURATION, "10m", "How long all setup commands may take in total."),
    optional(
        "run",
        &Shape::Arguments(Scope::Replica),
        "The program and its arguments, as a list. It does not run in a shell.",
    ),
];

static ENVIRONMENT: Shape = Shape::Named(Named {
    what: "environment variable",
    name: Kind::EnvironmentName,
    value: &REPLICA_TEXT,
    least: 0,
    most: 1000,
});

const COMMON_FIELDS: &[Field] = &[
    default(
        "cwd",
        &REPLICA_TEXT,
        ".",
        "The folder that `setup` and `run` are started in, relative to the experiment file's folder.",
    ),
    optional("env", &ENVIRONMENT, "Environment variables, beside those that Narrows sets and inherits."),
    default("ready", &READY, "tcp", "How to tell that the service is ready."),
    default(
        "replicas",
        &Shape::Scalar(Kind::Whole(1, REPLICAS_MAX), Scope::Parameters),
        "1",
        "How many processes of the service are started, each with its own port.",
    ),
    optional(
        "port",
        &Shape::Scalar(Kind::Whole(1, 65_535), Scope::Parameters),
        "A fixed port. Without it, each replica is assigned a free one as `${port}`.",
    ),
    optional("cpus", &CORES, "How many processor cores each replica may use, such as 0.25. Without it, all."),
    optional(
        "memory",
        &MEMORY,
        "How much memory each replica may use: bytes, or a number with B, kB, MB, GB, KiB, MiB or GiB.",
    ),
    default("stop", &STOP, "{}", "How each replica is stopped."),
    default(
        "restart",
        &Shape::Scalar(Kind::Word(&["never", "always"]), Scope::Parameters),
        "never",
        "Whether a replica that ends by itself under load is started again, at most five times in a trial, or ends the run.",
    ),
    optional("sidecar", &SIDECAR, "A proxy beside each replica, through which it is called and calls other services."),
];

static PARAMETER_FLAG: Shape = Shape::Scalar(Kind::Boolean, Scope::Parameters);

static SIDECAR: Shape = Shape::Map(Map::of(&[
    required(
        "proxy",
        &Shape::Scalar(Kind::Word(&sidecar::NAMES), Scope::Parameters),
        "The proxy; `none` for no sidecar, so that variants can switch it.",
    ),
    default(
        "tls",
        &PARAMETER_FLAG,
        "false",
        "Whether it uses mutual TLS with the sidecars of other services that also have it.",
    ),
    default("access_log", &PARAMETER_FLAG, "false", "Whether it writes a line for each request."),
    optional("cpus", &CORES, "How many processor cores it may use. Without it, all."),
    optional("memory", &MEMORY, "How much memory it may use."),
]));

static READY: Shape = Shape::Either(&[
    Shape::Scalar(Kind::Probe, Scope::Replica),
    Shape::Map(Map {
        fields: &[
            optional(
                "http",
                &Shape::Scalar(Kind::Request, Scope::Replica),
                "A request that must return a status below 400.",
            ),
            optional("log", &REPLICA_TEXT, "A text that must appear in a line that the service prints."),
            default("timeout", &POSITIVE_DURATION, READY_TIMEOUT, "How long that may take."),
        ],
        rules: &[Rule::AtMostOne([key("http"), key("log")])],
        others: None,
    }),
]);

static STOP: Shape = Shape::Map(Map::of(&[
    default(
        "signal",
        &Shape::Scalar(Kind::Word(&["TERM", "INT", "QUIT", "HUP", "KILL"]), Scope::Parameters),
        "TERM",
        "The signal that stops it.",
    ),
    default("timeout", &DURATION, "10s", "How long it may take to exit before it is killed."),
]));
