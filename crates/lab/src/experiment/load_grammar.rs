//! The part of the experiment file that says what to send, described as `grammar.rs` describes the rest.

use narrows_load::REDIRECTS_MAX;

use super::grammar::{DURATION, MANY, POSITIVE_DURATION, beside, default, optional, required};
use super::kind::Kind;
use super::request::METHODS;
use super::shape::{Case, Field, Given, Map, Named, Rule, Scope, Shape, Tagged, Written, key};

/// Most virtual users of a scenario.
const VUS_MAX: u64 = 100_000;

/// Most stages or items of other lists that programs may write.
const LISTED_MAX: usize = 1000;

static INTEGER: Shape = Shape::Scalar(Kind::Integer, Scope::Parameters);
static LITERAL: Shape = Shape::Scalar(Kind::Text, Scope::Literal);
static PARAMETER_TEXT: Shape = Shape::Scalar(Kind::Text, Scope::Parameters);
static TRIAL_TEXT: Shape = Shape::Scalar(Kind::Text, Scope::Trial);
static USERS: Shape = Shape::Scalar(Kind::Whole(1, VUS_MAX), Scope::Parameters);
static USERS_OR_NONE: Shape = Shape::Scalar(Kind::Whole(0, VUS_MAX), Scope::Parameters);
static ITERATIONS: Shape = Shape::Scalar(Kind::Whole(1, 1_000_000_000_000), Scope::Parameters);
static RATE: Shape = Shape::Scalar(Kind::Rate, Scope::Parameters);
static RATE_OR_NONE: Shape = Shape::Scalar(Kind::RateOrNone, Scope::Parameters);

/// The load.
pub(super) static LOAD: Shape = Shape::Map(Map {
    fields: &[
        optional(
            "target",
            &Shape::Scalar(Kind::Target, Scope::Literal),
            "A service of this file, or `http://host:port` or `https://host:port` of a system that already runs.",
        ),
        default(
            "protocol",
            &Shape::Scalar(Kind::Word(&["http1", "http2"]), Scope::Parameters),
            "http1",
            "The protocol: HTTP/1.1, or HTTP/2 (without TLS by prior knowledge).",
        ),
        optional("tls", &TLS, "How the connection is encrypted and what is verified."),
        optional(
            "client_addresses",
            &Shape::List { item: &Shape::Scalar(Kind::Addresses, Scope::Parameters), least: 1, most: LISTED_MAX },
            "The addresses to connect from, which users take in turn: single ones, `FIRST-LAST` or `ADDRESS/BITS`.",
        ),
        default("warmup", &DURATION, "0s", "How long the first load level is held before anything counts."),
        default(
            "timeout",
            &POSITIVE_DURATION,
            "30s",
            "The timeout of a request, connecting included. A longer request is an error.",
        ),
        default("drain", &DURATION, "30s", "How long to wait for outstanding responses after the load's end."),
        default("tracing", &TRACING, "true", "Whether requests carry a W3C `traceparent` header."),
        default(
            "connections",
            &Shape::Scalar(Kind::Word(&["keep-alive", "per-request"]), Scope::Parameters),
            "keep-alive",
            "Whether a connection carries a user's next request or is closed after each response.",
        ),
        optional(
            "threads",
            &Shape::Scalar(Kind::Whole(1, 1024), Scope::Parameters),
            "Threads that send, at most as many as there are cores. Without it, Narrows chooses.",
        ),
        optional(
            "scenarios",
            &Shape::Named(Named { what: "scenario", name: Kind::Name, value: &SCENARIO, least: 1, most: MANY }),
            "Populations of virtual users by name. All run at the same time.",
        ),
        optional(
            "data",
            &Shape::Named(Named { what: "data", name: Kind::Name, value: &DATA, least: 0, most: MANY }),
            "Values by name that `{{name}}` in requests draws from, one row for each iteration.",
        ),
        optional(
            "command",
            &Shape::Arguments(Scope::Trial),
            "A program that makes the load instead, and its arguments, as a list. It does not run in a shell.",
        ),
        optional(
            "env",
            &Shape::Named(Named {
                what: "environment variable",
                name: Kind::EnvironmentName,
                value: &TRIAL_TEXT,
                least: 0,
                most: 1000,
            }),
            "Environment variables of `command`, beside those that Narrows sets and inherits.",
        ),
        optional(
            "cwd",
            &TRIAL_TEXT,
            "The folder that `command` is started in, relative to the experiment file's folder, which it is without this.",
        ),
        optional(
            "results",
            &Shape::Scalar(Kind::Word(&["k6-summary", "trace-roots"]), Scope::Literal),
            "Where the figures of `command` come from. Without it, `k6-summary` when the program is `k6`, else `trace-roots`.",
        ),
        optional(
            "duration",
            &POSITIVE_DURATION,
            "How long `command` may run before it is ended. Without it, there is no limit.",
        ),
    ],
    rules: &[
        Rule::ExactlyOne(&[key("scenarios"), key("command")]),
        Rule::Needs("scenarios", "target"),
        Rule::OnlyBeside(&["env", "cwd", "results", "duration"], "command"),
        Rule::OnlyBeside(
            &[
                "protocol",
                "tls",
                "client_addresses",
                "warmup",
                "timeout",
                "drain",
                "tracing",
                "connections",
                "threads",
                "data",
            ],
            "scenarios",
        ),
    ],
    others: None,
});

