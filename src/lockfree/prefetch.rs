//! Hints to the processor. They change nothing but time, so elsewhere than on x86-64 they are left out.

#[cfg(target_arch = "x86_64")]
mod imp {
    use std::arch::asm;
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    /// The line at `place` will be read soon.
    #[inline(always)]
    pub fn read<T>(place: *const T) {
        // SAFETY: a prefetch reads nothing as far as the program can tell, and cannot fault.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }

    /// The line at `place` will be written soon. The intrinsic for this becomes a prefetch for reading unless the program is
    /// compiled for a processor that is known to have the instruction; one that has not ignores it.
    #[inline(always)]
    pub fn write<T>(place: *const T) {
        // SAFETY: as in `read`.
        unsafe { asm!("prefetchw [{}]", in(reg) place, options(nostack, preserves_flags, readonly)) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod imp {
    /// Does nothing.
    pub fn read<T>(_: *const T) {}

    /// Does nothing.
    pub fn write<T>(_: *const T) {}
}

pub use imp::{read, write};
