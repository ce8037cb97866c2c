//! The client with types: values are written and read by the definitions that the code was registered with.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::client::{Client, InstanceView};
use crate::error::Error;
use crate::failure::Failure;
use crate::ids::{EntityId, InstanceId, Time};
use crate::model::definition::{EntityOp, EntityType, ExternalEvent, Orchestration};
use crate::payload::Payload;

impl Client {
    /// Starts an orchestration, waits for its end and gives its output.
    ///
    /// # Errors
    /// [`Error::Failed`] if it failed or was terminated, or a value does not fit; [`Error::TimedOut`] after
    /// `timeout`, whereupon it goes on; what [`Client::start`] and [`Client::wait`] say.
    pub async fn run<I: Serialize, O: DeserializeOwned>(
        &self,
        code: Orchestration<I, O>,
        input: &I,
        timeout: Duration,
    ) -> Result<O, Error> {
        let id = self.start(code.start(input)?).await?;
        match self.wait(&id, timeout).await?.output {
            Some(output) => Ok(output?.decode()?),
            None => Err(Error::NotFound(id)),
        }
    }

    /// Raises an external event, as [`Client::raise`] does.
    ///
    /// # Errors
    /// [`Error::Failed`] if the value cannot be written; what [`Client::raise`] says.
    pub async fn raise_event<T: Serialize>(
        &self,
        id: &InstanceId,
        event: ExternalEvent<T>,
        value: &T,
    ) -> Result<(), Error> {
        self.raise(id, event.name(), Payload::encode(value)?).await
    }

    /// Signals an entity, as [`Client::signal`] does.
    ///
    /// # Errors
    /// [`Error::Failed`] if the input cannot be written; what [`Client::signal`] says.
    pub async fn signal_entity<S, I: Serialize, O>(
        &self,
        entity: &EntityId,
        operation: EntityOp<S, I, O>,
        input: &I,
    ) -> Result<(), Error> {
        self.signal(entity, operation.name(), Payload::encode(input)?).await
    }

    /// Signals an entity for a moment to come, as [`Client::signal_at`] does.
    ///
    /// # Errors
    /// [`Error::Failed`] if the input cannot be written; what [`Client::signal`] says.
    pub async fn signal_entity_at<S, I: Serialize, O>(
        &self,
        entity: &EntityId,
        operation: EntityOp<S, I, O>,
        input: &I,
        at: Time,
    ) -> Result<(), Error> {
        self.signal_at(entity, operation.name(), Payload::encode(input)?, at).await
    }

    /// The state of an entity; `None` if it has none.
    ///
    /// # Errors
    /// [`Error::BadId`] if the entity is of another sort; [`Error::Failed`] if the state cannot be read; what
    /// [`Client::entity_state`] says.
    pub async fn state_of<S: DeserializeOwned>(
        &self,
        sort: EntityType<S>,
        entity: &EntityId,
    ) -> Result<Option<S>, Error> {
        if entity.name() != sort.name() {
            return Err(Error::bad_id(&entity.to_string(), "an entity of the requested sort"));
        }
        let state = self.entity_state(entity).await?;
        Ok(state.map(|state| state.decode()).transpose()?)
    }
}

impl InstanceView {
    /// Return value, if it has ended and values were requested.
    ///
    /// # Errors
    /// How it failed, or a failure of kind `Payload` if it returned something else.
    pub fn output_as<O: DeserializeOwned>(&self) -> Option<Result<O, Failure>> {
        Some(match self.output.as_ref()? {
            Ok(output) => output.decode(),
            Err(failure) => Err(failure.clone()),
        })
    }

    /// Input, or the state of an entity.
    ///
    /// # Errors
    /// A failure of kind `Payload` if it is something else, also where values were not requested.
    pub fn input_as<I: DeserializeOwned>(&self) -> Result<I, Failure> {
        self.input.decode()
    }

    /// The status that it has set itself, if it has and values were requested.
    ///
    /// # Errors
    /// A failure of kind `Payload` if it is something else.
    pub fn custom_status_as<T: DeserializeOwned>(&self) -> Option<Result<T, Failure>> {
        self.custom_status.as_ref().map(Payload::decode)
    }
}
