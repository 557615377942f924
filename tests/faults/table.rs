//! What the master knows: one byte of media for each object, in memory that all processes share. It stands in for the
//! snapshot that a reader takes after a gap.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

/// Objects of each producer.
pub const KEYS: usize = 4096;
/// Producers at most.
pub const PRODUCERS: usize = 8;
const SLOTS: usize = KEYS * PRODUCERS;

pub struct Table {
    slots: &'static [AtomicU8],
    path: PathBuf,
    owned: bool,
}

impl Table {
    /// A new table, every object readable nowhere; its file goes with it.
    pub fn create(path: PathBuf) -> Table {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
        file.set_len(SLOTS as u64).unwrap();
        Table { slots: map(&file), path, owned: true }
    }

    pub fn open(path: &Path) -> Table {
        let file = File::options().read(true).write(true).open(path).unwrap();
        Table { slots: map(&file), path: path.to_owned(), owned: false }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn get(&self, slot: usize) -> u8 {
        self.slots[slot].load(Ordering::Acquire)
    }

    pub fn set(&self, slot: usize, media: u8) {
        self.slots[slot].store(media, Ordering::Release);
    }

    /// A snapshot. Whatever was written before a message that has been received was sent is in it.
    pub fn copy(&self) -> Vec<u8> {
        (0..SLOTS).map(|slot| self.get(slot)).collect()
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        if self.owned {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn map(file: &File) -> &'static [AtomicU8] {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: maps a file that this process has open, at an address of the kernel's choice.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), SLOTS, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    assert_ne!(start, libc::MAP_FAILED, "{}", std::io::Error::last_os_error());
    // SAFETY: the mapping is SLOTS bytes long, is never taken back, and is only ever touched through atomics.
    unsafe { std::slice::from_raw_parts(start.cast::<AtomicU8>(), SLOTS) }
}
