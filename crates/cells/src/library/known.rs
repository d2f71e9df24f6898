//! Methods that Rust's own types have and this tier does not: a cell that calls one is not wrong,
//! it is outside of the subset.

use crate::ty::{Ty, VarKind};

const INT: &str = "abs_diff add_assign borrowing_sub carrying_add cast_signed cast_unsigned \
    checked_abs checked_add checked_add_signed checked_add_unsigned checked_div \
    checked_div_euclid checked_ilog checked_ilog10 checked_ilog2 checked_isqrt checked_mul \
    checked_neg checked_next_multiple_of checked_next_power_of_two checked_pow checked_rem \
    checked_rem_euclid checked_shl checked_shr checked_sub checked_sub_unsigned count_ones \
    count_zeros div_ceil div_euclid from_be from_le ilog ilog10 ilog2 is_multiple_of is_negative \
    is_positive is_power_of_two isqrt leading_ones leading_zeros midpoint next_multiple_of \
    next_power_of_two overflowing_abs overflowing_add overflowing_div overflowing_mul \
    overflowing_neg overflowing_pow overflowing_rem overflowing_shl overflowing_shr \
    overflowing_sub pow rem_euclid reverse_bits rotate_left rotate_right saturating_abs \
    saturating_add saturating_add_signed saturating_div saturating_mul saturating_neg \
    saturating_pow saturating_sub signum swap_bytes to_be to_be_bytes to_le to_le_bytes \
    to_ne_bytes trailing_ones trailing_zeros unchecked_add unsigned_abs wrapping_abs wrapping_add \
    wrapping_add_signed wrapping_div wrapping_mul wrapping_neg wrapping_pow wrapping_rem \
    wrapping_shl wrapping_shr wrapping_sub is_ascii is_ascii_alphabetic is_ascii_digit \
    is_ascii_uppercase to_ascii_lowercase to_ascii_uppercase";

const FLOAT: &str = "abs abs_sub acos acosh asin asinh atan atan2 atanh cbrt ceil clamp \
    classify copysign cos cosh div_euclid exp exp2 exp_m1 floor fract hypot is_finite is_infinite \
    is_nan is_normal is_sign_negative is_sign_positive is_subnormal ln ln_1p log log10 log2 max \
    maximum midpoint min minimum mul_add next_down next_up powf powi recip rem_euclid round \
    round_ties_even signum sin sin_cos sinh sqrt tan tanh to_be_bytes to_bits to_degrees \
    to_int_unchecked to_le_bytes to_ne_bytes to_radians total_cmp trunc";

/// Of every type that can be compared, cloned, hashed, converted or borrowed.
const ANY: &str = "as_mut as_ref borrow borrow_mut clamp clone clone_from clone_into cmp eq fmt ge \
    gt hash into le lt max min ne partial_cmp to_owned to_string try_into type_id add sub mul div \
    rem neg not bitand bitor bitxor shl shr";

const BOOL: &str = "then then_some";

const CHAR: &str = "encode_utf16 encode_utf8 eq_ignore_ascii_case escape_debug escape_default \
    escape_unicode is_alphabetic is_alphanumeric is_ascii is_ascii_alphabetic \
    is_ascii_alphanumeric is_ascii_control is_ascii_digit is_ascii_graphic is_ascii_hexdigit \
    is_ascii_lowercase is_ascii_punctuation is_ascii_uppercase is_ascii_whitespace is_control \
    is_digit is_lowercase is_numeric is_uppercase is_whitespace len_utf16 len_utf8 \
    make_ascii_lowercase make_ascii_uppercase to_ascii_lowercase to_ascii_uppercase to_digit \
    to_lowercase to_uppercase";

