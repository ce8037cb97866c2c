//! The experiment file, described once: every key, what it holds, whether it must be given, its default.
//!
//! This is data. `check.rs` holds a file against it, `complete.rs` fills in its defaults and `${…}`, `schema.rs`
//! publishes it. A key is added here, read where its section is read, and described in `docs/reference/experiment.md`.

use super::kind::Kind;
use super::request::METHODS;
use super::shape::{Case, Field, Map, Named, Need, Scope, Shape, Tagged, Together};

/// How long a service may take to become ready unless the file says otherwise.
pub(super) const READY_TIMEOUT: &str = "30s";

/// Most virtual users of a scenario.
const VUS_MAX: u64 = 100_000;

/// Most replicas of a service.
const REPLICAS_MAX: u64 = 100;

const MANY: usize = 100;

const fn required(key: &'static str, shape: &'static Shape, doc: &'static str) -> Field {
    Field { key, shape, need: Need::Required, doc }
}

const fn optional(key: &'static str, shape: &'static Shape, doc: &'static str) -> Field {
    Field { key, shape, need: Need::Optional, doc }
}

const fn default(key: &'static str, shape: &'static Shape, yaml: &'static str, doc: &'static str) -> Field {
    Field { key, shape, need: Need::Default(yaml), doc }
}

const fn beside(key: &'static str, shape: &'static Shape, keys: &'static [&'static str], doc: &'static str) -> Field {
    Field { key, shape, need: Need::OptionalBeside(keys), doc }
}

static LITERAL: Shape = Shape::Scalar(Kind::Text, Scope::Literal);
static AMOUNT: Shape = Shape::Scalar(Kind::Amount, Scope::Literal);
static LITERAL_DURATION: Shape = Shape::Scalar(Kind::PositiveDuration, Scope::Literal);
static POSITIVE_DURATION: Shape = Shape::Scalar(Kind::PositiveDuration, Scope::Parameters);
static DURATION: Shape = Shape::Scalar(Kind::Duration, Scope::Parameters);
static INTEGER: Shape = Shape::Scalar(Kind::Integer, Scope::Parameters);
static TRIAL_TEXT: Shape = Shape::Scalar(Kind::Text, Scope::Trial);
static REPLICA_TEXT: Shape = Shape::Scalar(Kind::Text, Scope::Replica);
static USERS: Shape = Shape::Scalar(Kind::Whole(1, VUS_MAX), Scope::Parameters);
static USERS_OR_NONE: Shape = Shape::Scalar(Kind::Whole(0, VUS_MAX), Scope::Parameters);

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
    optional("system", &SYSTEM, "What Narrows starts. Without it, the load goes to something that runs already."),
    required("load", &LOAD, "What is sent to the system."),
    optional(
        "objectives",
        &Shape::List { item: &Shape::Scalar(Kind::Objective, Scope::Literal), least: 0, most: MANY },
        "What the system must keep to under this load, such as `p95 < 300ms`, `error_rate == 0`, `rate >= 100/s`.",
    ),
    optional(
        "variants",
        &Shape::List { item: &VARIANT, least: 1, most: MANY },
        "The versions of the system to compare, the first being what the others are compared with. Without it there is one, `baseline`.",
    ),
    optional("published", &PUBLISHED, "Figures published elsewhere, to stand beside the measured ones."),
    default(
        "seed",
        &Shape::Scalar(Kind::Whole(0, u64::MAX), Scope::Literal),
        "1",
        "The seed of everything random in a run.",
    ),
]));

static PARAMETER: Shape = Shape::Either(&[
    Shape::Scalar(Kind::Text, Scope::Literal),
    Shape::Map(Map::of(&[
        required("value", &LITERAL, "The value."),
        required("reason", &LITERAL, "Why it is that, in a sentence that reports show."),
    ])),
]);

static PUBLISHED: Shape = Shape::Map(Map::of(&[
    required("source", &LITERAL, "Where the figures were published: title, publisher, perhaps the address."),
    required(
        "operation",
        &Shape::Scalar(Kind::Operation, Scope::Literal),
        "The service, a space, and the name of its spans that the figures are about.",
    ),
    required("figures", &Shape::List { item: &FIGURE, least: 1, most: MANY }, "The figures, one for each measure."),
]));

/// Measures that are lengths of time and those that are numbers, as [`narrows_model::published::Measure`] has them.
static FIGURE: Shape = Shape::Tagged(Tagged {
    tag: "measure",
    doc: "What was measured.",
    common: &[optional("remark", &LITERAL, "What a reader must know to compare.")],
    cases: &[
        Case { value: "rate", map: Map::of(NUMBERS) },
        Case { value: "mean", map: Map::of(TIMES) },
        Case { value: "p50", map: Map::of(TIMES) },
        Case { value: "p95", map: Map::of(TIMES) },
        Case { value: "p99", map: Map::of(TIMES) },
        Case { value: "completed", map: Map::of(NUMBERS) },
        Case { value: "throttled", map: Map::of(NUMBERS) },
        Case { value: "calls_per_operation", map: Map::of(NUMBERS) },
        Case { value: "attempts_per_operation", map: Map::of(NUMBERS) },
        Case { value: "charge_per_operation", map: Map::of(NUMBERS) },
    ],
});

