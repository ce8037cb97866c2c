//! Attributes and their values.

use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList, any_value,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use serde_json::Value;

use super::fields::{Fields, FromJson, Mistake, base64, boolean, double, signed, text};

impl FromJson for Resource {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        Ok(Self { attributes: fields.list("attributes")?, ..Self::default() })
    }
}

impl FromJson for InstrumentationScope {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        Ok(Self { name: fields.text("name")?, ..Self::default() })
    }
}

impl FromJson for KeyValue {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        let mut fields = Fields::from_value(value)?;
        Ok(Self { key: fields.text("key")?, value: fields.message("value")?, ..Self::default() })
    }
}

impl FromJson for AnyValue {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        use any_value::Value as Any;
        if value.is_null() {
            return Ok(Self::default());
        }
        let mut fields = Fields::from_value(value)?;
        let found = [
            fields.read("stringValue", text)?.map(Any::StringValue),
            fields.read("boolValue", boolean)?.map(Any::BoolValue),
            fields.read("intValue", signed)?.map(Any::IntValue),
            fields.read("doubleValue", double)?.map(Any::DoubleValue),
            fields.message("arrayValue")?.map(Any::ArrayValue),
            fields.message("kvlistValue")?.map(Any::KvlistValue),
            fields.read("bytesValue", bytes)?.map(Any::BytesValue),
        ];
        Ok(Self { value: found.into_iter().flatten().next() })
    }
}

impl FromJson for ArrayValue {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        Ok(Self { values: Fields::from_value(value)?.list("values")? })
    }
}

impl FromJson for KeyValueList {
    fn from_json(value: Value) -> Result<Self, Mistake> {
        Ok(Self { values: Fields::from_value(value)?.list("values")? })
    }
}

fn bytes(value: Value) -> Result<Vec<u8>, Mistake> {
    value.as_str().and_then(base64).ok_or_else(|| Mistake::new("base64", &value))
}
