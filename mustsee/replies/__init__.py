"""Parsing of model replies: their reasoning, their form, and the option that they pick.

`forms` is used by every module that asks a model; `extract` by the evaluation, the filters and the
exported tasks; `thinking` by the clients of endpoints and local models.
"""
