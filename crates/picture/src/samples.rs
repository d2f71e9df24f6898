//! A step function in bounded memory: what a line of any length looks like at the width of a picture.

/// Some successive values as one: where they begin, and how far they reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Where its first value begins.
    pub x: u64,
    /// Its first value.
    pub first: u64,
    /// Its smallest value.
    pub min: u64,
    /// Its largest value.
    pub max: u64,
    /// Where its largest value begins.
    pub max_x: u64,
    /// Its last value, which holds until the next bucket.
    pub last: u64,
}

impl Bucket {
    fn of(x: u64, y: u64) -> Bucket {
        Bucket { x, first: y, min: y, max: y, max_x: x, last: y }
    }

    fn join(&mut self, later: Bucket) {
        self.min = self.min.min(later.min);
        if later.max > self.max {
            (self.max, self.max_x) = (later.max, later.max_x);
        }
        self.last = later.last;
    }
}

/// Values that hold from one place to the next. Any number of them may be pushed: beyond the capacity neighbours are
/// joined by smallest and largest, so that no peak and no dip is lost, only where in its bucket it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Samples {
    buckets: Vec<Bucket>,
    capacity: u64,
    start: u64,
    end: u64,
    /// What one bucket spans; a power of two.
    width: u64,
}

/// Buckets of a line unless told otherwise: about two pixels each in a picture.
const CAPACITY: usize = 480;

impl Default for Samples {
    fn default() -> Samples {
        Samples::new(CAPACITY)
    }
}

impl FromIterator<(u64, u64)> for Samples {
    fn from_iter<I: IntoIterator<Item = (u64, u64)>>(points: I) -> Samples {
        let mut samples = Samples::default();
        for (x, y) in points {
            samples.push(x, y);
        }
        samples
    }
}

impl Samples {
    /// At most `capacity` buckets, two at least.
    pub fn new(capacity: usize) -> Samples {
        let capacity = capacity.max(2) as u64;
        Samples { buckets: Vec::new(), capacity, start: 0, end: 0, width: 1 }
    }

    /// The value is `y` from `x` on. Places never go back: an earlier one counts as the last one.
    pub fn push(&mut self, x: u64, y: u64) {
        if self.buckets.is_empty() {
            self.start = x;
            self.end = x;
        }
        let x = x.max(self.end);
        self.end = x;
        while (x - self.start) / self.width >= self.capacity {
            self.halve();
        }
        let value = Bucket::of(x, y);
        match self.buckets.last_mut() {
            Some(last) if (last.x - self.start) / self.width == (x - self.start) / self.width => {
                last.join(value);
            }
            _ => self.buckets.push(value),
        }
    }

    /// The last value holds until `x` at least.
    pub fn extend_to(&mut self, x: u64) {
        self.end = self.end.max(x);
    }

    fn halve(&mut self) {
        self.width *= 2;
        let (start, width) = (self.start, self.width);
        let index = |bucket: &Bucket| (bucket.x - start) / width;
        let mut joined: Vec<Bucket> = Vec::with_capacity(self.buckets.len());
        for bucket in self.buckets.drain(..) {
            match joined.last_mut() {
                Some(last) if index(last) == index(&bucket) => last.join(bucket),
                _ => joined.push(bucket),
            }
        }
        self.buckets = joined;
    }

    /// The buckets, in order.
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// Whether nothing was pushed.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Where the first value begins.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// Until where the last value holds.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The last value.
    pub fn last(&self) -> u64 {
        self.buckets.last().map_or(0, |bucket| bucket.last)
    }

    /// The largest value, and where it was reached first.
    pub fn peak(&self) -> Option<(u64, u64)> {
        let highest = self.buckets.iter().map(|bucket| bucket.max).max()?;
        let bucket = self.buckets.iter().find(|bucket| bucket.max == highest)?;
        Some((bucket.max_x, highest))
    }

    /// The largest value in each of `columns` equal parts; a value from before counts where it still holds.
    pub fn columns(&self, columns: usize) -> Vec<u64> {
        if self.is_empty() || columns == 0 {
            return Vec::new();
        }
        let span = u128::from(self.end - self.start) + 1;
        let begin = |column: usize| {
            u128::from(self.start) + (span * column as u128).div_ceil(columns as u128)
        };
        let mut values = Vec::with_capacity(columns);
        let (mut next, mut held) = (0, self.buckets[0].first);
        for column in 0..columns {
            let (from, to) = (begin(column), begin(column + 1));
            let mut value = None;
            while let Some(bucket) = self.buckets.get(next).filter(|b| u128::from(b.x) < to) {
                let before = if u128::from(bucket.x) > from { Some(held) } else { None };
                value = value.max(before).max(Some(bucket.max));
                held = bucket.last;
                next += 1;
            }
            values.push(value.unwrap_or(held));
        }
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_of_one_value_in_a_million_survives() {
        let mut samples = Samples::default();
        for x in 0..1_000_000 {
            samples.push(x, if x == 654_321 { 1000 } else { x % 7 });
        }
        assert_eq!(samples.peak(), Some((654_321, 1000)));
        assert!(samples.buckets().len() <= 480 && samples.buckets().len() > 200);
        assert!(samples.buckets().iter().all(|bucket| bucket.min == 0));
        assert_eq!(samples.last(), 999_999 % 7);
        assert_eq!(samples.columns(40).into_iter().max(), Some(1000));
    }

    #[test]
    fn few_values_are_kept_as_they_are() {
        let samples: Samples = [(10, 1), (20, 5), (30, 2)].into_iter().collect();
        let all: Vec<(u64, u64)> = samples.buckets().iter().map(|b| (b.x, b.last)).collect();
        assert_eq!(all, [(10, 1), (20, 5), (30, 2)]);
        assert_eq!(samples.columns(3), [1, 5, 5]);
        assert_eq!(samples.columns(21)[9..12], [1, 5, 5]);
        assert_eq!(samples.columns(21)[20], 2);
    }

    #[test]
    fn odd_places_do_no_harm() {
        let mut samples = Samples::new(0);
        assert_eq!((samples.peak(), samples.columns(5)), (None, vec![]));
        samples.push(u64::MAX, 1);
        samples.push(3, 2);
        assert_eq!(samples.last(), 2);
        let wide: Samples = [(0, 1), (u64::MAX, 2)].into_iter().collect();
        assert_eq!(wide.columns(2), [1, 2]);
        assert_eq!(wide.columns(0), [0; 0]);
    }
}