static TLS: Shape = Shape::Map(Map {
    fields: &[
        optional(
            "insecure",
            &Shape::Scalar(Kind::Boolean, Scope::Parameters),
            "Whether any certificate is accepted. Without it, no.",
        ),
        optional(
            "ca",
            &PARAMETER_TEXT,
            "A PEM file with the only authorities to trust, relative to the experiment file's folder. Without it, those of the system.",
        ),
        optional(
            "server_name",
            &Shape::Scalar(Kind::ServerName, Scope::Parameters),
            "The server name that is sent (SNI) and verified. Without it, the target's host.",
        ),
    ],
    rules: &[Rule::AtMostOne([key("insecure"), key("ca")])],
    others: None,
});

static TRACING: Shape = Shape::Either(&[
    Shape::Scalar(Kind::Boolean, Scope::Parameters),
    Shape::Map(Map::of(&[default(
        "sample",
        &Shape::Scalar(Kind::Share, Scope::Parameters),
        "1",
        "The share of requests whose trace is sampled, 0 to 1.",
    )])),
]);

static STEP_LIST: Shape = Shape::List { item: &STEP, least: 1, most: MANY };

/// The steps of a flow. `steps` as a map is another spelling of `levels`.
const STEPS: Field = optional("steps", &STEP_LIST, "The requests of an iteration, one after the other.");

static USER_STEPS_SHAPE: Shape =
    Shape::Either(&[Shape::List { item: &STEP, least: 1, most: MANY }, Shape::Map(Map::of(USER_LEVELS))]);

const USER_STEPS: Field = optional(
    "steps",
    &USER_STEPS_SHAPE,
    "A list: the requests of an iteration, one after the other. A map: the same as `levels`.",
);

static RATE_STEPS_SHAPE: Shape =
    Shape::Either(&[Shape::List { item: &STEP, least: 1, most: MANY }, Shape::Map(Map::of(RATE_LEVELS))]);

const RATE_STEPS: Field = optional(
    "steps",
    &RATE_STEPS_SHAPE,
    "A list: the requests of an iteration, one after the other. A map: the same as `levels`.",
);

const STEPS_AS_LIST: Given = Given { key: "steps", written: Written::AsList };
const STEPS_AS_MAP: Given = Given { key: "steps", written: Written::AsMap };

const PACE: Field = optional(
    "pace",
    &POSITIVE_DURATION,
    "The least time between the beginnings of two iterations of a user. Without it there is no limit.",
);

const VUS: Field = required("vus", &USERS, "Virtual users.");
const MAX_DURATION: Field = optional(
    "max_duration",
    &POSITIVE_DURATION,
    "When to stop even if iterations are left. Without it there is no limit.",
);
const MAX_VUS: Field = default(
    "max_vus",
    &USERS,
    "1000",
    "The most virtual users, and so connections, at a time. What arrives when all are busy waits and counts as late.",
);
const ARRIVALS: Field = default(
    "arrivals",
    &Shape::Scalar(Kind::Word(&["uniform", "poisson"]), Scope::Parameters),
    "uniform",
    "How arrivals are spaced: evenly, or at random as those of many independent clients.",
);

const CHECK_BESIDE: Field =
    beside("check", &CHECKS, &["request"], "What the response to `request` must look like to count as a success.");
const REDIRECTS_BESIDE: Field =
    beside("redirects", &REDIRECTS, &["request"], "How many redirects are followed at most. Without it, none.");

