-- commit: which attempts of the batch were accepted, in one value.
-- Parameters: none.
-- Rows: one (a JSON array of places).
-- Concurrency: see commit_table.sql.
-- Indexes: none.
SELECT JSON_GROUP_ARRAY(place)
FROM temp.perdure_ended
