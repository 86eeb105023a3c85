"""The Redis engine: one Lua script for each verb, on Redis 6.2 and newer and Valkey 7.2 and newer."""
