//! The tools as people run them.

mod decode;
mod ends;
mod help;
mod interrupted;
mod limits;
mod replay;
mod replay_faults;
mod tail;
mod tail_top;
