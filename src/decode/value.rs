//! Values whose meaning is the producer's business: what stands in `extra_keys`.

use super::cursor::{Cursor, Head, Read};
use super::list::{Element, List, sealed};

/// One msgpack value, kept raw; containers are read as they are iterated over.
///
/// Equality is by value, not by encoding; floats are equal when their bits are.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Nil.
    Nil,
    /// A boolean.
    Bool(bool),
    /// An integer of any width and sign.
    Int(i128),
    /// A float; 32-bit ones are widened.
    Float(f64),
    /// Text.
    Text(&'a str),
    /// Text that is not UTF-8, as its bytes.
    BrokenText(&'a [u8]),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An extension: its type and its bytes.
    Ext(i8, &'a [u8]),
    /// An array.
    Array(List<'a, Value<'a>>),
    /// A map: keys and values, in wire order.
    Map(List<'a, (Value<'a>, Value<'a>)>),
}

/// `extra_keys` of a stored event: for every block nil, or a list of whatever else went into its hash.
pub type ExtraKeys<'a> = List<'a, Option<List<'a, Value<'a>>>>;

impl<'b> PartialEq<Value<'b>> for Value<'_> {
    fn eq(&self, other: &Value<'b>) -> bool {
        match (self, other) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
            (Value::Text(a), Value::Text(b)) => a == b,
            (Value::BrokenText(a), Value::BrokenText(b)) | (Value::Bytes(a), Value::Bytes(b)) => a == b,
            (Value::Ext(kind_a, a), Value::Ext(kind_b, b)) => kind_a == kind_b && a == b,
            (Value::Array(a), Value::Array(b)) => a == b,
            (Value::Map(a), Value::Map(b)) => a.len() == b.len() && a.iter().eq(b.iter()),
            _ => false,
        }
    }
}

impl Eq for Value<'_> {}

impl<'a> Element<'a> for Value<'a> {}

impl<'a> sealed::Element<'a> for Value<'a> {
    fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        Ok(match cursor.head()? {
            Head::Nil => Value::Nil,
            Head::Bool(value) => Value::Bool(value),
            Head::Uint(value) => Value::Int(i128::from(value)),
            Head::Negative(value) => Value::Int(i128::from(value)),
            Head::Float(value) => Value::Float(value),
            Head::Str(bytes) => std::str::from_utf8(bytes).map_or(Value::BrokenText(bytes), Value::Text),
            Head::Bin(bytes) => Value::Bytes(bytes),
            Head::Ext(kind, bytes) => Value::Ext(kind, bytes),
            Head::Array(len) => Value::Array(List::of_any(cursor, u64::from(len), len)?),
            Head::Map(len) => Value::Map(List::of_any(cursor, 2 * u64::from(len), len)?),
        })
    }
}

impl<'a> Element<'a> for (Value<'a>, Value<'a>) {}

impl<'a> sealed::Element<'a> for (Value<'a>, Value<'a>) {
    fn read(cursor: &mut Cursor<'a>) -> Read<Self> {
        Ok((Value::read(cursor)?, Value::read(cursor)?))
    }
}
