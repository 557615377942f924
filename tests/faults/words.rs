//! `name=value` words: how the processes of the bench are told what to do, and how they report.

use std::collections::HashMap;

#[derive(Debug, Default)]
pub struct Words(HashMap<String, String>);

impl Words {
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Words {
        let pairs = words.into_iter().filter_map(|word| word.split_once('='));
        Words(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }

    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// A number; 0 if it was not given.
    pub fn number(&self, name: &str) -> u64 {
        self.0.get(name).map_or(0, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
    }
}
