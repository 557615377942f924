//! Events as bytes: everything that is fixed for a publisher is encoded once, an event is a few copies.
//!
//! ```text
//! map16 event_id u64 timestamp u64 | event_type .. tenant_id | TENANT | backend_id .. group_id | GROUP | object_key | KEY | rest
//! '------------ fixed width -------'----- template ----------'        '------ template -------'       '- template'     'template
//!
//! of an object with a session: KEY | seq_hashes .. session_id | SESSION | rest
//!                                  '------ template ---------'         'template
//! ```
//!
//! A call encodes TENANT, GROUP, KEY and SESSION, once even if it has two events, and says which templates go around them. The
//! sender, which has to copy all of it into the message in any case, copies the templates from where they are instead of
//! from the frame: a frame is less than half as long as its events, and it is the one thing here that is never in the
//! caches. `event_id` and `timestamp` are zeros of full width in the template; the sender fills them in.

use super::frame::Frame;
use super::plan::{NONE, Plan, STORED_IN_SESSION};
pub use super::template::Context;
use super::template::Kind;
pub(crate) use super::template::Template;
use crate::media::{MediaSet, Medium};
use crate::names::{CopyNames, Known, Names};
use crate::object::Object;
use rmp::Marker;

/// Encodes events for one publisher.
#[derive(Debug)]
pub struct Encoder {
    templates: [Template; 7],
}

impl Encoder {
    /// An encoder for events that have all of `context` in common.
    pub fn new(context: &Context<'_>) -> Self {
        let of = |kind, medium| Template::new(context, kind, medium);
        let [cpu, disk] = Medium::ALL.map(Some);
        Encoder {
            templates: [
                of(Kind::Removed, cpu),
                of(Kind::Removed, disk),
                of(Kind::Stored, cpu),
                of(Kind::Stored, disk),
                of(Kind::Cleared, None),
                of(Kind::StoredInSession, cpu),
                of(Kind::StoredInSession, disk),
            ],
        }
    }

    /// The events of a call about `object`: `removed` before `stored`, `cpu` before `disk`. One or two of them.
    #[inline]
    pub fn object_call<'a>(&self, object: &Object<'a>, removed: MediaSet, stored: MediaSet) -> CallLayout<'a> {
        self.names_call(Names::of(object), removed, stored)
    }

    /// The events of a call about the object with those names, which may not be UTF-8.
    #[inline(always)]
    pub(crate) fn names_call<'a>(&self, names: Names<'a>, removed: MediaSet, stored: MediaSet) -> CallLayout<'a> {
        let plan = Plan::of(removed, stored);
        let names = names.with_tenant();
        let variable = text_len(names.tenant) + text_or_nil_len(names.group) + text_len(names.key);
        if names.session.is_empty() || stored.is_empty() {
            return self.call(plan, Names { session: &[], ..names }, variable);
        }
        let plan = plan.in_session();
        let session = text_len(names.session);
        let mut call = self.call(plan, names, variable);
        for (bytes, template) in call.events.iter_mut().zip([plan.first, plan.second]) {
            if template != NONE && template >= STORED_IN_SESSION {
                *bytes += session;
            }
        }
        call.variable += session;
        call
    }

    /// The one event of a `cleared` call.
    pub fn cleared_call<'a>(&self, tenant: &'a str) -> CallLayout<'a> {
        let names = Names::of(&Object::new(tenant, "")).with_tenant();
        self.call(Plan::CLEARED, names, text_len(names.tenant))
    }

    #[inline(always)]
    fn call<'a>(&self, plan: Plan, names: Names<'a>, variable: usize) -> CallLayout<'a> {
        let fixed = |at: u8| self.templates.get(usize::from(at)).map_or(0, |template| template.len);
        let first = variable + fixed(plan.first);
        let second = if plan.second == NONE { 0 } else { variable + fixed(plan.second) };
        CallLayout { plan, names, variable, events: [first, second] }
    }

    /// The templates of `plan`'s events.
    #[inline]
    pub(crate) fn templates(&self, plan: Plan) -> impl Iterator<Item = &Template> {
        [plan.first, plan.second].into_iter().filter_map(|at| self.templates.get(usize::from(at)))
    }
}

