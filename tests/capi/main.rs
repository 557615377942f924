//! The C header is the one that the Rust sources describe. The C and C++ programs beside this file are run by `.ci/capi`.

mod header;
