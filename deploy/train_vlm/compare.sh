#!/bin/sh
# One small model, trained on several sets with the same steps, compared on held-out questions.
#
#   sh deploy/train_vlm/compare.sh OUT NAME=CHAT.jsonl... -- model=M videos=V questions=Q held_out=W [KEY=VALUE...]
#
# For each set, and for the model as it is ("untrained"): OUT/NAME has its adapters and answers, which
# `mustsee evaluate` scores. Then `mustsee compare` prints a table with intervals, and writes OUT/compared.
# The same command goes on where it was killed. PYTHON=... takes another Python than .venv/bin/python.
set -eu
cd "$(dirname "$0")/../.."
python=${PYTHON:-.venv/bin/python}
usage="usage: sh deploy/train_vlm/compare.sh OUT NAME=CHAT.jsonl... -- model=M questions=Q [KEY=VALUE...]"

out=${1:?$usage}
shift
sets=untrained=
while [ "$#" -gt 0 ] && [ "$1" != -- ]; do
  case $1 in
    ?*=?*) sets="$sets
$1" ;;
    *) echo "$1: expected NAME=CHAT.jsonl. $usage" >&2; exit 2 ;;
  esac
  shift
done
[ "$#" -gt 0 ] || { echo "$usage" >&2; exit 2; }
shift
questions=
for given in "$@"; do
  case $given in
    questions=*) questions=${given#*=} ;;
    data=* | out=*) echo "$given: the sets stand before --, each with a name" >&2; exit 2 ;;
  esac
done

evaluated=
IFS='
'
for set in $sets; do
  name=${set%%=*}
  data=${set#*=}
  echo "== $name"
  $python -m deploy.train_vlm.train "$@" ${data:+data="$data"} out="$out/$name"
  evaluated="${evaluated:+$evaluated,}$out/evaluated/$name"
done
for set in $sets; do
  name=${set%%=*}
  $python -m ray_jobs.evaluate questions="$questions" answer=file answer.path="$out/$name/predictions.jsonl" \
    answer.model="$name" out="$out/evaluated/$name"
done
$python -m ray_jobs.compare evaluations="[$evaluated]" out="$out/compared"
