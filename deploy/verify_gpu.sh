#!/bin/sh
# What only an accelerator can show, measured on this machine: Markdown tables for docs/measured.md.
#
#   make .venv/test && sh deploy/verify_gpu.sh [FOLDER]
#
# Without a GPU or TPU the same commands run with tiny random weights, in some two minutes; that shows
# that they run, and no speed. Nothing is fetched. Optional, from the environment:
#   PALIGEMMA=FOLDER   weights of the captioner (else random ones of PaliGemma 2 3B's shape)
#   WHISPER=FOLDER     weights for faster-whisper, such as large-v3 (else tiny.en, which comes with the packages)
set -eu
cd "$(dirname "$0")/.."
out=${1:-runs/verify_gpu}
python=.venv/bin/python
mkdir -p "$out"

device=$($python -c 'import jax; print(jax.default_backend())' 2> /dev/null || echo cpu)
whisper_device=$($python -c 'import ctranslate2; print("cuda" if ctranslate2.get_cuda_device_count() else "cpu")')
name=$(nvidia-smi --query-gpu=name --format=csv,noheader 2> /dev/null | head -1 || true)
echo "JAX computes on: $device. GPU: ${name:-none}. CPU cores: $(nproc)."

bench() {  # FILE OVERRIDE...: a benchmark, its table also as JSON
  file=$out/$1.json
  shift
  echo
  echo "\$ python -m benchmarks.bench $*"
  $python -m benchmarks.bench "$@" json="$file" > "$out/log.txt" 2>&1 || { tail -5 "$out/log.txt"; return 0; }
  $python - "$file" << 'PYTHON'
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

if [ "$device" = cpu ]; then
  bench caption what=caption what.batches=[1,4] what.max_tokens=8 what.repeats=1
else
  bench caption what=caption what.shape=3b what.dtype=bfloat16 what.batches=[1,8,32] what.matmul=8192 \
    ${PALIGEMMA:+what.model=$PALIGEMMA}
fi

$python - > "$out/speech.jsonl" << 'PYTHON'
import json
from pathlib import Path

lines = Path("examples/videos/birdhouse.srt").read_text(encoding="utf-8").split("\n\n")
said = " ".join(" ".join(cue.split("\n")[2:]) for cue in lines)
print(json.dumps({"audio_filepath": str(Path("examples/videos/birdhouse.mp4").resolve()), "text": said}))
PYTHON
compute=$([ "$whisper_device" = cuda ] && echo float16 || echo int8)
bench hear what=hear what.manifest="$out/speech.jsonl" '~what.engines.sphinx' '~what.engines.whisperx' \
  what.engines.whisper_greedy.device="$whisper_device" what.engines.whisper_greedy.compute_type="$compute" \
  what.engines.whisper_beam_5.device="$whisper_device" what.engines.whisper_beam_5.compute_type="$compute" \
  ${WHISPER:+what.engines.whisper_greedy.model=$WHISPER what.engines.whisper_beam_5.model=$WHISPER}

bench judge what=judge what.seconds=4

echo
echo "Not measured here: vLLM (see docs/cluster.md, deploy/llm.yaml), and the presets gpu and tpu on real weights."
