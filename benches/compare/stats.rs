//! Medians and spreads of a few samples. Pure.

pub struct Spread {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

/// Panics on no samples: a row without a round is a fault of this tool.
pub fn spread(samples: impl IntoIterator<Item = f64>) -> Spread {
    let mut sorted: Vec<f64> = samples.into_iter().collect();
    assert!(!sorted.is_empty(), "a spread needs at least one sample");
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 };
    Spread { median, least: sorted[0], most: sorted[sorted.len() - 1] }
}

pub fn median(samples: impl IntoIterator<Item = f64>) -> f64 {
    spread(samples).median
}

/// How many distinct keys `draws` uniform draws out of `keys` hit, and the standard deviation of that number.
pub fn distinct_keys(keys: f64, draws: f64) -> (f64, f64) {
    let load = draws / keys;
    let expected = keys * (1.0 - (-load).exp());
    let variance = keys * ((-load).exp() - (1.0 + load) * (-2.0 * load).exp());
    (expected, variance.max(0.0).sqrt())
}
