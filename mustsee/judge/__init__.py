"""The answer-equivalence judge: does a candidate answer say what the reference answer says?

Rules, label readers, calibration and the small trained judge. Used by the engines in
`actors/judge/`, by the stages that grade replies, and by the judge's endpoint in `serve/`.
"""