const TEXT: &str = "as_bytes as_mut_str as_ptr as_str bytes capacity char_indices chars \
    chars_rev clear contains drain encode_utf16 ends_with eq_ignore_ascii_case escape_debug \
    escape_default extend find get get_mut insert insert_str into_boxed_str into_bytes \
    into_string is_ascii is_char_boundary is_empty leak len lines make_ascii_lowercase \
    make_ascii_uppercase match_indices matches parse pop push push_str remove remove_matches \
    repeat replace replace_range replacen reserve retain rfind rmatch_indices rmatches rsplit \
    rsplit_once rsplit_terminator rsplitn shrink_to_fit split split_ascii_whitespace split_at \
    split_at_checked split_inclusive split_off split_once split_terminator split_whitespace \
    splitn starts_with strip_prefix strip_suffix to_ascii_lowercase to_ascii_uppercase \
    to_lowercase to_uppercase trim trim_ascii trim_end trim_end_matches trim_left trim_matches \
    trim_right trim_start trim_start_matches truncate";

const LIST: &str = "append array_chunks array_windows as_array as_chunks as_mut_slice as_ptr \
    as_slice binary_search binary_search_by binary_search_by_key capacity chunk_by chunks \
    chunks_exact chunks_exact_mut chunks_mut clear concat connect contains copy_from_slice \
    copy_within dedup dedup_by dedup_by_key drain each_mut each_ref ends_with escape_ascii \
    extend extend_from_slice extend_from_within extract_if fill fill_with first first_chunk \
    first_mut get get_disjoint_mut get_mut get_unchecked insert into_boxed_slice into_iter \
    into_vec is_empty is_sorted is_sorted_by is_sorted_by_key iter iter_mut join last last_chunk \
    last_mut leak len map partition_point pop pop_if push rchunks remove repeat reserve resize \
    resize_with retain retain_mut reverse rotate_left rotate_right rsplit select_nth_unstable \
    set_len shrink_to_fit sort sort_by sort_by_cached_key sort_by_key sort_unstable \
    sort_unstable_by sort_unstable_by_key splice split split_at split_at_checked split_at_mut \
    split_first split_first_mut split_inclusive split_last split_last_mut split_off splitn \
    starts_with strip_prefix strip_suffix swap swap_remove swap_with_slice to_vec truncate \
    try_map windows";

const OPTION: &str = "and and_then as_deref as_deref_mut as_mut as_ref as_slice cloned copied \
    expect filter flatten get_or_insert get_or_insert_with insert inspect into_iter is_none \
    is_none_or is_some is_some_and iter iter_mut map map_or map_or_default map_or_else ok_or \
    ok_or_else or or_else replace take take_if transpose unwrap unwrap_or unwrap_or_default \
    unwrap_or_else unwrap_unchecked unzip xor zip";

const ITERATOR: &str = "advance_by all any array_chunks by_ref chain cloned cmp collect contains \
    copied count cycle end_bound enumerate eq filter filter_map find find_map flat_map flatten \
    fold for_each fuse ge gt inspect into_iter is_empty is_partitioned is_sorted is_sorted_by \
    last le len lt map map_while max max_by max_by_key min min_by min_by_key ne next next_back \
    next_chunk nth nth_back partial_cmp partition peekable position product reduce rev rfind \
    rfold rposition scan size_hint skip skip_while start_bound step_by sum take take_while \
    try_fold try_for_each unzip zip as_slice as_str start end nth";

/// Whether rustc knows such a method on the type or on what it derefs to.
pub fn is_known_elsewhere(ty: &Ty, kind: Option<VarKind>, name: &str) -> bool {
    let own = match (ty.peeled(), kind) {
        (Ty::Int(_), _) | (_, Some(VarKind::Int)) => INT,
        (Ty::Float(_), _) | (_, Some(VarKind::Float)) => FLOAT,
        (Ty::Bool, _) => BOOL,
        (Ty::Char, _) => CHAR,
        (Ty::Str | Ty::Named("String", _), _) => TEXT,
        (Ty::Array(..) | Ty::Slice(_) | Ty::Named("Vec", _), _) => LIST,
        (Ty::Named("Option", _), _) => OPTION,
        (
            Ty::Named(
                "Iter" | "Range" | "RangeInclusive" | "RangeFrom" | "RangeTo" | "RangeToInclusive",
                _,
            ),
            _,
        ) => ITERATOR,
        (Ty::Tuple(_) | Ty::Struct(_), _) => "",
        _ => return false,
    };
    let listed = |list: &str| list.split_whitespace().any(|known| known == name);
    listed(own) || listed(ANY)
}