static NUMBER_BY_VARIANT: Shape =
    Shape::Named(Named { what: "variant", name: Kind::VariantName, value: &AMOUNT, least: 1, most: MANY });
static TIME_BY_VARIANT: Shape =
    Shape::Named(Named { what: "variant", name: Kind::VariantName, value: &LITERAL_DURATION, least: 1, most: MANY });

static NUMBERS: &[Field] = &[required("values", &NUMBER_BY_VARIANT, "The figure by variant.")];
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
    together: Together::Free,
    others: Some(&LITERAL),
});

static SYSTEM: Shape = Shape::Map(Map::of(&[required(
    "services",
    &Shape::Named(Named { what: "service", name: Kind::Name, value: &SERVICE, least: 1, most: MANY }),
    "The services by name. They are started in this order, each when the one before it is ready, and stopped in reverse.",
)]));

/// One service.
pub(super) static SERVICE: Shape = Shape::Map(Map::of(&[
    optional(
        "setup",
        &Shape::List { item: &Shape::Arguments(Scope::Literal), least: 0, most: MANY },
        "Commands that run once in a run, one after the other, before the service's first start.",
    ),
    default("setup_timeout", &POSITIVE_DURATION, "10m", "How long all setup commands together may take."),
    required("run", &Shape::Arguments(Scope::Replica), "The program and its arguments, as a list. No shell reads it."),
    default(
        "cwd",
        &REPLICA_TEXT,
        ".",
        "The folder that `setup` and `run` are started in, relative to the experiment file's folder.",
    ),
    optional(
        "env",
        &Shape::Named(Named {
            what: "environment variable",
            name: Kind::EnvironmentName,
            value: &REPLICA_TEXT,
            least: 0,
            most: 1000,
        }),
        "Environment variables, beside those that Narrows sets and inherits.",
    ),
    default("ready", &READY, "tcp", "What tells that the service can be used."),
    default(
        "replicas",
        &Shape::Scalar(Kind::Whole(1, REPLICAS_MAX), Scope::Parameters),
        "1",
        "How many processes of it are started, each with its own port.",
    ),
    optional(
        "port",
        &Shape::Scalar(Kind::Whole(1, 65_535), Scope::Parameters),
        "A fixed port. Without it, each replica is handed a free one as `${port}`.",
    ),
    optional(
        "cpus",
        &Shape::Scalar(Kind::Cores, Scope::Parameters),
        "How many processor cores each replica may use, such as 0.25. Without it, all.",
    ),
    optional(
        "memory",
        &Shape::Scalar(Kind::Memory, Scope::Parameters),
        "How much memory each replica may use: bytes, or a number with B, kB, MB, GB, KiB, MiB or GiB.",
    ),
    default("stop", &STOP, "{}", "How each replica is stopped."),
    default(
        "restart",
        &Shape::Scalar(Kind::Word(&["never", "always"]), Scope::Parameters),
        "never",
        "Whether a replica that ends by itself under load is started again, at most five times in a trial, or ends the run.",
    ),
]));

static READY: Shape = Shape::Either(&[
    Shape::Scalar(Kind::Probe, Scope::Replica),
    Shape::Map(Map {
        fields: &[
            optional(
                "http",
                &Shape::Scalar(Kind::Request, Scope::Replica),
                "A request that must be answered with a status below 400.",
            ),
            optional("log", &REPLICA_TEXT, "A text that must appear in a line that the service prints."),
            default("timeout", &POSITIVE_DURATION, READY_TIMEOUT, "How long that may take."),
        ],
        together: Together::AtMostOne(&["http", "log"]),
        others: None,
    }),
]);

static STOP: Shape = Shape::Map(Map::of(&[
    default(
        "signal",
        &Shape::Scalar(Kind::Word(&["TERM", "INT", "QUIT", "HUP", "KILL"]), Scope::Parameters),
        "TERM",
        "The signal that asks it to end.",
    ),
    default("timeout", &DURATION, "10s", "How long it may take to end before it is killed."),
]));

/// The load.
pub(super) static LOAD: Shape = Shape::Map(Map::of(&[
    required(
        "target",
        &Shape::Scalar(Kind::Target, Scope::Literal),
        "A service of this file, or `http://host:port` of something that runs already.",
    ),
    default("warmup", &DURATION, "0s", "How long the first load level is held before anything counts."),
    default(
        "timeout",
        &POSITIVE_DURATION,
        "30s",
        "The longest wait for an answer, connecting included. What takes longer is an error.",
    ),
    default("drain", &DURATION, "30s", "How long after the load's end outstanding answers are waited for."),
    default("tracing", &TRACING, "true", "Whether requests carry a W3C `traceparent` header."),
    default(
        "connections",
        &Shape::Scalar(Kind::Word(&["keep-alive", "per-request"]), Scope::Parameters),
        "keep-alive",
        "Whether a connection carries a user's next request or is closed after each answer.",
    ),
    optional(
        "threads",
        &Shape::Scalar(Kind::Whole(1, 1024), Scope::Parameters),
        "Threads that send, at most as many as there are cores. Without it, Narrows chooses.",
    ),
    required(
        "scenarios",
        &Shape::Named(Named { what: "scenario", name: Kind::Name, value: &SCENARIO, least: 1, most: MANY }),
        "Populations of virtual users by name. All run at the same time.",
    ),
    optional(
        "data",
        &Shape::Named(Named { what: "data", name: Kind::Name, value: &DATA, least: 0, most: MANY }),
        "Values by name that `{{name}}` in requests draws from, one row for each request.",
    ),
]));

