//! What a shared device may be called: a name becomes part of a file's name.

/// The longest name, in characters.
const LONGEST: usize = 64;

/// What a name may be, for messages.
const RULE: &str = "a name begins with a letter and goes on with letters, digits, `-`, `_` or `.`, up to 64 in all, as in cpu:lab";

/// Checks a device's name.
///
/// # Errors
/// What is wrong with it, and what a name may be.
pub fn check_name(name: &str) -> Result<(), String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let wrong = match name.chars().next() {
        None => "the name of a shared device is empty".to_string(),
        Some(_) if name.chars().count() > LONGEST => {
            format!("a device's name of {} characters is too long", name.chars().count())
        }
        Some(first) if !first.is_ascii_alphabetic() => {
            format!("the device's name {name:?} begins with {first:?}")
        }
        Some(_) => match name.chars().find(|c| !allowed(*c)) {
            Some(odd) => format!("the device's name {name:?} has {odd:?} in it"),
            None => return Ok(()),
        },
    };
    Err(format!("{wrong}; {RULE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain_words() {
        for right in ["lab", "Lab-2", "a", "a.b_c", &"x".repeat(64)] {
            assert_eq!(check_name(right), Ok(()), "{right}");
        }
        let long = "x".repeat(65);
        for wrong in [
            "", ".", "..", "../lab", "a/b", "a b", "läb", "lab\n", "7", "-lab", "a\0b", &long, "💥",
        ] {
            let why = check_name(wrong).expect_err(wrong);
            assert!(why.contains("begins with a letter") && why.contains("cpu:lab"), "{why}");
        }
    }
}
