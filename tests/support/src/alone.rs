//! Tests that look at the whole process (its memory, threads, files) and so need one to themselves.

/// `alone!("a_test")` runs the test of that name, in the module that asks, again in a process of its own and returns
/// `false`; in that process it returns `true`.
#[macro_export]
macro_rules! alone {
    ($name:literal) => {
        $crate::alone::alone(&$crate::alone::path(module_path!(), $name))
    };
}

/// What the harness calls the test `name` of a module.
pub fn path(module: &str, name: &str) -> String {
    module.split_once("::").map_or_else(|| name.to_owned(), |(_, module)| format!("{module}::{name}"))
}

/// What the macro does, for a test by the harness's name of it.
pub fn alone(name: &str) -> bool {
    if std::env::var_os("KV_EVENTS_ALONE").is_some() {
        return true;
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env("KV_EVENTS_ALONE", "1")
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    // What it measured.
    text.lines().filter_map(|line| line.find("measured:").map(|at| &line[at..])).for_each(|line| println!("{line}"));
    false
}

/// Bytes that malloc has given out and not got back: unlike the resident memory it falls at once.
#[cfg(target_env = "gnu")]
pub fn bytes_in_use() -> usize {
    // SAFETY: no arguments; returns a structure of numbers.
    let info = unsafe { libc::mallinfo2() };
    info.uordblks + info.hblkhd
}

/// Resident memory, bytes.
pub fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Threads and open files.
pub fn threads_and_files() -> (usize, usize) {
    let count = |path| std::fs::read_dir(path).unwrap().count();
    (count("/proc/self/task"), count("/proc/self/fd"))
}