static TRACING: Shape = Shape::Either(&[
    Shape::Scalar(Kind::Boolean, Scope::Parameters),
    Shape::Map(Map::of(&[default(
        "sample",
        &Shape::Scalar(Kind::Share, Scope::Parameters),
        "1",
        "The share of requests whose trace is sampled, 0 to 1.",
    )])),
]);

static SCENARIO: Shape = Shape::Tagged(Tagged {
    tag: "model",
    doc: "How many virtual users there are, when.",
    common: &[
        required("request", &REQUEST, "What each user sends, again and again: `METHOD /path`, or a map."),
        default("think_time", &DURATION, "0s", "The pause between a user's answer and its next request."),
        optional(
            "pace",
            &POSITIVE_DURATION,
            "The least time from one send of a user to its next. Without it there is no limit.",
        ),
    ],
    cases: &[
        Case {
            value: "constant-vus",
            map: Map::of(&[
                required("vus", &USERS, "Virtual users."),
                required("duration", &POSITIVE_DURATION, "For how long, after the warm-up."),
            ]),
        },
        Case {
            value: "ramping-vus",
            map: Map {
                fields: &[
                    beside(
                        "start_vus",
                        &USERS_OR_NONE,
                        &["stages"],
                        "Virtual users at the beginning of `stages`. Without it, 1.",
                    ),
                    optional(
                        "stages",
                        &Shape::List { item: &STAGE, least: 1, most: 1000 },
                        "Stretches of time over which the number of users goes evenly to a target.",
                    ),
                    optional("steps", &STEPS, "Load levels of equal length, each some users above the one before."),
                ],
                together: Together::ExactlyOne(&["stages", "steps"]),
                others: None,
            },
        },
        Case {
            value: "shared-iterations",
            map: Map::of(&[
                required("vus", &USERS, "Virtual users."),
                required(
                    "iterations",
                    &Shape::Scalar(Kind::Whole(1, 1_000_000_000_000), Scope::Parameters),
                    "Requests of all users together.",
                ),
                optional(
                    "max_duration",
                    &POSITIVE_DURATION,
                    "When to stop even if requests are left. Without it there is no limit.",
                ),
            ]),
        },
    ],
});

static STAGE: Shape = Shape::Map(Map::of(&[
    required("duration", &POSITIVE_DURATION, "How long the stage takes."),
    required("target", &USERS_OR_NONE, "Virtual users at its end."),
]));

static STEPS: Shape = Shape::Map(Map::of(&[
    required("from", &USERS, "Virtual users of the first step."),
    required("add", &USERS, "Virtual users that each step adds."),
    required("every", &POSITIVE_DURATION, "How long each step takes."),
    required("to", &USERS, "Virtual users of the last step."),
]));

static REQUEST: Shape = Shape::Either(&[
    Shape::Scalar(Kind::Request, Scope::Trial),
    Shape::Map(Map {
        fields: &[
            default("method", &Shape::Scalar(Kind::Word(METHODS), Scope::Trial), "GET", "The method."),
            required("path", &Shape::Scalar(Kind::RequestPath, Scope::Trial), "Path and query."),
            optional(
                "headers",
                &Shape::Named(Named {
                    what: "header",
                    name: Kind::HeaderName,
                    value: &TRIAL_TEXT,
                    least: 0,
                    most: MANY,
                }),
                "Headers by name.",
            ),
            optional("body", &TRIAL_TEXT, "The body as text."),
            optional("json", &Shape::Json(Scope::Trial), "The body as YAML, which is sent as JSON."),
        ],
        together: Together::AtMostOne(&["body", "json"]),
        others: None,
    }),
]);

static DATA: Shape = Shape::Map(Map {
    fields: &[
        optional(
            "integers",
            &Shape::Map(Map::of(&[
                required("from", &INTEGER, "The smallest."),
                required("to", &INTEGER, "The largest."),
            ])),
            "Whole numbers, each as likely.",
        ),
        optional("values", &Shape::List { item: &TRIAL_TEXT, least: 1, most: usize::MAX }, "Values in place."),
        optional(
            "csv",
            &TRIAL_TEXT,
            "A CSV file whose first line names the columns, relative to the experiment file's folder.",
        ),
        beside(
            "pick",
            &Shape::Scalar(Kind::Word(&["random", "sequential"]), Scope::Parameters),
            &["values", "csv"],
            "Which of `values` or of the rows of `csv` comes next. Without it, `random`.",
        ),
    ],
    together: Together::ExactlyOne(&["integers", "values", "csv"]),
    others: None,
});
