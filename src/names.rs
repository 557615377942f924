//! An object's names as bytes, on their way into a frame.
//!
//! From Rust they are `&str` and need no more than a copy. From C they may be anything, and looking through them costs
//! nearly nothing while they are copied, but a good part of the call before or after it. So the way of copying is a type,
//! and each call is compiled for its own.

use crate::object::{DEFAULT_TENANT, Object};

/// The names of an [`Object`], perhaps not yet known to be UTF-8.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    pub(crate) tenant: &'a [u8],
    pub(crate) key: &'a [u8],
    pub(crate) group: &'a [u8],
    /// Empty if the call stores nothing.
    pub(crate) session: &'a [u8],
}

impl<'a> Names<'a> {
    #[inline]
    pub(crate) const fn of(object: &Object<'a>) -> Self {
        Names {
            tenant: object.tenant.as_bytes(),
            key: object.key.as_bytes(),
            group: object.group.as_bytes(),
            session: object.session.as_bytes(),
        }
    }

    /// The same with the name that an empty tenant stands for.
    #[inline]
    pub(crate) const fn with_tenant(self) -> Self {
        if self.tenant.is_empty() { Names { tenant: DEFAULT_TENANT.as_bytes(), ..self } } else { self }
    }
}

/// How a call's names are copied.
pub(crate) trait CopyNames {
    /// Copies one name; `to` is as long as it.
    fn copy(&mut self, to: &mut [u8], name: &[u8]);

    /// Whether `names`, which have all been copied, are UTF-8.
    fn are_text(&self, names: &Names<'_>) -> bool;
}

/// Names that are known to be UTF-8.
#[derive(Debug)]
pub(crate) struct Known;

impl CopyNames for Known {
    #[inline]
    fn copy(&mut self, to: &mut [u8], name: &[u8]) {
        to.copy_from_slice(name);
    }

    #[inline]
    fn are_text(&self, _: &Names<'_>) -> bool {
        true
    }
}