/// A call that is ready to be written.
#[derive(Debug)]
pub struct CallLayout<'a> {
    plan: Plan,
    names: Names<'a>,
    /// What goes into the frame, bytes.
    variable: usize,
    /// What comes out of the message, bytes of each event.
    events: [usize; 2],
}

impl CallLayout<'_> {
    /// Encoded size of its larger event, bytes.
    #[inline]
    pub fn largest_event(&self) -> usize {
        self.events[0].max(self.events[1])
    }

    /// The names as they go into the frame: with a tenant in any case.
    #[inline]
    pub(crate) fn names(&self) -> &Names<'_> {
        &self.names
    }

    /// Bytes that it needs in a frame.
    #[inline]
    pub fn room(&self) -> usize {
        self.variable
    }

    /// Writes into `frame` what the templates do not have; `false` if there is no memory for it.
    #[inline]
    pub fn write(&self, frame: &mut Frame) -> bool {
        self.write_by(frame, &mut Known)
    }

    /// The same with names copied by `copy`.
    #[inline(always)]
    pub(crate) fn write_by(&self, frame: &mut Frame, copy: &mut impl CopyNames) -> bool {
        let Names { tenant, key, group, session } = self.names;
        let Some(room) = frame.room(self.variable) else { return false };
        let mut out = Cursor { out: room, at: 0, copy };
        out.text(tenant);
        let group_at = out.at;
        let mut key_at = group_at;
        if self.plan != Plan::CLEARED {
            out.text_or_nil(group);
            key_at = out.at;
            out.text(key);
        }
        let key_end = out.at;
        if !session.is_empty() {
            out.text(session);
        }
        debug_assert_eq!(out.at, self.variable);
        frame.set_written(self.plan, [group_at, key_at, key_end, self.variable], self.events[0] + self.events[1]);
        true
    }
}

#[inline(always)]
fn text_len(text: &[u8]) -> usize {
    text.len()
        + match text.len() {
            0..32 => 1,
            32..256 => 2,
            256..65_536 => 3,
            _ => 5,
        }
}

#[inline(always)]
fn text_or_nil_len(text: &[u8]) -> usize {
    if text.is_empty() { 1 } else { text_len(text) }
}

/// The hot end: copies into a slice that is known to be large enough.
struct Cursor<'a, C> {
    out: &'a mut [u8],
    at: usize,
    copy: &'a mut C,
}

impl<C: CopyNames> Cursor<'_, C> {
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// The header is written by hand: `rmp`'s writers go through `io::Write`, which is not inlined and costs more than the
    /// copy of the text.
    #[inline(always)]
    fn text(&mut self, text: &[u8]) {
        let len = text.len();
        if len < 32 {
            self.put(&[Marker::FixStr(len as u8).to_u8()]);
            // Not shared with the others: what is known to be short is copied in fewer steps.
            return self.name(text);
        } else if len < 256 {
            self.put(&[Marker::Str8.to_u8(), len as u8]);
        } else {
            let [a, b, c, d] = (len as u32).to_be_bytes();
            if len < 65_536 {
                self.put(&[Marker::Str16.to_u8(), c, d]);
            } else {
                self.put(&[Marker::Str32.to_u8(), a, b, c, d]);
            }
        }
        self.name(text);
    }

    #[inline(always)]
    fn name(&mut self, name: &[u8]) {
        self.copy.copy(&mut self.out[self.at..self.at + name.len()], name);
        self.at += name.len();
    }

    #[inline(always)]
    fn text_or_nil(&mut self, text: &[u8]) {
        if text.is_empty() { self.put(&[Marker::Null.to_u8()]) } else { self.text(text) }
    }
}
