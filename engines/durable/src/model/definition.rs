//! Names of user code with the types that travel: constants that those who register and those who call share.
//!
//! A definition holds no code. The same constant stands where code is registered and where it is called, so that the
//! compiler sees to it that both agree on the types.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;

use crate::client::Start;
use crate::error::Error;
use crate::failure::Failure;
use crate::ids::{EntityId, Name};
use crate::payload::Payload;

macro_rules! definition {
    ($(#[$doc:meta])* $name:ident<$($parameter:ident),+>) => {
        $(#[$doc])*
        pub struct $name<$($parameter),+> {
            name: &'static str,
            types: PhantomData<fn($($parameter),+)>,
        }

        impl<$($parameter),+> $name<$($parameter),+> {
            /// Under this name, of 1 to 256 bytes.
            #[must_use]
            pub const fn new(name: &'static str) -> Self {
                Self { name, types: PhantomData }
            }

            /// The name.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                self.name
            }
        }

        impl<$($parameter),+> Clone for $name<$($parameter),+> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<$($parameter),+> Copy for $name<$($parameter),+> {}

        impl<$($parameter),+> fmt::Debug for $name<$($parameter),+> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({:?})", stringify!($name), self.name)
            }
        }
    };
}

definition! {
    /// An orchestration that takes an `I` and returns an `O`.
    ///
    /// ```
    /// use narrows_durable::Orchestration;
    ///
    /// const GREET_ALL: Orchestration<Vec<String>, usize> = Orchestration::new("GreetAll");
    /// let start = GREET_ALL.start(&vec!["Tokyo".to_owned()])?.id("greet-1")?;
    /// # let _ = start;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    Orchestration<I, O>
}

definition! {
    /// An activity that takes an `I` and returns an `O`.
    Activity<I, O>
}

definition! {
    /// An event from outside that brings a `T`.
    ExternalEvent<T>
}

definition! {
    /// A sort of entity whose state is an `S`.
    EntityType<S>
}

definition! {
    /// An operation of entities with the state `S`, which takes an `I` and returns an `O`.
    EntityOp<S, I, O>
}

impl<I: Serialize, O> Orchestration<I, O> {
    /// A request to start it, for [`Client::start`](crate::Client::start).
    ///
    /// # Errors
    /// A failure of kind `Payload` if the input cannot be written.
    pub fn start(&self, input: &I) -> Result<Start, Failure> {
        Ok(Start::new(Name::Static(self.name)).input(Payload::encode(input)?))
    }
}

impl<S> EntityType<S> {
    /// The entity of this sort with this key.
    ///
    /// # Errors
    /// [`Error::BadId`] if name and key are too long together or hold control characters.
    pub fn id(&self, key: impl AsRef<str>) -> Result<EntityId, Error> {
        EntityId::new(self.name, key.as_ref())
    }
}
