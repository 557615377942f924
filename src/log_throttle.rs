//! How often something is logged that can happen any number of times.

/// True for the 1st, the 10th, the 100th ...: of any flood, at most 20 are logged.
pub(crate) fn is_power_of_ten(count: u64) -> bool {
    count != 0 && 10u64.checked_pow(count.ilog10()) == Some(count)
}

#[cfg(test)]
mod tests {
    use super::is_power_of_ten;

    #[test]
    fn one_in_ten_of_those_before() {
        let told: Vec<u64> = (0..=1000).filter(|count| is_power_of_ten(*count)).collect();
        assert_eq!(told, [1, 10, 100, 1000]);
        assert!(!is_power_of_ten(u64::MAX));
    }
}
