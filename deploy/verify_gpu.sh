#!/bin/sh
# What only an accelerator can show, measured on this machine: Markdown tables for docs/measured.md. The first one (also
# FOLDER/gpu.json) has captions in video hours a GPU hour, looks a second, Whisper's speed and the judge's answers a second,
# each beside the plain library on the same inputs.
#
#   make .venv/test && sh deploy/verify_gpu.sh [FOLDER]
#
# For a GPU or TPU, JAX needs its plugin (pip install 'jax[cuda13]' or 'jax[tpu]'). Without one the same
# commands run with tiny random weights, in some three minutes; that shows that they run, and no speed.
# Nothing is fetched. What is missing is named at once, and the exit code is 2; what fails is named at the end, and it is 1.
# Optional, from the environment:
#   CAPTIONER=FOLDER   or id of an image-text model for captions and looks, such as Qwen/Qwen3-VL-4B-Instruct (else random, 3 B)
#   PALIGEMMA=FOLDER   weights of the captioner in JAX (else random ones; of PaliGemma 2 3B's shape for its speed)
#   WHISPER=FOLDER     weights for faster-whisper, such as large-v3 (else tiny.en, and random ones in the presets)
#   JUDGE=FOLDER       a judge that ray_jobs.judge_train made (else random weights, 1 B)
#   VLLM=URL MODEL=ID  a running vLLM, such as http://127.0.0.1:8000/v1 (else it and the preset vllm are left out)
#   VIDEO=FILE         a longer video with speech for the first table
set -eu
cd "$(dirname "$0")/.."
out=${1:-runs/verify_gpu}
python=.venv/bin/python
failed=
export XLA_PYTHON_CLIENT_PREALLOCATE=false   # torch needs memory of the same GPU
[ -x "$python" ] || { echo "no $python: run make .venv/test first" >&2; exit 2; }
[ -f "${VIDEO:-examples/videos/birdhouse.mp4}" ] || { echo "no file VIDEO=$VIDEO" >&2; exit 2; }
$python -m benchmarks.gpu ${CAPTIONER:+"$CAPTIONER"} ${PALIGEMMA:+"$PALIGEMMA"} ${WHISPER:+"$WHISPER"} ${JUDGE:+"$JUDGE"} \
  ${VLLM:+"$VLLM"} || exit 2
rm -rf "$out/tiny" "$out"/preset_*   # of an earlier run, whose results would be found
mkdir -p "$out"

device=$($python -c 'import jax; print(jax.default_backend())' 2> /dev/null || echo cpu)
chips=$($python -c 'import jax; print(jax.local_device_count())' 2> /dev/null || echo 0)
whisper_device=$($python -c 'import ctranslate2; print("cuda" if ctranslate2.get_cuda_device_count() else "cpu")')
gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -1 || true)
echo "JAX computes on: $device. faster-whisper on: $whisper_device. GPU: ${gpu:-none}. CPU cores: $(nproc)."

fail() {  # TEXT...
  echo "FAILED: $*"
  failed="${failed:+$failed; }$*"
}

run() {  # NAME ARGUMENT...: a module of Python; its output goes to NAME.txt
  log=$out/$1.txt
  what=$1
  shift
  echo
  echo "\$ python -m $*"
  $python -m "$@" > "$log" 2>&1 && return
  tail -5 "$log"
  fail "$what (all of its output: $log)"
  return 1
}

