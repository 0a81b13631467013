package effect

import "strings"

// pure reports whether a name is a built-in function that changes nothing and does not wait. Any other
// function may belong to the user, and can write.
func pure(name string, d Dialect) bool {
	name = strings.ToLower(name)
	if functions[name] || types[name] {
		return true
	}
	if d == Postgres {
		return functionsPostgres[name]
	}
	return functionsMySQL[name]
}

// beforeParenthesis are the words of SQL that call no function if a parenthesis follows.
var beforeParenthesis = set(`select from where and or not xor in on as any all some exists between like ilike regexp rlike is
	having by using over partition distinct interval limit offset when then else case union except intersect
	join inner outer left right cross natural straight_join lateral index within values with materialized
	div mod binary recursive only returning filter window array for escape similar collate group order end
	rollup ordinality rows range fetch`)

// beforeParenthesisMySQL are further such words of MySQL. PostgreSQL takes them for names of functions,
// which may have any effect.
var beforeParenthesisMySQL = set(`top unknown dual first next show describe explain key keys force ignore use groups sets against separator`)

// types can stand before a parenthesis, as a cast or with a length.
var types = set(`char varchar character decimal numeric dec float double real binary varbinary nchar signed unsigned
	integer int bigint smallint tinyint date time datetime timestamp timestamptz text json bit year varying precision`)

// functions are the built-in functions of both dialects.
var functions = set(`count sum avg min max coalesce nullif greatest least abs ceil ceiling floor round sign sqrt power pow exp ln log log10
	mod sin cos tan asin acos atan atan2 cot degrees radians pi lower upper concat concat_ws substring substr left right
	length char_length character_length octet_length bit_length trim ltrim rtrim lpad rpad replace repeat reverse position
	ascii md5 now current_timestamp current_date current_time localtime localtimestamp extract cast row
	row_number rank dense_rank percent_rank cume_dist ntile lag lead first_value last_value nth_value
	stddev stddev_pop stddev_samp variance var_pop var_samp bit_and bit_or bit_xor grouping
	version current_user session_user user overlay regexp_replace regexp_instr regexp_substr regexp_like format`)

var functionsMySQL = set(`if ifnull isnull curdate curtime sysdate utc_date utc_time utc_timestamp unix_timestamp from_unixtime
	date_add date_sub adddate subdate addtime subtime datediff timediff timestampdiff timestampadd date_format time_format str_to_date
	day dayname dayofmonth dayofweek dayofyear month monthname quarter week weekday weekofyear yearweek hour minute
	second microsecond last_day makedate maketime period_add period_diff sec_to_time time_to_sec to_days from_days to_seconds
	convert_tz get_format convert lcase ucase mid instr locate field find_in_set elt make_set export_set space insert strcmp quote soundex
	substring_index bin oct hex unhex conv ord to_base64 from_base64 crc32 sha sha1 sha2 truncate rand uuid
	bit_count group_concat std any_value database schema connection_id found_rows row_count
	json_object json_array json_extract json_unquote json_contains json_contains_path json_length json_keys json_search json_set
	json_insert json_replace json_remove json_merge_patch json_merge_preserve json_valid json_type json_quote json_value json_query
	json_arrayagg json_objectagg json_depth json_exists json_overlaps inet_aton inet_ntoa inet6_aton inet6_ntoa is_uuid uuid_to_bin bin_to_uuid
	compress uncompress aes_encrypt aes_decrypt nvl nvl2 decode ifnull interval match charset collation coercibility match concat
	last_insert_id median percentile_cont percentile_disc chr natural_sort_key add_months to_char`)

var functionsPostgres = set(`array_agg string_agg json_agg jsonb_agg json_object_agg jsonb_object_agg bool_and bool_or every
	json_build_object jsonb_build_object json_build_array jsonb_build_array to_json to_jsonb row_to_json jsonb_set jsonb_extract_path
	jsonb_extract_path_text json_extract_path json_extract_path_text json_array_elements jsonb_array_elements
	json_array_elements_text jsonb_array_elements_text jsonb_array_length json_array_length json_each jsonb_each jsonb_typeof
	json_typeof unnest array_length array_append array_to_string array_position cardinality generate_series date_trunc date_part age
	to_char to_date to_timestamp to_number make_date make_interval make_timestamp clock_timestamp statement_timestamp
	transaction_timestamp timeofday random gen_random_uuid initcap strpos split_part btrim translate chr encode decode
	quote_literal quote_ident starts_with regexp_match regexp_matches regexp_split_to_array trunc div cbrt width_bucket
	hashtext hashtextextended sha256 sha224 sha384 sha512 corr covar_pop covar_samp percentile_cont percentile_disc mode
	current_database current_schema current_schemas current_setting pg_backend_pid txid_current_if_assigned pg_typeof
	has_table_privilege has_schema_privilege pg_get_expr pg_get_indexdef pg_get_constraintdef format_type col_description
	obj_description pg_table_is_visible to_regclass to_regtype pg_is_in_recovery isfinite justify_hours justify_days numrange tsrange int4range int8range daterange
	lower_inc upper_inc isempty concat`)
