//! Meaning of a span's attributes: the one table of facts, from which the run file's columns and their reading follow.

use serde::{Deserialize, Serialize};

/// Declares the facts. A run file keeps them by their sections: texts, templates and codes once for all spans that have
/// them in common; counts and amounts with each span.
macro_rules! span_facts {
    (
        texts { $($(#[$text_doc:meta])* $text:ident,)* }
        templates { $($(#[$template_doc:meta])* $template:ident,)* }
        codes { $($(#[$code_doc:meta])* $code:ident: $code_type:ty,)* }
        counts { $($(#[$count_doc:meta])* $count:ident: $count_type:ty,)* }
        amounts { $($(#[$amount_doc:meta])* $amount:ident,)* }
    ) => {
        /// Meaning of a span's attributes, in the names of OpenTelemetry's stable semantic conventions.
        /// A field is `None` if no generation's attribute for it was there.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
        pub struct SpanFacts {
            $($(#[$text_doc])* pub $text: Option<String>,)*
            $($(#[$template_doc])* pub $template: Option<String>,)*
            $($(#[$code_doc])* pub $code: Option<$code_type>,)*
            $($(#[$count_doc])* pub $count: Option<$count_type>,)*
            $($(#[$amount_doc])* pub $amount: Option<f64>,)*
        }

        impl SpanFacts {
            /// The names of texts that many spans have in common.
            pub const TEXTS: [&str; 0 $(+ one!($text))*] = [$(stringify!($text)),*];
            /// The names of texts in which spans differ.
            pub const TEMPLATES: [&str; 0 $(+ one!($template))*] = [$(stringify!($template)),*];
            /// The names of numbers that many spans have in common.
            pub const CODES: [&str; 0 $(+ one!($code))*] = [$(stringify!($code)),*];
            /// The names of whole numbers in which spans differ.
            pub const COUNTS: [&str; 0 $(+ one!($count))*] = [$(stringify!($count)),*];
            /// The names of other numbers in which spans differ.
            pub const AMOUNTS: [&str; 0 $(+ one!($amount))*] = [$(stringify!($amount)),*];
            /// The facts as the columns of a table, each with its type, with spaces between them.
            pub const COLUMNS: &str = concat!(
                $(stringify!($text), ":string ",)*
                $(stringify!($template), ":string ",)*
                $(stringify!($code), ":long ",)*
                $(stringify!($count), ":long ",)*
                $(stringify!($amount), ":real ",)*
            );

            /// The texts, in the order of [`Self::TEXTS`].
            pub fn texts(&self) -> [Option<&str>; Self::TEXTS.len()] {
                [$(self.$text.as_deref()),*]
            }

            /// The texts, in the order of [`Self::TEXTS`].
            pub fn texts_mut(&mut self) -> [&mut Option<String>; Self::TEXTS.len()] {
                [$(&mut self.$text),*]
            }

            /// The texts, in the order of [`Self::TEMPLATES`].
            pub fn templates(&self) -> [Option<&str>; Self::TEMPLATES.len()] {
                [$(self.$template.as_deref()),*]
            }

            /// The texts, in the order of [`Self::TEMPLATES`].
            pub fn templates_mut(&mut self) -> [&mut Option<String>; Self::TEMPLATES.len()] {
                [$(&mut self.$template),*]
            }

            /// The numbers, in the order of [`Self::CODES`].
            pub fn codes(&self) -> [Option<u32>; Self::CODES.len()] {
                [$(self.$code.map(u32::from)),*]
            }

            /// Sets the numbers, given in the order of [`Self::CODES`]. One beyond its fact's range counts as absent.
            pub fn set_codes(&mut self, codes: [Option<u32>; Self::CODES.len()]) {
                let [$($code),*] = codes;
                $(self.$code = $code.and_then(|code| code.try_into().ok());)*
            }

            /// The numbers, in the order of [`Self::COUNTS`].
            pub fn counts(&self) -> [Option<u64>; Self::COUNTS.len()] {
                [$(self.$count.map(u64::from)),*]
            }

            /// Sets the numbers, given in the order of [`Self::COUNTS`]. One beyond its fact's range counts as absent.
            pub fn set_counts(&mut self, counts: [Option<u64>; Self::COUNTS.len()]) {
                let [$($count),*] = counts;
                $(self.$count = $count.and_then(|count| count.try_into().ok());)*
            }

            /// The numbers, in the order of [`Self::AMOUNTS`].
            pub fn amounts(&self) -> [Option<f64>; Self::AMOUNTS.len()] {
                [$(self.$amount),*]
            }

            /// The numbers, in the order of [`Self::AMOUNTS`].
            pub fn amounts_mut(&mut self) -> [&mut Option<f64>; Self::AMOUNTS.len()] {
                [$(&mut self.$amount),*]
            }
        }
    };
}

/// Counts a name.
macro_rules! one {
    ($name:ident) => {
        1
    };
}

span_facts! {
    texts {
        /// `http.request.method`.
        http_method,
        /// `http.route`.
        http_route,
        /// `db.system.name`.
        db_system,
        /// `db.namespace`.
        db_namespace,
        /// `db.operation.name`.
        db_operation,
        /// `db.response.status_code`.
        db_status,
        /// The physical partition that the call went to. No convention has it yet: `db.partition.id`.
        db_partition,
        /// `server.address`.
        server_address,
        /// `error.type`.
        error_type,
        /// `rpc.system.name`, such as `grpc`.
        rpc_system,
        /// The called service with its package, such as `shop.v1.Cart`.
        rpc_service,
        /// The called method without its service, such as `AddItem`.
        rpc_method,
        /// `rpc.response.status_code`; gRPC's as its name, such as `DEADLINE_EXCEEDED`.
        rpc_status,
        /// `messaging.system`, such as `kafka`.
        messaging_system,
        /// `messaging.operation.type`: `create`, `send`, `receive`, `process` or `settle`.
        messaging_operation,
        /// The table, collection or container: `db.collection.name`.
        db_collection,
        /// The caller's name of the other side: `service.peer.name`.
        peer_service,
        /// `url.template` of an HTTP client.
        url_template,
    }
    templates {
        /// `url.full`, or path and query of a server span; without secrets' values.
        url,
        /// `db.query.text`.
        db_query,
        /// `messaging.destination.name`: the queue or topic.
        messaging_destination,
    }
    codes {
        /// `http.response.status_code`.
        http_status: u16,
        /// Details of the status: `azure.cosmosdb.response.sub_status_code`.
        db_sub_status: u32,
        /// The number of this attempt among those of one call, 1 for the first repetition: `http.request.resend_count`.
        resend_count: u32,
        /// `server.port`.
        server_port: u16,
    }
    counts {
        /// Rows or documents that came back: `db.response.returned_rows`.
        db_rows: u64,
        /// The wait before the next attempt that the response requires: `http.response.header.retry-after` (seconds)
        /// or `http.response.header.x-ms-retry-after-ms`, in nanoseconds.
        retry_after_ns: u64,
        /// How many messages or statements went together: `messaging.batch.message_count` or `db.operation.batch.size`.
        batch_size: u32,
    }
    amounts {
        /// Request units that the call was charged: `azure.cosmosdb.operation.request_charge`.
        db_charge,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_back_in_their_order_and_range() {
        let mut facts = SpanFacts {
            http_status: Some(200),
            db_rows: Some(u64::MAX),
            db_charge: Some(2.5),
            url: Some("/".into()),
            ..SpanFacts::default()
        };
        let mut read = SpanFacts::default();
        read.set_codes(facts.codes());
        read.set_counts(facts.counts());
        read.amounts_mut().into_iter().zip(facts.amounts()).for_each(|(to, from)| *to = from);
        read.templates_mut().into_iter().zip(facts.templates_mut()).for_each(|(to, from)| to.clone_from(from));
        assert_eq!(read, facts);
        read.set_codes([Some(70_000); SpanFacts::CODES.len()]);
        assert_eq!((read.http_status, read.resend_count), (None, Some(70_000)));
        assert!(SpanFacts::COLUMNS.starts_with("http_method:string "), "{}", SpanFacts::COLUMNS);
    }
}