static SCENARIO: Shape = Shape::Tagged(Tagged {
    tag: "model",
    doc: "How many virtual users there are, or how often iterations begin, when.",
    common: &[
        optional("request", &REQUEST, "The request that is sent repeatedly: `METHOD /path`, or a map."),
        CHECK_BESIDE,
        REDIRECTS_BESIDE,
        optional(
            "mix",
            &Shape::Named(Named { what: "flow", name: Kind::Name, value: &FLOW, least: 1, most: MANY }),
            "Flows by name. Each iteration draws one by weight.",
        ),
        optional(
            "cookies",
            &Shape::Scalar(Kind::Word(&["none", "per-iteration", "per-user"]), Scope::Parameters),
            "How long cookies are kept. Without it, `per-iteration` where there are several steps, else `none`.",
        ),
        default("think_time", &DURATION, "0s", "The pause between a response to a user and its next request."),
        optional(
            "when",
            &Shape::Named(Named { what: "parameter", name: Kind::Name, value: &LITERAL, least: 1, most: MANY }),
            "Parameters and the values they must have for the scenario to take part in a variant. Without it, it always does.",
        ),
    ],
    rules: &[Rule::ExactlyOne(&[key("request"), STEPS_AS_LIST, key("mix")])],
    cases: &[
        Case {
            value: "constant-vus",
            map: Map::of(&[
                VUS,
                required("duration", &POSITIVE_DURATION, "For how long, after the warm-up."),
                PACE,
                STEPS,
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
                        &Shape::List { item: &STAGE, least: 1, most: LISTED_MAX },
                        "Intervals of time over which the number of users goes evenly to a target.",
                    ),
                    optional(
                        "levels",
                        &Shape::Map(Map::of(USER_LEVELS)),
                        "Load levels of equal length, each some users above the one before.",
                    ),
                    PACE,
                    USER_STEPS,
                ],
                rules: &[Rule::ExactlyOne(&[key("stages"), key("levels"), STEPS_AS_MAP])],
                others: None,
            },
        },
        Case {
            value: "shared-iterations",
            map: Map::of(&[
                VUS,
                required("iterations", &ITERATIONS, "Iterations of all users together."),
                MAX_DURATION,
                PACE,
                STEPS,
            ]),
        },
        Case {
            value: "per-vu-iterations",
            map: Map::of(&[
                VUS,
                required("iterations", &ITERATIONS, "Iterations of each user."),
                MAX_DURATION,
                PACE,
                STEPS,
            ]),
        },
        Case {
            value: "constant-arrival-rate",
            map: Map::of(&[
                required("rate", &RATE, "Iterations to begin: a number per second, or `500/s`, `30/min`, `1000/h`."),
                required("duration", &POSITIVE_DURATION, "For how long, after the warm-up."),
                MAX_VUS,
                ARRIVALS,
                STEPS,
            ]),
        },
        Case {
            value: "ramping-arrival-rate",
            map: Map {
                fields: &[
                    beside(
                        "start_rate",
                        &RATE_OR_NONE,
                        &["stages"],
                        "The rate at the beginning of `stages`. Without it, 0.",
                    ),
                    optional(
                        "stages",
                        &Shape::List { item: &RATE_STAGE, least: 1, most: LISTED_MAX },
                        "Intervals of time over which the rate goes evenly to a target.",
                    ),
                    optional(
                        "levels",
                        &Shape::Map(Map::of(RATE_LEVELS)),
                        "Load levels of equal length, each some rate above the one before.",
                    ),
                    MAX_VUS,
                    ARRIVALS,
                    RATE_STEPS,
                ],
                rules: &[Rule::ExactlyOne(&[key("stages"), key("levels"), STEPS_AS_MAP])],
                others: None,
            },
        },
    ],
});

static STAGE: Shape = Shape::Map(Map::of(&[
    required("duration", &POSITIVE_DURATION, "How long the stage takes."),
    required("target", &USERS_OR_NONE, "Virtual users at its end."),
]));

static RATE_STAGE: Shape = Shape::Map(Map::of(&[
    required("duration", &POSITIVE_DURATION, "How long the stage takes."),
    required("target", &RATE_OR_NONE, "The rate at its end."),
]));

const USER_LEVELS: &[Field] = &[
    required("from", &USERS, "Virtual users of the first level."),
    required("add", &USERS, "Virtual users that each level adds."),
    required("every", &POSITIVE_DURATION, "How long each level takes."),
    required("to", &USERS, "Virtual users of the last level."),
];

