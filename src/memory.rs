//! Memory that may not be there: the standard library's own ways of asking for it end the process then.

/// A copy of a text; `None` if there is no memory for it.
pub(crate) fn copied(text: &str) -> Option<String> {
    let mut copy = String::new();
    copy.try_reserve_exact(text.len()).ok()?;
    copy.push_str(text);
    Some(copy)
}

/// Whether there is some for small things. Looks for more than they take, since allocators keep small pieces apart.
#[cfg_attr(kv_events_loom, allow(dead_code))]
pub(crate) fn is_left() -> bool {
    let mut some = Vec::<u8>::new();
    some.try_reserve_exact(4096).is_ok() && !std::hint::black_box(some.as_mut_ptr()).is_null()
}

#[cfg(test)]
mod tests {
    #[test]
    fn some_is_left() {
        assert!(super::is_left());
    }

    #[test]
    fn a_copy_is_the_same() {
        for text in ["", "tenant"] {
            assert_eq!(super::copied(text).as_deref(), Some(text));
        }
    }
}
