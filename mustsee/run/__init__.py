"""Input, output and bookkeeping of a run.

`inputs` reads the list of videos. `outputs` and `tables` write and read the tables; `record` is
`run.json`, with `pace`. `report`, `browse`, `best` and `picture` show results. `estimate` and
`preflight` run before the work. `lease` and `other_runs` separate runs. The jobs (`ray_jobs`) and
the coordinator (`actors.calls`) use them.
"""
