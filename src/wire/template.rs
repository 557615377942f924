//! What is the same in every event of a kind, encoded once: the cold end of encoding.

use super::frame::PREFIX_LEN;
use crate::media::Medium;
use rmp::encode as msgpack;

/// What is the same in every event of a publisher.
#[derive(Clone, Debug, Default)]
pub struct Context<'a> {
    /// `model_name`, nil if empty.
    pub model_name: &'a str,
    /// `block_size`, nil if 0.
    pub block_size: u32,
    /// `additional_salt`, nil if empty.
    pub additional_salt: &'a str,
    /// `lora_name`, nil if empty.
    pub lora_name: &'a str,
    /// `backend_id`.
    pub backend_id: &'a str,
    /// `dp_rank`.
    pub dp_rank: u32,
    /// Whether the pre-RFC names are there as well.
    pub legacy: bool,
}

/// One kind of event on one medium, cut where the tenant, the group, the key and the session go in.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) until_tenant: Box<[u8]>,
    pub(crate) until_group: Box<[u8]>,
    pub(crate) until_key: Box<[u8]>,
    pub(crate) rest: Box<[u8]>,
    /// What comes behind the session, if there is one between `rest` and this.
    pub(crate) behind_session: Option<Box<[u8]>>,
    /// All of it, bytes.
    pub(super) len: usize,
}

/// One kind of event.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Stored,
    StoredInSession,
    Removed,
    Cleared,
}

impl Template {
    pub(super) fn new(context: &Context<'_>, kind: Kind, medium: Option<Medium>) -> Self {
        let mut out = Writer { bytes: vec![0xde, 0, 0], fields: 0 };
        out.fixed_u64("event_id");
        out.fixed_u64("timestamp");
        debug_assert_eq!(out.bytes.len(), PREFIX_LEN);
        let (event_type, legacy_type) = match kind {
            Kind::Stored | Kind::StoredInSession => ("stored", "BlockStored"),
            Kind::Removed => ("removed", "BlockRemoved"),
            Kind::Cleared => ("cleared", "AllBlocksCleared"),
        };
        out.text("event_type", event_type);
        if context.legacy {
            out.text("type", legacy_type);
        }
        out.text_or_nil("model_name", context.model_name);
        match context.block_size {
            0 => out.nil("block_size"),
            size => out.uint("block_size", size),
        }
        out.text_or_nil("additional_salt", context.additional_salt);
        out.text_or_nil("lora_name", context.lora_name);
        out.key("tenant_id");
        let until_tenant = out.cut();

        out.text("backend_id", context.backend_id);
        match medium {
            Some(medium) => out.text("medium", medium.as_str()),
            None => out.nil("medium"),
        }
        out.uint("dp_rank", context.dp_rank);
        let (mut until_group, mut until_key, mut until_session) = (Vec::new(), Vec::new(), None);
        if !matches!(kind, Kind::Cleared) {
            out.key("group_id");
            until_group = out.cut();
            out.key("object_key");
            until_key = out.cut();
            out.empty_array("seq_hashes");
            if context.legacy {
                out.empty_array("block_hashes");
            }
            if matches!(kind, Kind::StoredInSession) {
                out.key("session_id");
                until_session = Some(out.cut());
            }
            out.nil("base_block_idx");
            if matches!(kind, Kind::Stored | Kind::StoredInSession) {
                out.nil("parent_hash");
                out.nil("token_ids");
                if context.legacy {
                    out.nil("parent_block_hash");
                }
            }
        }
        let mut until_tenant = until_tenant;
        until_tenant[2] = out.fields;
        let (rest, behind_session) = match until_session {
            Some(until_session) => (until_session, Some(out.cut())),
            None => (out.cut(), None),
        };
        let parts = [&until_tenant, &until_group, &until_key, &rest].into_iter().chain(&behind_session);
        Template {
            len: parts.map(Vec::len).sum(),
            until_tenant: until_tenant.into(),
            until_group: until_group.into(),
            until_key: until_key.into(),
            rest: rest.into(),
            behind_session: behind_session.map(Vec::into),
        }
    }
}

/// The cold end: builds templates, field by field.
struct Writer {
    bytes: Vec<u8>,
    fields: u8,
}

/// Writing to a `Vec` cannot fail.
const TO_VEC: &str = "writing to memory does not fail";

impl Writer {
    fn key(&mut self, name: &str) {
        self.fields += 1;
        msgpack::write_str(&mut self.bytes, name).expect(TO_VEC);
    }

    fn fixed_u64(&mut self, name: &str) {
        self.key(name);
        msgpack::write_u64(&mut self.bytes, 0).expect(TO_VEC);
    }

    fn uint(&mut self, name: &str, value: u32) {
        self.key(name);
        msgpack::write_uint(&mut self.bytes, value.into()).expect(TO_VEC);
    }

    fn text(&mut self, name: &str, value: &str) {
        self.key(name);
        msgpack::write_str(&mut self.bytes, value).expect(TO_VEC);
    }

    fn nil(&mut self, name: &str) {
        self.key(name);
        msgpack::write_nil(&mut self.bytes).expect(TO_VEC);
    }

    fn text_or_nil(&mut self, name: &str, value: &str) {
        if value.is_empty() { self.nil(name) } else { self.text(name, value) }
    }

    fn empty_array(&mut self, name: &str) {
        self.key(name);
        msgpack::write_array_len(&mut self.bytes, 0).expect(TO_VEC);
    }

    /// Everything written since the last cut.
    fn cut(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}
