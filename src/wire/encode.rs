//! Events as bytes: everything that is fixed for a publisher is encoded once, an event is a few copies.
//!
//! ```text
//! map16 event_id u64 timestamp u64 | event_type .. tenant_id | TENANT | backend_id .. group_id | GROUP | object_key | KEY | rest
//! '------------ fixed width -------'----- template ----------'        '------ template -------'       '- template'     'template
//! ```
//!
//! `event_id` and `timestamp` are written as zeros of full width; the sender fills them in.

use super::frame::{Frame, PREFIX_LEN};
use crate::event::{MediaSet, Medium, Object, tenant_or_default};
use rmp::encode as msgpack;

/// What is the same in every event of a publisher.
#[derive(Clone, Debug, Default)]
pub(crate) struct Context<'a> {
    pub(crate) model_name: &'a str,
    pub(crate) block_size: u32,
    pub(crate) additional_salt: &'a str,
    pub(crate) lora_name: &'a str,
    pub(crate) backend_id: &'a str,
    pub(crate) dp_rank: u32,
    pub(crate) legacy: bool,
}

/// One kind of event on one medium, cut where the tenant, the group and the key go in.
#[derive(Debug)]
struct Template {
    until_tenant: Box<[u8]>,
    until_group: Box<[u8]>,
    until_key: Box<[u8]>,
    rest: Box<[u8]>,
}

/// Encodes events for one publisher.
#[derive(Debug)]
pub struct Encoder {
    stored: [Template; 2],
    removed: [Template; 2],
    cleared: Template,
}

/// One event of a call.
#[derive(Clone, Copy)]
enum Kind {
    Stored,
    Removed,
    Cleared,
}

impl Encoder {
    pub(crate) fn new(context: &Context<'_>) -> Self {
        let both = |kind| Medium::ALL.map(|medium| Template::new(context, kind, Some(medium)));
        Encoder {
            stored: both(Kind::Stored),
            removed: both(Kind::Removed),
            cleared: Template::new(context, Kind::Cleared, None),
        }
    }

    /// The events of a call about `object`: `removed` before `stored`, `cpu` before `disk`.
    pub(crate) fn object_call<'a>(
        &'a self,
        object: &Object<'a>,
        removed: MediaSet,
        stored: MediaSet,
    ) -> EncodedCall<'a> {
        let of = |templates: &'a [Template; 2], media: MediaSet| {
            let pick = |at: usize| media.contains(Medium::ALL[at]).then(|| &templates[at]);
            [pick(0), pick(1)]
        };
        let [a, b] = of(&self.removed, removed);
        let [c, d] = of(&self.stored, stored);
        let mut chosen = [a, b, c, d].into_iter().flatten();
        EncodedCall { templates: [chosen.next(), chosen.next()], object: *object }
    }

    /// The one event of a `cleared` call.
    pub(crate) fn cleared_call<'a>(&'a self, tenant: &'a str) -> EncodedCall<'a> {
        EncodedCall { templates: [Some(&self.cleared), None], object: Object::new(tenant, "") }
    }
}

/// A call that is ready to be written.
pub(crate) struct EncodedCall<'a> {
    templates: [Option<&'a Template>; 2],
    object: Object<'a>,
}

impl EncodedCall<'_> {
    /// Encoded size of its larger event, bytes.
    pub(crate) fn largest_event(&self) -> usize {
        self.sizes().max().unwrap_or(0)
    }

    /// Encoded size of the call, bytes.
    pub(crate) fn len(&self) -> usize {
        self.sizes().sum()
    }

    /// Writes the events into `frame`.
    pub(crate) fn write(&self, frame: &mut Frame) {
        let len = self.len();
        let buffer = frame.room(len);
        let mut second = 0;
        let mut at = 0;
        for template in self.templates.iter().flatten() {
            second = at;
            at += template.write(&mut buffer[at..], &self.object);
        }
        debug_assert_eq!(at, len);
        frame.set_written(len, second);
    }

    fn sizes(&self) -> impl Iterator<Item = usize> {
        self.templates.iter().flatten().map(|template| template.len(&self.object))
    }
}

impl Template {
    fn new(context: &Context<'_>, kind: Kind, medium: Option<Medium>) -> Self {
        let mut out = Writer { bytes: vec![0xde, 0, 0], fields: 0 };
        out.fixed_u64("event_id");
        out.fixed_u64("timestamp");
        debug_assert_eq!(out.bytes.len(), PREFIX_LEN);
        let (event_type, legacy_type) = match kind {
            Kind::Stored => ("stored", "BlockStored"),
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
        let (mut until_group, mut until_key) = (Vec::new(), Vec::new());
        if !matches!(kind, Kind::Cleared) {
            out.key("group_id");
            until_group = out.cut();
            out.key("object_key");
            until_key = out.cut();
            out.empty_array("seq_hashes");
            if context.legacy {
                out.empty_array("block_hashes");
            }
            out.nil("base_block_idx");
            if matches!(kind, Kind::Stored) {
                out.nil("parent_hash");
                out.nil("token_ids");
                if context.legacy {
                    out.nil("parent_block_hash");
                }
            }
        }
        let mut until_tenant = until_tenant;
        until_tenant[2] = out.fields;
        Template {
            until_tenant: until_tenant.into(),
            until_group: until_group.into(),
            until_key: until_key.into(),
            rest: out.bytes.into(),
        }
    }

    fn len(&self, object: &Object<'_>) -> usize {
        let mut len = self.until_tenant.len() + text_len(tenant_or_default(object.tenant)) + self.rest.len();
        if !self.until_group.is_empty() {
            len += self.until_group.len() + text_or_nil_len(object.group) + self.until_key.len() + text_len(object.key);
        }
        len
    }

    /// Writes the event to the front of `out`, which has room for it, and returns its length.
    fn write(&self, out: &mut [u8], object: &Object<'_>) -> usize {
        let mut out = Cursor { rest: out, written: 0 };
        out.put(&self.until_tenant);
        out.text(tenant_or_default(object.tenant));
        if !self.until_group.is_empty() {
            out.put(&self.until_group);
            out.text_or_nil(object.group);
            out.put(&self.until_key);
            out.text(object.key);
        }
        out.put(&self.rest);
        out.written
    }
}

fn text_len(text: &str) -> usize {
    text.len()
        + match text.len() {
            0..32 => 1,
            32..256 => 2,
            256..65_536 => 3,
            _ => 5,
        }
}

fn text_or_nil_len(text: &str) -> usize {
    if text.is_empty() { 1 } else { text_len(text) }
}

/// The hot end: copies into a slice that is known to be large enough.
struct Cursor<'a> {
    rest: &'a mut [u8],
    written: usize,
}

impl Cursor<'_> {
    #[inline]
    fn put(&mut self, bytes: &[u8]) {
        let (head, tail) = std::mem::take(&mut self.rest).split_at_mut(bytes.len());
        head.copy_from_slice(bytes);
        self.rest = tail;
        self.written += bytes.len();
    }

    #[inline]
    fn text(&mut self, text: &str) {
        let before = self.rest.len();
        // Writing into a slice fails only if it is too short, and `Template::len` has counted.
        let header = msgpack::write_str_len(&mut self.rest, text.len() as u32);
        debug_assert!(header.is_ok());
        self.written += before - self.rest.len();
        self.put(text.as_bytes());
    }

    #[inline]
    fn text_or_nil(&mut self, text: &str) {
        if text.is_empty() { self.put(&[rmp::Marker::Null.to_u8()]) } else { self.text(text) }
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
