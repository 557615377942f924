//! What the figures were measured on.

use serde::Serialize;
use std::process::Command;

#[derive(Clone, Debug, Serialize)]
pub struct Machine {
    pub processor: String,
    pub cores: usize,
    pub kernel: String,
    pub compiler: String,
    pub commit: String,
    pub libzmq: String,
}

impl Machine {
    pub fn this() -> Machine {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model =
            info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name));
        let (major, minor, patch) = zmq::version();
        Machine {
            processor: model.unwrap_or("unknown").to_owned(),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: said("uname", &["-sr"]),
            compiler: said("rustc", &["--version"]),
            commit: said("git", &["describe", "--always", "--dirty"]),
            libzmq: format!("{major}.{minor}.{patch}"),
        }
    }

    pub fn text(&self) -> String {
        let Machine { processor, cores, kernel, compiler, commit, libzmq } = self;
        format!("{processor}, {cores} cores, {kernel}; {compiler}; libzmq {libzmq}; commit {commit}\n")
    }
}

fn said(program: &str, args: &[&str]) -> String {
    let output = Command::new(program).args(args).output();
    output.map_or("unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