bench() {  # NAME OVERRIDE...: a benchmark, its table also as JSON
  json=$out/$1.json
  name=$1
  shift
  run "$name" benchmarks.bench "what=$name" "$@" json="$json" || return 0
  $python - "$json" << 'PYTHON'
import json, sys

table = json.load(open(sys.argv[1], encoding="utf-8"))
columns = list(table["rows"][0]) if table["rows"] else []
print(f"\n{table['title']}\n\n| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
for row in table["rows"]:
    cells = (f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values())
    print(f"| {' | '.join(cells)} |")
print("\n" + "; ".join(table["notes"]))
PYTHON
}

preset() {  # NAME OVERRIDE...: a whole job with +experiment=NAME on a sample video
  folder=$out/preset_$1
  name=$1
  shift
  run "preset_$name" ray_jobs.neptune +experiment="$name" videos=examples/videos/birdhouse.mp4 \
    out="$folder" max_problem_share=0 "$@" || return 0
  $python - "$folder/run.json" << 'PYTHON'
import json, sys

run = json.load(open(sys.argv[1], encoding="utf-8"))
print("\n| stage | rows computed | s of its workers | CPU s |\n| --- | --- | --- | --- |")
for stage, rows in run["computed"].items():
    print(f"| {stage} | {rows} | {run['seconds'][stage]:.3g} | {run['cpu_seconds'][stage]:.3g} |")
calls, made, kept = run["llm"], run["questions"]["made"], run["questions"]["kept"]
print(f"\n{run['seconds']['total']:.0f} s in all; transcribed by {', '.join(run['transcribed_by'])}; "
      f"{calls['calls']} model calls, {calls['tokens_in']} tokens in, {calls['tokens_out']} out, "
      f"{calls['seconds']:.3g} s of them; {made} questions made, {kept} kept")
PYTHON
}

tiny=$out/tiny
$python - "$tiny" "$device" << 'PYTHON' > "$out/weights.txt" 2>&1 || fail "weights (all of the output: $out/weights.txt)"
import sys
from pathlib import Path

from benchmarks.caption import SHAPES
from tests.support import tiny_gemma, tiny_llava, tiny_models

folder, big = Path(sys.argv[1]), sys.argv[2] == "gpu"
tiny_models.whisper(folder)
tiny_models.bert(folder)
tiny_llava.paligemma_with_processor(folder / "paligemma")
shape = {"text": {**SHAPES["3b"]["text"], "max_position_embeddings": 8192}, "vision": SHAPES["3b"]["vision"]}
tiny_llava.llava(folder / "random_vlm", **shape if big else {})
tiny_gemma.checkpoint(folder / "random_judge", **{"width": 2304, "layers": 26} if big else {})
PYTHON

compute=$([ "$whisper_device" = cuda ] && echo float16 || echo int8)
vlm=${CAPTIONER:-$tiny/random_vlm}
small="what.caption.dtype=float32 what.looks.dtype=float32 what.caption.max_tokens=6 what.frames=2 what.questions=4
  what.look_tokens=6 what.answers=32 what.repeats=1"
[ "$device" = gpu ] && small=
prompt=$([ -n "${CAPTIONER:-}" ] || echo what.caption.prompt=describe)   # what random weights are asked has no matter
bench gpu $small what.caption.model="$vlm" what.looks.model="$vlm" what.judge.engine.path="${JUDGE:-$tiny/random_judge}" \
  what.hear.compute_type=$compute $prompt ${VIDEO:+what.video=$VIDEO} \
  ${WHISPER:+what.hear.model=$WHISPER what.hear.name=null} ${VLLM:+"+llm@what.servers.vllm=openai"} \
  ${VLLM:+what.servers.vllm.base_url=$VLLM what.servers.vllm.model=${MODEL:-Qwen/Qwen3.5-9B}} \
  ${VLLM:+what.servers.vllm.key_env=null what.servers.vllm.token_limit=max_tokens} \
  ${VLLM:+"+what.servers.vllm.extra_body.chat_template_kwargs={enable_thinking:false}"}

if [ "$device" = cpu ]; then
  bench caption what.batches=[1,4] what.max_tokens=8 what.repeats=1
else
  bench caption what.shape=3b what.dtype=bfloat16 what.batches=[1,8,32] what.matmul=8192 \
    ${PALIGEMMA:+what.model=$PALIGEMMA}
fi

# The presets, with rules in the place of the language model.
hear="hear.model=${WHISPER:-$tiny/whisper-ct2} hear.language=en hear.compute_type=$compute hear.device=$whisper_device"
caption="caption.model=${PALIGEMMA:-$tiny/paligemma}"
[ -n "${WHISPER:-}" ] || short_hear=hear.max_new_tokens=12
[ -n "${PALIGEMMA:-}" ] || caption="$caption caption.dtype=float32 caption.max_tokens=6"
embed="embed.model=$tiny/bert-mean"
whisperx="hear.aligner=none hear.vad=silero"
if ! $python -c 'import whisperx' 2> /dev/null; then
  echo
  echo "WhisperX is not installed: the preset gpu runs with hear=whisper in its place."
  whisperx="hear=whisper ${short_hear:-}"
fi
here="cluster=laptop"   # where there is no such accelerator, its workers would wait for one
preset gpu ask=facts vet=facts llm=offline $([ "$device" = gpu ] && echo cluster.reserved={} || echo $here) \
  $hear $whisperx $caption "caption.prompt='caption en'" $embed
preset tpu ask=facts vet=facts llm=offline $([ "$device" = tpu ] && echo cluster.stages.caption.workers=1 \
  cluster.stages.caption.tpus="$chips" || echo $here) $hear ${short_hear:-} $caption caption.also=null $embed

if [ -n "${VLLM:-}" ]; then
  preset vllm base_url="$VLLM" ${MODEL:+llm.model=$MODEL}
else
  echo
  echo "Not measured: the preset vllm, for want of VLLM=URL."
fi

if [ -n "$failed" ]; then
  echo
  echo "FAILED: $failed"
  exit 1
fi
