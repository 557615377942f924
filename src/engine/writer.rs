//! Writes values through `rmp`, refusing what msgpack or its readers cannot take.

use rmp::encode::{self, ByteBuf};

use super::error::EncodeError;
use crate::decode::{
    BlockHash, Element, List, ListRepr, MixedTokenIds, MmInfo, MmObject, Timestamp, Token, TokenIds, TokenRepr, Value,
};

pub(super) type Written = Result<(), EncodeError>;

pub(super) struct Writer(ByteBuf);

impl Writer {
    pub(super) fn new(vec: Vec<u8>) -> Self {
        Writer(ByteBuf::from_vec(vec))
    }

    pub(super) fn into_vec(self) -> Vec<u8> {
        self.0.into_vec()
    }

    pub(super) fn nil(&mut self) {
        let Ok(()) = encode::write_nil(&mut self.0);
    }

    pub(super) fn uint(&mut self, value: u64) {
        let Ok(_) = encode::write_uint(&mut self.0, value);
    }

    pub(super) fn integer(&mut self, value: i128) -> Written {
        match (u64::try_from(value), i64::try_from(value)) {
            (Ok(value), _) => self.uint(value),
            (_, Ok(value)) => {
                let Ok(_) = encode::write_sint(&mut self.0, value);
            }
            _ => return Err(EncodeError::IntegerRange),
        }
        Ok(())
    }

    pub(super) fn float(&mut self, value: f64) {
        let Ok(()) = encode::write_f64(&mut self.0, value);
    }

    pub(super) fn timestamp(&mut self, timestamp: Timestamp) -> Written {
        match timestamp {
            Timestamp::Int(value) => self.integer(value)?,
            Timestamp::Float(value) if value.is_finite() => self.float(value),
            Timestamp::Float(_) => return Err(EncodeError::NotFinite),
        }
        Ok(())
    }

    pub(super) fn text(&mut self, text: &str) -> Written {
        self.raw_text(text.as_bytes())
    }

    fn raw_text(&mut self, bytes: &[u8]) -> Written {
        let Ok(_) = encode::write_str_len(&mut self.0, len32(bytes.len())?);
        self.raw(bytes);
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8]) -> Written {
        let Ok(_) = encode::write_bin_len(&mut self.0, len32(bytes.len())?);
        self.raw(bytes);
        Ok(())
    }

    pub(super) fn array(&mut self, len: usize) -> Written {
        let Ok(_) = encode::write_array_len(&mut self.0, len32(len)?);
        Ok(())
    }

    pub(super) fn map(&mut self, len: usize) -> Written {
        let Ok(_) = encode::write_map_len(&mut self.0, len32(len)?);
        Ok(())
    }

    /// Bytes that are encoded already.
    fn raw(&mut self, encoded: &[u8]) {
        self.0.as_mut_vec().extend_from_slice(encoded);
    }

    pub(super) fn hash(&mut self, hash: BlockHash<'_>) -> Written {
        match hash {
            BlockHash::Int(value) => {
                self.uint(value);
                Ok(())
            }
            BlockHash::Negative(value) => self.integer(value.into()),
            BlockHash::Bytes([]) => Err(EncodeError::EmptyHash),
            BlockHash::Bytes(bytes) => self.bytes(bytes),
        }
    }

    pub(super) fn hashes<'a>(&mut self, hashes: List<'a, BlockHash<'a>>) -> Written {
        self.list(hashes, |writer, hash| writer.hash(hash))
    }

    /// A list: as it came, if it came from the wire.
    fn list<'a, T: Element<'a>>(
        &mut self,
        list: List<'a, T>,
        mut element: impl FnMut(&mut Self, T) -> Written,
    ) -> Written {
        self.array(list.len())?;
        self.elements(list, &mut element)
    }

    fn elements<'a, T: Element<'a>>(
        &mut self,
        list: List<'a, T>,
        element: &mut impl FnMut(&mut Self, T) -> Written,
    ) -> Written {
        match list.repr() {
            ListRepr::Wire { bytes, .. } => {
                self.raw(bytes);
                Ok(())
            }
            ListRepr::Slice(slice) => slice.iter().try_for_each(|item| element(self, *item)),
        }
    }

    pub(super) fn tokens(&mut self, tokens: TokenIds<'_>) -> Written {
        match tokens.repr() {
            TokenRepr::Wire { len, bytes } | TokenRepr::WirePairs { len, bytes } => {
                self.array(len as usize)?;
                self.raw(bytes);
            }
            TokenRepr::Slice(slice) => {
                self.array(slice.len())?;
                slice.iter().for_each(|token| self.uint(u64::from(*token)));
            }
            TokenRepr::Pairs(pairs) => {
                self.array(pairs.len())?;
                for (first, second) in pairs {
                    self.array(2)?;
                    self.uint(u64::from(*first));
                    self.uint(u64::from(*second));
                }
            }
        }
        Ok(())
    }

    pub(super) fn mixed_tokens(&mut self, tokens: MixedTokenIds<'_>) -> Written {
        self.list(tokens, |writer, token| match token {
            Token::Id(id) => {
                writer.uint(id.into());
                Ok(())
            }
            Token::Text(text) => writer.text(text),
        })
    }

    pub(super) fn extra_keys<'a>(&mut self, keys: List<'a, Option<List<'a, Value<'a>>>>) -> Written {
        self.list(keys, |writer, block| match block {
            Some(values) => writer.list(values, |writer, value| writer.value(value, 0)),
            None => {
                writer.nil();
                Ok(())
            }
        })
    }

    pub(super) fn value(&mut self, value: Value<'_>, depth: usize) -> Written {
        if depth > crate::decode::MAX_DEPTH {
            return Err(EncodeError::TooDeep);
        }
        match value {
            Value::Nil => self.nil(),
            Value::Bool(value) => {
                let Ok(()) = encode::write_bool(&mut self.0, value);
            }
            Value::Int(value) => self.integer(value)?,
            Value::Float(value) => self.float(value),
            Value::Text(text) => self.text(text)?,
            Value::BrokenText(bytes) => self.raw_text(bytes)?,
            Value::Bytes(bytes) => self.bytes(bytes)?,
            Value::Ext(kind, bytes) => {
                let Ok(_) = encode::write_ext_meta(&mut self.0, len32(bytes.len())?, kind);
                self.raw(bytes);
            }
            Value::Array(list) => self.list(list, |writer, item| writer.value(item, depth + 1))?,
            Value::Map(entries) => {
                self.map(entries.len())?;
                self.elements(entries, &mut |writer: &mut Self, (key, value)| {
                    writer.value(key, depth + 1)?;
                    writer.value(value, depth + 1)
                })?;
            }
        }
        Ok(())
    }

    pub(super) fn mm_infos<'a>(&mut self, infos: List<'a, Option<MmInfo<'a>>>) -> Written {
        self.list(infos, |writer, info| match info {
            Some(info) => {
                writer.map(1)?;
                writer.text("mm_objects")?;
                writer.list(info.objects, Writer::mm_object)
            }
            None => {
                writer.nil();
                Ok(())
            }
        })
    }

    fn mm_object(&mut self, object: MmObject<'_>) -> Written {
        self.map(2)?;
        self.text("mm_hash")?;
        self.hash(object.hash)?;
        self.text("offsets")?;
        self.list(object.offsets, |writer, (start, end)| {
            writer.array(2)?;
            writer.uint(start);
            writer.uint(end);
            Ok(())
        })
    }
}

fn len32(len: usize) -> Result<u32, EncodeError> {
    u32::try_from(len).map_err(|_| EncodeError::TooLong)
}
