"""What a query may be made of: the second look at it, in the words of the engine's own parser.

The list is of functions that compute a value from their arguments. Not in it, among others: those
that read files, settings, variables, the catalog or the environment, that run text as a statement,
that wait, or that log. Names are those of DuckDB, operators included.
"""

from collections.abc import Collection, Iterator
from typing import Any

from queueber.errors import InvalidArgument

_OPERATORS = """
!__postfix != % & && * ** + - ->> / // < << <= <@ <=> = > >= >> @ @> ^ ^@ | || ~ ~~ ~~* ~~~ !~~
!~~*
"""
_AGGREGATES = """
any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null
arg_min arg_min_null argmax argmin array_agg avg bit_and bit_or bit_xor bool_and bool_or corr
count count_if count_star countif covar_pop covar_samp entropy favg first fsum geomean
geometric_mean group_concat histogram kahan_sum kurtosis kurtosis_pop last list listagg mad max
max_by mean median min min_by mode product quantile quantile_cont quantile_disc regr_avgx
regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy
reservoir_quantile sem skewness stddev stddev_pop stddev_samp string_agg sum sumkahan var_pop
var_samp variance histogram_exact wavg weighted_avg bitstring_agg json_group_array
json_group_object json_group_structure
"""
_WINDOWS = """
cume_dist dense_rank fill first_value lag last_value lead nth_value ntile percent_rank rank
rank_dense row_number
"""
_NUMBERS = """
abs acos acosh add asin asinh atan atan2 atanh bit_count cbrt ceil ceiling cos cosh cot degrees
divide even exp fdiv floor fmod gamma gcd greatest isfinite isinf isnan lcm least lgamma ln log
log10 log2 mod multiply nextafter pi pow power radians random round round_even roundbankers sign
signbit sin sinh sqrt subtract tan tanh trunc xor factorial
"""
_TEXTS = """
array_extract ascii damerau_levenshtein overlay bar base64 bin bit_length char_length
character_length chr concat concat_ws contains decode encode ends_with format
formatreadabledecimalsize formatreadablesize format_bytes from_base64 from_binary from_hex hamming
hash hex ilike_escape instr jaccard jaro_similarity jaro_winkler_similarity lcase left
left_grapheme len length length_grapheme levenshtein editdist3 like_escape lower lpad ltrim md5
md5_number mismatches not_ilike_escape not_like_escape nfc_normalize octet_length ord position
prefix printf regexp_escape regexp_extract regexp_extract_all regexp_full_match regexp_matches
regexp_replace regexp_split_to_array repeat replace reverse right right_grapheme rpad rtrim sha1
sha256 split split_part starts_with str_split str_split_regex strip_accents strlen strpos
string_split string_split_regex string_to_array substr substring substring_grapheme suffix to_base
to_base64 to_binary to_hex translate trim ucase unbin unhex unicode upper url_decode url_encode
bitstring set_bit get_bit bit_position
"""
_TIMES = """
age century days_in_month date_add date_diff date_part date_sub date_trunc datediff datepart
datesub datetrunc day dayname dayofmonth dayofweek dayofyear decade epoch epoch_ms epoch_ns
epoch_us era hour isodow isoyear julian last_day make_date make_time make_timestamp
make_timestamp_ms make_timestamp_ns make_timestamptz microsecond millennium millisecond minute
month monthname nanosecond quarter second strftime strptime time_bucket timetz_byte_comparable
timezone timezone_hour timezone_minute to_centuries to_days to_decades to_hours to_microseconds
to_millennia to_milliseconds to_minutes to_months to_quarters to_seconds to_timestamp to_weeks
to_years try_strptime week weekday weekofyear year yearweek
"""
_VALUES = """
alias constant_or_null equi_width_bins gen_random_uuid if list_value nullif row struct_pack typeof
uuid uuidv4 uuidv7 uuid_extract_timestamp uuid_extract_version is_histogram_other_bin
"""
_LISTS = """
aggregate apply array_aggr array_aggregate array_append array_apply array_cat array_concat
array_contains array_cosine_distance array_cosine_similarity array_cross_product array_distance
array_distinct array_dot_product array_filter array_grade_up array_has array_has_all array_has_any
array_indexof array_inner_product array_intersect array_length array_pop_back array_pop_front
array_position array_prepend array_push_back array_push_front array_reduce array_resize
array_reverse array_reverse_sort array_select array_slice array_sort array_to_string
array_transform array_unique array_value array_where array_zip cardinality element_at filter
flatten generate_series list_aggr list_aggregate list_any_value list_append list_apply
list_approx_count_distinct list_avg list_bool_and list_bool_or list_cat list_concat list_contains
list_cosine_distance list_cosine_similarity list_count list_distance list_dot_product
list_inner_product list_distinct list_element list_extract list_filter list_first list_grade_up
list_has list_has_all list_has_any list_histogram list_indexof list_intersect list_last list_max
list_median list_min list_mode list_pack list_position list_prepend list_product list_reduce
list_resize list_reverse list_reverse_sort list_select list_slice list_sort list_stddev_pop
list_stddev_samp list_string_agg list_sum list_transform list_unique list_var_pop list_var_samp
list_where list_zip map map_concat map_contains map_contains_entry map_contains_value map_entries
map_extract map_extract_value map_from_entries map_keys map_values range reduce struct_concat
struct_contains struct_extract struct_extract_at struct_has struct_indexof struct_insert
struct_keys struct_position struct_update struct_values unnest
"""
_JSON = """
array_to_json from_json from_json_strict json json_array json_array_length json_contains json_each
json_deep_merge json_exists json_extract json_extract_path json_extract_path_text
json_extract_string json_keys json_merge_patch json_object json_pretty json_insert json_normalize
json_quote json_remove json_replace json_set json_strip_nulls json_structure json_transform
json_transform_strict json_tree json_type json_valid json_value row_to_json to_json
"""

