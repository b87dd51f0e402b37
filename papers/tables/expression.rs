//! The expression of a cell, over a record's figures: `100 * half off/waf / off/waf`.
//!
//! Words stand apart, so that a key may hold whatever is no space. A figure is a list, a value for each seed: operators
//! go through lists value by value, and `mean`, `least`, `most` and `half` (half of the 95 % confidence interval of
//! the mean) make one number of what follows them. `a/[b,c]/d` is `a/b/d` and `a/c/d`, one list behind the other, and `first`
//! takes the first seed of each. What is left in the end is averaged.

/// A figure's values: numbers, or a word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    Numbers(Vec<f64>),
    Word(String),
}

/// The name of a figure: `KEY` or `RECORD:KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) record: Option<String>,
    pub(super) name: String,
}

impl Key {
    fn of(word: &str) -> Self {
        match word.split_once(':') {
            Some((record, name)) => Self { record: Some(record.to_owned()), name: name.to_owned() },
            None => Self { record: None, name: word.to_owned() },
        }
    }
}

/// How a figure is found.
pub(super) type Lookup<'a> = dyn FnMut(&Key) -> Result<Values, String> + 'a;

/// The value of `text`.
pub(super) fn evaluate(text: &str, lookup: &mut Lookup<'_>) -> Result<Values, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let [word] = words.as_slice()
        && word.parse::<f64>().is_err()
        && !word.contains('[')
    {
        return lookup(&Key::of(word));
    }
    let mut parser = Parser { words: &words, lookup };
    let value = parser.sum()?;
    match parser.words {
        [] => Ok(Values::Numbers(value)),
        [word, ..] => Err(format!("`{word}` is not expected in `{text}`")),
    }
}

struct Parser<'w, 'l, 'k> {
    words: &'w [&'w str],
    lookup: &'l mut Lookup<'k>,
}

impl Parser<'_, '_, '_> {
    /// Takes the next word if it is one of `wanted`.
    fn take(&mut self, wanted: &[&str]) -> Option<&str> {
        let (first, rest) = self.words.split_first()?;
        wanted.contains(first).then(|| {
            self.words = rest;
            *first
        })
    }

    fn sum(&mut self) -> Result<Vec<f64>, String> {
        let mut value = self.product()?;
        while let Some(operator) = self.take(&["+", "-"]) {
            let is_sum = operator == "+";
            let right = self.product()?;
            value = pairwise(&value, &right, |a, b| if is_sum { a + b } else { a - b })?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<Vec<f64>, String> {
        let mut value = self.factor()?;
        while let Some(operator) = self.take(&["*", "/"]) {
            let is_product = operator == "*";
            let right = self.factor()?;
            value = pairwise(&value, &right, |a, b| if is_product { a * b } else { a / b })?;
        }
        Ok(value)
    }

    fn factor(&mut self) -> Result<Vec<f64>, String> {
        let Some((&word, rest)) = self.words.split_first() else {
            return Err("the expression ends too early".to_owned());
        };
        self.words = rest;
        match word {
            "(" => {
                let value = self.sum()?;
                self.take(&[")"]).ok_or("a `)` is missing")?;
                Ok(value)
            }
            "mean" => self.factor().map(|values| vec![mean(&values)]),
            "least" => self.factor().map(|values| vec![least(&values)]),
            "most" => self.factor().map(|values| vec![most(&values)]),
            "half" => self.factor().map(|values| vec![half_interval(&values)]),
            "first" => {
                let (&word, rest) = self.words.split_first().ok_or("`first` of nothing")?;
                self.words = rest;
                self.numbers(word, 1)
            }
            _ => match word.parse() {
                Ok(number) => Ok(vec![number]),
                Err(_) => self.numbers(word, usize::MAX),
            },
        }
    }

    /// The first `most` values of each figure that `word` stands for.
    fn numbers(&mut self, word: &str, most: usize) -> Result<Vec<f64>, String> {
        let mut all = Vec::new();
        for word in expand(word) {
            match (self.lookup)(&Key::of(&word))? {
                Values::Numbers(numbers) => all.extend(numbers.into_iter().take(most)),
                Values::Word(_) => return Err(format!("`{word}` is no number")),
            }
        }
        if all.is_empty() { Err(format!("`{word}` has no value")) } else { Ok(all) }
    }
}

/// The words that `word` stands for: each item of `[a,b]` in its place.
fn expand(word: &str) -> Vec<String> {
    let parts = word.split_once('[').and_then(|(before, rest)| {
        let (items, after) = rest.split_once(']')?;
        Some((before, items, after))
    });
    let Some((before, items, after)) = parts else { return vec![word.to_owned()] };
    let of = |item| expand(after).into_iter().map(move |after| format!("{before}{item}{after}"));
    items.split(',').flat_map(of).collect()
}

/// `of` each value of `left` and the one of `right` beside it; a single value stands beside each.
fn pairwise(left: &[f64], right: &[f64], of: impl Fn(f64, f64) -> f64) -> Result<Vec<f64>, String> {
    match (left, right) {
        (left, [right]) => Ok(left.iter().map(|left| of(*left, *right)).collect()),
        ([left], right) => Ok(right.iter().map(|right| of(*left, *right)).collect()),
        _ if left.len() == right.len() => {
            Ok(left.iter().zip(right).map(|(left, right)| of(*left, *right)).collect())
        }
        _ => Err(format!("{} values beside {}", left.len(), right.len())),
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(super) fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

pub(super) fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// Student's t for 95 %, both sides, with 1 to 9 degrees of freedom.
const T: [f64; 9] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262];

/// Half of the 95 % confidence interval of the mean; not a number where there is none.
fn half_interval(values: &[f64]) -> f64 {
    let n = values.len();
    let Some(t) = n.checked_sub(2).and_then(|at| T.get(at)) else { return f64::NAN };
    let centre = mean(values);
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    t * (squares / (n - 1) as f64 / n as f64).sqrt()
}