const RATE_LEVELS: &[Field] = &[
    required("from", &RATE, "The rate of the first level."),
    required("add", &RATE, "The rate that each level adds."),
    required("every", &POSITIVE_DURATION, "How long each level takes."),
    required("to", &RATE, "The rate of the last level."),
];

static FLOW: Shape = Shape::Map(Map {
    fields: &[
        default(
            "weight",
            &Shape::Scalar(Kind::Weight, Scope::Parameters),
            "1",
            "How often it is drawn, against the weights of the other flows.",
        ),
        optional("request", &REQUEST, "The one request of the flow."),
        CHECK_BESIDE,
        REDIRECTS_BESIDE,
        STEPS,
    ],
    rules: &[Rule::ExactlyOne(&[key("request"), key("steps")])],
    others: None,
});

static STEP: Shape = Shape::Map(Map::of(&[
    required("name", &Shape::Scalar(Kind::Name, Scope::Literal), "Its name, unlike any other of the scenario's steps."),
    required("request", &REQUEST, "What is sent."),
    optional(
        "check",
        &CHECKS,
        "What the response must look like to count as a success. Without a check of the status, it must be below 400.",
    ),
    optional(
        "extract",
        &Shape::Named(Named { what: "variable", name: Kind::Name, value: &EXTRACT, least: 0, most: MANY }),
        "Values of the response by the name under which later steps of the flow use them as `{{name}}`.",
    ),
    optional("think_time", &DURATION, "The pause after it, instead of the scenario's."),
    optional("redirects", &REDIRECTS, "How many redirects are followed at most. Without it, none."),
]));

static REDIRECTS: Shape = Shape::Scalar(Kind::Whole(0, REDIRECTS_MAX as u64), Scope::Parameters);

static CHECKS: Shape = Shape::Either(&[
    Shape::Map(Map::of(CHECK)),
    Shape::List { item: &Shape::Map(Map::of(CHECK)), least: 0, most: MANY },
]);

const CHECK: &[Field] = &[
    optional(
        "status",
        &Shape::Either(&[
            Shape::Scalar(Kind::Status, Scope::Parameters),
            Shape::List { item: &Shape::Scalar(Kind::Status, Scope::Parameters), least: 1, most: MANY },
        ]),
        "The status, or a list of those allowed: 200, `2xx`, `200-299`.",
    ),
    optional("body_contains", &TRIAL_TEXT, "A text that the body holds."),
    optional(
        "header",
        &Shape::Named(Named {
            what: "header",
            name: Kind::AnswerHeader,
            value: &Shape::Scalar(Kind::TextOrNothing, Scope::Trial),
            least: 1,
            most: MANY,
        }),
        "Headers by name, each with its whole value, or nothing when any will do.",
    ),
    optional(
        "json",
        &Shape::Named(Named {
            what: "place",
            name: Kind::JsonPointer,
            value: &Shape::Json(Scope::Trial),
            least: 1,
            most: MANY,
        }),
        "Values in a JSON body by place (an RFC 6901 JSON pointer), or nothing when any will do.",
    ),
];

static EXTRACT: Shape = Shape::Map(Map {
    fields: &[
        optional(
            "json",
            &Shape::Scalar(Kind::JsonPointer, Scope::Literal),
            "A place in a JSON body (an RFC 6901 JSON pointer).",
        ),
        optional("header", &Shape::Scalar(Kind::AnswerHeader, Scope::Literal), "The first header of this name."),
        optional(
            "regex",
            &Shape::Scalar(Kind::Pattern, Scope::Literal),
            "A regular expression; its first group, or all of its match when it has none.",
        ),
    ],
    rules: &[Rule::ExactlyOne(&[key("json"), key("header"), key("regex")])],
    others: None,
});

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
        rules: &[Rule::AtMostOne([key("body"), key("json")])],
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
        optional(
            "json",
            &TRIAL_TEXT,
            "A JSON file with an array of objects or of single values, relative to the experiment file's folder.",
        ),
        beside(
            "pick",
            &Shape::Scalar(Kind::Word(&["random", "sequential", "once"]), Scope::Parameters),
            &["values", "csv", "json"],
            "Which of `values` or of the rows of a file comes next. Without it, `random`. With `once`, each comes once, then the load of those who draw from it ends.",
        ),
    ],
    rules: &[Rule::ExactlyOne(&[key("integers"), key("values"), key("csv"), key("json")])],
    others: None,
});