FUNCTIONS: frozenset[str] = frozenset(
    " ".join(
        (_OPERATORS, _AGGREGATES, _WINDOWS, _NUMBERS, _TEXTS, _TIMES, _VALUES, _LISTS, _JSON)
    ).split()
)

ROW_SOURCES = frozenset({"range", "generate_series", "json_each", "json_tree", "unnest"})
"""Functions in FROM that make rows of their arguments alone."""

_SOURCES = {"BASE_TABLE", "EMPTY", "EXPRESSION_LIST", "JOIN", "SUBQUERY", "TABLE_FUNCTION"}
_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
_MODIFIERS = {"LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER", "DISTINCT_MODIFIER"}
_CLASSES = {
    "BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT",
    "DEFAULT", "FUNCTION", "LAMBDA", "LAMBDA_REF", "OPERATOR", "POSITIONAL_REFERENCE", "STAR",
    "SUBQUERY", "TYPE", "WINDOW",
}  # fmt: skip


def check_tree(statements: list[dict[str, Any]], tables: Collection[str]) -> None:
    """Refuse what is not in the lists above, or names a table that is not in `tables`."""
    if len(statements) != 1:
        raise InvalidArgument(f"sql: has {len(statements)} statements; SELECT takes one at a time")
    for node in _nodes(statements):
        kind = node.get("type")
        if not isinstance(kind, str):
            continue
        group = node.get("class")
        if group is not None:
            if group not in _CLASSES:
                raise InvalidArgument(f"sql: {group.lower()} cannot be used here")
        elif "table_name" in node or "alias" in node or kind in _SOURCES:
            _check_source(node, kind, tables)
        name = node.get("function_name")
        if name is not None and (name.casefold() not in FUNCTIONS or node.get("schema")):
            raise InvalidArgument(f"sql: the function {name}() cannot be used here")


def _check_source(node: dict[str, Any], kind: str, tables: Collection[str]) -> None:
    if kind not in _SOURCES:
        raise InvalidArgument(f"sql: {kind.lower()} cannot be used here")
    if kind == "TABLE_FUNCTION":
        name = node["function"].get("function_name", "")
        if name.casefold() not in ROW_SOURCES:
            raise InvalidArgument(f"sql: there is no table {name}()")
    if kind == "BASE_TABLE":
        is_own = not node.get("schema_name") and not node.get("catalog_name")
        if not is_own or node["table_name"].casefold() not in tables:
            raise InvalidArgument(f"sql: there is no table {node['table_name']}")


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    left = [tree]
    while left:
        match left.pop():
            case dict() as node:
                yield node
                left += node.values()
            case list() as several:
                left += several
