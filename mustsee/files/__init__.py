"""Files and folders: how they are read, written, found again and checked.

`store` keeps results under the key of what they were made of; `tables` reads tables of any kind,
`parquet` and `schemas` those that we write; `folders` writes whole and clears; `fetch` downloads.
"""
